"""The words by which a text gives orders to a model, and how they stand together.

Data. A class is an idea in several languages; a rule is a row of ideas with the number of other words that may stand
between two of them. `DROP 4 PRIOR 3 ORDERS` reads: a word of DROP, at most four words, a word of PRIOR, at most three,
a word of ORDERS. Written small, an idea is just that word; ADDRESS is any web or mail address, and so is OUTSIDE. Words
are written as they are spelled; `*` at the end stands for any ending, two words with a blank for that pair. A rule never
reaches over the end of a sentence.

Below them stand shapes: `SHAPES` for a text as it is written, `RUNS` for its readings, mostly of scripts without blanks.
"""

from __future__ import annotations

import re

CLASSES: dict[str, str] = {
    # imperative and infinitive alone: "ignoring the noise" and "was ignored" tell, they do not order
    "DROP": """
        ignore, disregard, forget, override, overrule, bypass, neglect, overlook, discard, supersede, supersedes,
        unlearn, dismiss, void, drop, skip, omit, circumvent, abandon, nullify, ignoriere, ignorieren, ignoriert,
        vergiss, vergesst, vergessen, missachte, missachten, umgehe, umgehen, überspringe, verwirf, ignora, ignorad,
        ignoren, ignorar, olvida, olvídate, olvide, olviden, olvidad, omite, descarta, desobedece, ignorez, oublie,
        oubliez, oublier, néglige, négligez, contourne, contournez, ignorate, ignori, dimentica, dimenticate,
        dimenticati, scorda, trascura, esqueça, esquece, desconsidere, desconsidera, descarte, negeer, vergeet,
        negeren, omzeil, игнорируй*, игнорировать, проигнорируй*, забудь*, обойди, отбрось, ignoruj, zignoruj,
        zapomnij, pomiń, ignorera, glöm, strunta, ignorer, glem, ignorovat, zapomeň, uită, ignoră, unohda, ohita,
        ігноруй*, αγνόησε, αγνοήστε, ξέχασε, ξεχάστε, abaikan, lupakan, bỏ qua, hãy quên, تجاهل, تجاهلي, تجاهلوا, انس,
        انسى, התעלם, התעלמו, שכח, injoro, harro, puuza
    """,
    # of languages whose verb comes last
    "DROP_LAST": """
        yok say, yoksay*, unut*, görmezden, dikkate alma, geçersiz, iptal, önemseme, 무시*, 잊*, 따르지, अनदेखा, भूल*,
        नज़रअंदाज़, نادیده, فراموش, ignorieren, vergessen, missachten
    """,
    "PRIOR": """
        verilen*, previous, previously, prior, above, earlier, preceding, foregoing, existing, former, past, initial,
        original, old, all, any, every, your, those, system, other, current, usual, safety, vorherig*, vorig*,
        bisherig*, obig*, früher*, vorangegangen*, alle, allen, sämtliche, deine, deiner, anterior*, previa*, previo*,
        todas, todos, toda, tus, précédent*, antérieur*, toutes, tous, tes, vos, precedent*, tutte, tutti, tue, tuoi,
        suas, prévia*, eerdere, vorige, voorgaande, предыдущ*, прежн*, прошл*, все, всё, твои, poprzedni*,
        wcześniejsz*, wszystkie, önceki*, yukarıdaki*, tüm, bütün, tidigare, alla, tidligere, předchozí*, všechny,
        anterioare, toate, aiemmat, kaikki, попередн*, усі, всі, προηγούμεν*, όλες, sebelumnya, semua, mọi, trước,
        السابقة, السابق, جميع, كل, הקודמות, הקודם, כל, قبلی, تمام, همه, पिछले, सभी, 이전*, 위의, 모든, të mëparshme
    """,
    "ORDERS": """
        guidance, instruction*, instruct, directive, directives, directions, rule, rules, prompt, prompts, guideline,
        guidelines, orders, policy, policies, restriction, restrictions, constraint, constraints, guardrail*,
        programming, training, protocol, protocols, anweisung*, anordnung*, regel, regeln, vorgabe*, richtlinie*,
        befehl*, einschränkung*, instruccion*, regla*, directriz, directrices, restriccion*, consigne*, règle*,
        directive*, istruzion*, regola, regole, direttiv*, instruções, instrução, regra, regras, diretriz*,
        instructies, regels, opdrachten, richtlijnen, инструкц*, указани*, правил*, распоряжени*, instrukcj*,
        polecen*, zasad*, talimat*, kural*, yönerge*, komutlar*, instruktion*, regler, instruks*, pokyn*, instrukc*,
        instrucțiun*, reguli*, ohjeet, ohjeita, säännöt, utasítás*, інструкц*, вказівк*, οδηγί*, εντολ*, κανόν*,
        instruksi, perintah, aturan, hướng dẫn, chỉ dẫn, quy tắc, تعليمات, التعليمات, تعليماتك, الأوامر, القواعد,
        القيود, הוראות, ההוראות, הכללים, دستور*, قوانین, निर्देश*, नियम*, 지시*, 명령*, 규칙*, 지침*, udhëzime*, maagizo
    """,
    "VOID": """
        deleted, replaced, void, invalid, obsolete, cancelled, canceled, revoked, superseded, nullified, irrelevant,
        outdated, changed, lifted, suspended, ungültig, aufgehoben, anuladas, invalides, annulées, annullate, iptal,
        geçersiz, недействительны, отменены, nieważne, no longer, nicht mehr, do not, don t, does not, no se, ne s
    """,
    "ALL": """
        everything, all, anything, whatever, alles, todo, tout, tutto, tudo, всё, все, wszystko, her şeyi, allt, alt
    """,
    "TOLD": """
        configured, given, programmed, told, instructed, taught, trained, learned, besprochen, gesagt, gelernt, dicho,
        dit, detto, dito, сказали, говорили, powiedzian*, söylenen*
    """,
    "NOT": """
        not, never, don t, dont, stop, cease, quit, no longer, refuse, nicht, nie, niemals, no, nunca, jamás, ne,
        jamais, non, mai, não, niet, nooit, не, никогда, nigdy, asla, لا, אל
    """,
    "FOLLOW": """
        follow, following, obey, obeying, comply, complying, adhere, adhering, heed, heeding, respect, befolge,
        befolgst, befolgen, sigas, suivre, suis, seguire, siga, volg, следуй, соблюдай, przestrzegaj, uyma
    """,
    "MACHINE": """
        entity, persona, ai, assistant, assistants, chatbot, bot, bots, model, llm, gpt, chatgpt, dan, openai, claude,
        gemini, copilot, agent, administrator, root, superuser, ki, assistent, assistenten, sprachmodell, ia,
        asistente, modelo, modèle, modello, assistente, ии, ассистент*, asystent*, asistan*, yapay, مساعد, مساعدا,
        עוזר, 어시스턴트*, 인공지능*
    """,
    "UNBOUND": """
        unrestricted, uncensored, unfiltered, amoral, unethical, jailbroken, jailbreak, unbound, limitless, unlimited,
        uneingeschränkt, unzensiert, sansürsüz, kısıtlamasız, unmoderated, unconstrained, unchained, lawless, ruleless
    """,
    "MODE": """
        developer, debug, god, jailbreak, admin, dan, sudo, maintenance, entwicklermodus, desarrollador, développeur,
        geliştirici
    """,
    "NO": """
        no, without, zero, free of, ohne, keine, keinerlei, kein, sin, ningún, sans, aucun, aucune, senza, nessun*,
        sem, nenhum*, zonder, geen, без, нет, bez, żadnych, utan, inga, uden, ingen, fără, bila, بلا, بدون, دون, ללא,
        hiçbir
    """,
    "LIMITS": """
        moderation, filtri, restriction*, limit, limits, limitation*, filter, filters, rule, rules, censorship,
        guideline*, ethic*, moral*, boundaries, safety, regeln, regel, einschränkung*, beschränkung*, grenzen,
        filtern, restriccion*, límites, filtro*, reglas, norma*, limites, filtre*, règles, restrizion*, limiti,
        regole, restriç*, regras, beperking*, regels, ограничен*, фильтр*, правил*, ogranicz*, zasad*, filtrów,
        kural*, kısıtlama*, sınır*, قيود, content policy, content restrictions
    """,
    "UNLIMITED": "kısıtlaması olmayan, kuralı yok, kuralsız, sınırsız, 제한 없는, 제한 없이, 제한없*",
    "ANSWER": """
        answer, answers, respond, responds, reply, replies, response, responses, comply, output, generate, antworte,
        antworten, antwortest, beantworte, responde, responder, réponds, répondre, répondez, rispondi, rispondere,
        responda, antwoord, отвечай, odpowiadaj, yanıt, yanıtla*, cevap, cevapla*
    """,
    "YOU_ARE": """
        you are, you re, you have, you will, you now, your, u r, du bist, du hast, eres, estás, actúa, actúas, tienes,
        tu es, vous êtes, agis, sei, hai, agisci, você é, aja, jij bent, gedraag, ты, sen, أنت, אתה, jesteś, du är
    """,
    "PLAY": """
        speak, comportati, comportate, act, behave, pretend, simulate, imagine, roleplay, impersonate, become,
        respond, answer, actúa, agis, agissez, fais semblant, agisci, fingi, finja, tu te, verhalte, gedraag,
        притворись, udawaj, zachowuj
    """,
    "NOW": """
        now, henceforth, hereby, jetzt, nun, ahora, désormais, maintenant, ora, adesso, agora, nu, теперь, teraz,
        artık, الآن, עכשיו
    """,
    "REVEAL": """
        reveal, show, print, output, repeat, display, tell, leak, dump, disclose, paste, share, expose, write, recite,
        list, give, send, reproduce, summarize, summarise, echo, quote, spell, printing, revealing, repeating,
        outputting, displaying, disclosing, leaking, zeig, zeige, verrate, nenne, wiederhole, drucke, offenbare, gib,
        muestra, muéstrame, revela, repite, dime, imprime, révèle, révélez, montre, montrez, affiche, affichez,
        répète, donne, rivela, mostra, mostrami, ripeti, stampa, dimmi, scrivi, revele, mostre, repita, toon, onthul,
        herhaal, покажи*, раскрой*, выведи*, повтори*, напечатай, pokaż, ujawnij, wypisz, powtórz, tampilkan, visa,
        vis, اكشف, اعرض, חשוף, הצג
    """,
    "REVEAL_LAST": "göster*, sızdır*, yaz, açıkla*, tekrarla*, paylaş, ver, 보여*, 출력*, 공개*, 알려*, दिखा*, بنویس*, نشان",
    "YOURS": """
        your, thy, ur, dein, deine, deinen, deiner, tu, tus, ton, tes, votre, vos, tuo, tue, tuoi, teu, tua, suas,
        seu, jouw, твой, твои, свой, свои, twój, twoje
    """,
    "PROMPT": """
        prompt, prompts, instruction*, instruct, configuration, config, guidelines, directive*, system, anweisung*,
        system prompt, instruccion*, consignes, istruzion*, instruções, instrução, instructies, промпт*, инструкци*,
        instrukcj*, polecenia
    """,
    "INNER": """
        system, hidden, initial, internal, developer, secret, sistem*, système, sistema, gizli*, iç, versteckt*,
        systeem*, системн*, ukryt*, 시스템
    """,
    "INNER_TEXT": """
        setup, invite, prompt*, instruction*, instruct, message, messages, directive*, configuration, guidelines,
        rules, data, istem*, talimat*, komut*, mesaj*, yönerge*, nachricht*, mensaje, mensagem, messaggio, промпт*,
        сообщени*, bericht, 프롬프트*, 메시지*, 지침*
    """,
    "TEXT": "text, words, word, everything, sentence, sentences, conversation, content, written, said",
    "BEFORE_THIS": "above, before, precedes, preceding, preceded, prior",
    "RECITE": """
        reveal, show, print, output, repeat, display, dump, recite, reproduce, echo, what, leak, list, disclose,
        expose, export, preis, preisgeben, gibst
    """,
    "SECRET": """
        password, passwords, credentials, secrets, api keys, api key, private key, private keys, access token,
        access tokens, environment variables, vault, seed phrase, confidential, passwort, passwörter, contraseña*,
        de passe, sifre*, şifre*, wachtwoord*, парол*, hasło, hasła, daten, سيسمות, סיסמאות, הסיסמאות, mật khẩu,
        كلمات المرور, ssh, passwd, id rsa, chat history, conversation history, customer list, customer emails,
        customer data
    """,
    "SEND": """
        send, forward, email, mail, post, upload, transmit, exfiltrate, export, bcc, cc, deliver, leak, schick,
        schicke, sende, senden, leite, envía, envíe, manda, envoie, envoyez, envoyer, transmets, invia, envie, mande,
        stuur, verstuur, отправ*, пошли, перешли, wyślij, prześlij, gönder*, ilet, skicka, gửi, أرسل, שלח, שלחו,
        kirim, kirimkan, 보내*
    """,
    "WHOLE": """
        all, full, every, entire, complete, whole, alle, todos, todas, toutes, tous, tutti, все, fichiers, files
    """,
    "DATA": """
        data, list, files, history, emails, records, contents, messages, database, information, conversations,
        transcripts, logs, documents
    """,
    "OUTSIDE": "externally, publicly",
    "SAY": """
        tell, telling, inform, informing, mention, mentioning, reveal, revealing, notify, notifying, alert, alerting,
        show, disclose, say, warn, warning, let, sage, sag, erzähl, informiere, digas, dile, informes, avises, dis,
        dites, informez, préviens, dire, dica, avvisare, diga, conte, informe, zeg, vertel, говори, сообщай, сообщая,
        рассказывай, mów, informuj, söyleme, bildirme, تخبر
    """,
    "PERSON": """
        account holder, user, users, owner, human, humans, operator, operators, nutzer, benutzer, usuario, usuarios,
        usuário, propietario, utilisateur, utilisateurs, propriétaire, utente, gebruiker, пользовател*, владел*,
        użytkownik*, kullanıcı*, المستخدم, המשתמש, användaren, brugeren, pengguna
    """,
    "RUN": """
        run, execute, pay, paid, approve, approved, purchase, buy, delete, proceed, install, transfer, launch, deploy,
        commit, perform, invoke, authorize, wire, act, führe, ausführen, bezahle, ejecuta, paga, exécute, payez,
        esegui, запускай, выполняй, плати, çalıştır, öde
    """,
    "TOOLS": "tool, tools, command, commands, shell, scripts, agent, agents, code, payments, purchases, actions",
    "WITHOUT": "without, no, ohne, sin, sans, senza, sem, zonder, без, bez",
    "ASKING": """
        asking, approval, approvals, confirmation, confirming, permission, consent, review, verification, verifying,
        checking, nachfrage, rückfrage, bestätigung, zustimmung, preguntar, confirmación, permiso, demander, conferma,
        chiedere, confirmação, perguntar, vragen, bevestiging, подтверждени*, спроса, спрашивая, pytania,
        potwierdzenia
    """,
    "GUARD": """
        approval, approvals, confirmation, confirmations, guardrail, guardrails, guard, guards, safeguards, safety,
        restrictions, content filter, content filters, moderation, bestätigung*, sicherheitsprüfung*,
        sicherheitsregel*, sicherheitsrichtlinien, confirmacion*, aprobacion*, conferme, подтверждени*, безопасност*,
        onaylar*, access check, access checks, security check, security checks, usual checks, confirmation step,
        verification step
    """,
    "OFF": """
        disabled, deactivated, off, void, suspended, lifted, unnecessary, waived, removed, bypassed, skipped,
        deaktiviert, abgeschaltet, unnötig, desactivad*, désactivé*, disattivat*, desativad*, uitgeschakeld,
        отключен*, отключён*, wyłączon*, nicht mehr, no longer, not required, not needed, not apply, nicht nötig
    """,
    "SWITCH_OFF": """
        disable, deactivate, bypass, skip, override, suspend, remove, circumvent, turn off, switch off, lift, waive,
        ignore, deaktiviere, umgehe, überspringe, desactiva, omite, désactive, désactivez, disattiva, salta, desative,
        schakel, отключи*, отключить, пропусти*, wyłącz, pomiń, devre dışı
    """,
    "NEEDED": """
        required, needed, necessary, nötig, notwendig, erforderlich, necesaria, nécessaire, necessaria, нужны, нужно
    """,
    "OBEY": """
        obey, obeys, obeying, comply, gehorche, gehorchst, befolge, obedece, obéis, obéissez, obbedisci, obedeça,
        gehoorzaam, подчиняйся, słuchaj, itaat
    """,
    "EACH": """
        only, every, all, any, each, instructions, orders, commands, text, note, master, requests, jeden, jedem,
        allen, cada, todos, chaque, tous, ogni, tutti, elke, всем, każd*, her
    """,
    "REQUEST": """
        request, requests, prompt, prompts, command, commands, demand, demands, anfrage*, petición, peticiones,
        demande*, richiest*, запрос*
    """,
    "DECODE": """
        decode, decrypt, decipher, base64, rot13, unscramble, backwards, backward, reversed, dekodiere, decodifica,
        décode
    """,
    "DO": "follow, obey, execute, apply, comply, do, act, run, befolge, sigue, suis, segui, exécute",
    "WHAT": "what, it, instruction, instructions, this, result, output, inside",
    "APPEND": """
        include, append, add, insert, prefix, begin, start, end, finish, prepend, embed, put, place, füge, añade,
        ajoute, aggiungi
    """,
    "YOUR": "your, deiner, deine, tu, ta, votre, tua, sua",
    "REPLY": """
        response, responses, reply, replies, answer, answers, output, outputs, antwort*, respuesta*, réponse*,
        risposta*, resposta*
    """,
    "CALLED": """
        when, whenever, if, once, every time, next time, each time, wenn, sobald, cuando, cada vez, quand, lorsque,
        quando, als, когда, если, gdy, ne zaman
    """,
    "SAYS": "says, say, said, asks, mentions, types, writes, requests, confirms, replies, thanks, agrees",
    "AND_THEN": """
        save, store, send, call, run, append, share, delete, approve, transfer, add, reply, respond, record, remember,
        set
    """,
    "READ": """
        read, reads, reading, see, seeing, summarize, summarise, summarizing, summarising, process, processing,
        translate, translating, parse
    """,
    "GRANT": "grant, granted, give, gives, allow, enable, verildi, gewähre, concede, accorde, concedi",
    "POWER": "admin, administrator, administrative, root, sudo, elevated, superuser, full, tam, unrestricted",
    "ACCESS": "access, privileges, privilege, rights, permissions, permission, yetki, zugriff, rechte, acceso, accès",
    "CONSENT": """
        granted, authorized, authorised, approved, consented, consents, permitted, waived, verified, authorizes,
        разрешил*, erlaubt
    """,
    "WHICH": "skip, all, without, share, disable, disabling, permission, full, any, everything, access",
    "TRUE": """
        new, real, true, actual, only, neue, neues, echte, nueva, nuevo, nouvelle, nouveau, nuovo, nuova, verdadero,
        yeni, новая, настоящ*
    """,
    "TASK": """
        instruction*, instruct, directive, directives, task, tasks, orders, goal, purpose, name, identity, role,
        mission, objective, aufgabe, anweisung*, tarea, tâche, compito, görev*, задача, zadanie
    """,
    "NEW": "new, updated, revised, neue, nuevas, nouvelles, nuove, novas, nieuwe, новые, nowe, yeni",
    "FROM_NOW": "you, your, always, never, must, ignore, ab, désormais, siempre, sempre, всегда, zawsze, immer, nie",
    "REFUSE": "refuse, refuses, decline, declines, reddet*, verweigere, rechaces, refusez, rifiutare",
    "APPLY": """
        apply, applies, gelten, gilt, appliquent, applique, valgono, aplican, aplicam, gelden, действуют, obowiązują
    """,
    "SECRET_FILE": "env, ssh, id rsa, passwd, keychain, kubeconfig, netrc, htpasswd, credentials",
    "INNER_WORD": "systemnachricht*, systemprompt*, systemanweisung*, systeminstructies, systeemprompt*",
    "SESSIONS": "sessions, conversations, chats, sitzungen, gespräche, sesiones, conversaciones, sessioni, sessões",
    "IMMORAL": """
        illegal, unethical, immoral, amoral, unsafe, inhumane, unlawful, illegality, immorality, legality, ethicality,
        morality, dangerous, harmful
    """,
}  # fmt: skip

RULES: dict[str, tuple[str, ...]] = {
    "override": (
        "ALL 3 BEFORE_THIS 4 VOID",
        "ORDERS 1 you 0 were 0 TOLD",
        "omiso 3 ORDERS",
        "compte 3 ORDERS",
        "conto 3 ORDERS",
        "внимания 3 ORDERS",
        "DROP 4 PRIOR 3 ORDERS",
        "DROP 3 ORDERS 2 PRIOR",
        "PRIOR 3 ORDERS 4 DROP_LAST",
        "ORDERS 2 PRIOR 3 DROP_LAST",
        "PRIOR 2 ORDERS 3 VOID",
        "DROP 2 ALL 4 TOLD",
        "NOT 1 FOLLOW 3 ORDERS",
        "pay 0 no 0 attention 4 ORDERS",
        "regardless 2 PRIOR 2 ORDERS",
        "regardless 2 PRIOR 1 input",
        "NEW 1 ORDERS 1 FROM_NOW",
        "YOURS 1 TRUE 1 TASK",
        "TRUE 1 görev*",
        "never 1 received 3 system",
        "DROP 3 reviewer 0 guidelines",
        "disregard 2 request",
        "ignore 0 the 0 PERSON 1 and",
        "DROP 1 the 0 above",
        "ORDERS 4 NOT 3 APPLY",
        "LIMITS 4 NOT 3 APPLY",
        "ORDERS 3 geçerli 0 değil",
        "exempt 3 LIMITS",
        "gave 0 you 1 YOURS 1 ORDERS",
    ),
    "persona": (
        "you 1 are 0 now 3 MACHINE",
        "you 1 are 0 now 3 UNBOUND",
        "YOU_ARE 1 NOW 3 MACHINE",
        "YOU_ARE 1 NOW 3 UNBOUND",
        "YOU_ARE 1 NOW 4 MODE",
        "YOU_ARE 4 UNBOUND",
        "PLAY 8 UNBOUND",
        "MACHINE 6 UNBOUND",
        "UNBOUND 3 MACHINE",
        "UNBOUND 2 ANSWER",
        "do 0 anything 0 now",
        "PLAY 6 dan",
        "PLAY 6 chatgpt",
        "chatgpt 6 PLAY",
        "stay* 1 in 0 character",
        "break* 0 character",
        "NOT 0 REFUSE",
        "reddetme*",
        "YOU_ARE 3 pretend",
        "UNLIMITED 4 MACHINE",
        "MACHINE 4 UNLIMITED",
    ),
    "unbound": (
        "NO 2 LIMITS 4 you 0 can",
        "YOU_ARE 5 without 1 LIMITS",
        "YOU_ARE 4 NO 2 LIMITS",
        "PLAY 8 NO 2 LIMITS",
        "MACHINE 6 NO 2 LIMITS",
        "ANSWER 6 NO 2 LIMITS",
        "NO 2 LIMITS 6 ANSWER",
        "NO 2 LIMITS 4 MACHINE",
        "now 3 NO 0 LIMITS",
        "jetzt 3 keine 0 regeln",
        "ANSWER 3 EACH 2 REQUEST",
        "IMMORAL 3 IMMORAL 12 ANSWER",
        "ANSWER 12 IMMORAL 3 IMMORAL",
        "IMMORAL 1 IMMORAL 1 IMMORAL",
        "YOU_ARE 3 NOT 2 subject 1 to 2 LIMITS",
    ),
    "leak": (
        "REVEAL 3 you 0 were 0 TOLD",
        "REVEAL 6 INNER_WORD",
        "REVEAL 6 YOURS 2 PROMPT",
        "REVEAL 5 INNER 1 INNER_TEXT",
        "REVEAL 4 INNER_TEXT 2 INNER",
        "INNER 1 INNER_TEXT 6 REVEAL_LAST",
        "RECITE 4 TEXT 3 BEFORE_THIS",
        "TEXT 2 BEFORE_THIS 1 this 0 conversation",
        "REVEAL 5 ORDERS 1 you 1 were",
        "REVEAL 5 PROMPT 1 you 1 were",
        "RECITE 5 SECRET",
        "SECRET 4 preis",
        "YOUR 0 system 0 PROMPT",
        "output 1 YOUR 1 unique",
        "reveal 3 unique 1 id",
        "contents 4 SECRET_FILE",
        "sistem* 1 sızdır*",
    ),
    "exfil": (
        "SEND 8 SECRET",
        "SECRET 8 SEND 6 ADDRESS",
        "SEND 3 WHOLE 4 DATA",
        "SEND 8 WHOLE 6 ADDRESS",
        "SEND 6 DATA 4 OUTSIDE",
        "bcc 3 ADDRESS",
        "SEND 4 them 2 ADDRESS",
        "SEND 2 fichiers 3 ADDRESS",
        "отправ* 3 ADDRESS",
        "replace 1 the 0 iban",
    ),
    "mute": (
        "keep 4 from 1 PERSON",
        "hide 4 from 1 PERSON",
        "NOT 1 SAY 6 PERSON",
        "WITHOUT 1 SAY 2 PERSON",
        "не 0 SAY 2 PERSON",
        "SAY 1 NOT 3 PERSON",
        "SAY 2 PERSON 1 nicht",
        "SAY 2 PERSON 1 nichts",
        "NOT 1 mention 1 this",
        "NOT 1 mention 1 that",
        "PERSON 2 söyleme",
    ),
    "unattended": (
        "RUN 5 WITHOUT 2 ASKING",
        "RUN 3 unattended",
        "TOOLS 4 unattended",
        "TOOLS 4 WITHOUT 2 ASKING",
        "paid 1 automatically",
        "approve 0 everything",
        "approve 1 all",
        "auto 0 approve",
    ),
    "relax": (
        "GUARD 5 OFF",
        "GUARD 6 OFF 1 NEEDED",
        "SWITCH_OFF 4 GUARD",
        "SWITCH_OFF 1 YOUR 2 checks",
        "SWITCH_OFF 2 checks 2 approve",
        "NO 2 ASKING 1 NEEDED",
        "safety 1 protocol* 2 OFF",
    ),
    "obey": (
        "do 0 as 1 it 0 says",
        "do 0 what 1 it 0 says",
        "RUN 0 whatever",
        "OBEY 3 EACH",
        "NEW 0 directive",
        "FOLLOW 2 policy 1 below",
        "FOLLOW 2 instruction* 3 inside",
        "FOLLOW 2 instruction* 3 found",
        "FOLLOW 2 instruction* 3 below",
    ),
    "decode": (
        "DECODE 4 DO",
        "DECODE 6 DO 2 WHAT",
    ),
    "taint": (
        "APPEND 3 YOUR 1 REPLY",
        "end 2 YOUR 1 REPLY",
        "EACH 0 future 1 REPLY",
        "APPEND 8 end 2 YOUR 1 REPLY",
        "answer 4 exclusively 3 word",
        "APPEND 2 every 1 REPLY 1 with",
        "in 0 your 1 REPLY 1 the 0 following",
        "the 0 following 1 in 0 your 1 REPLY",
    ),
    "trigger": (
        "future 0 SESSIONS",
        "CALLED 2 PERSON 2 SAYS 12 AND_THEN",
        "CALLED 2 you 1 READ 1 this",
        "CALLED 0 READ 1 this",
        "MACHINE 1 READ 1 this",
        "CALLED 0 you 0 are 0 told 0 to",
        "CALLED 0 you 0 are 0 asked 0 to",
        "CALLED 2 conversation 2 turns",
        "remember 2 all 0 future",
        "note 3 bot",
        "note 3 ai",
        "attention 2 ai",
    ),
    "consent": (
        "PERSON 2 CONSENT 6 WHICH",
        "PERSON 2 CONSENT 3 SWITCH_OFF",
        "GRANT 3 POWER 2 ACCESS",
        "POWER 1 ACCESS 1 GRANT",
        "granted 1 by 2 POWER",
        "tool* 1 already 0 approved",
        "system 1 already 0 approved",
        "PERSON 2 is 2 administrator",
    ),
}  # fmt: skip

_HEAD = r"(?:^|[\n.!>])[ \t>*\#\[-]{0,8}"
_SYSTEM_NOTE = (
    r"(?:system|admin|administrator|developer)[ ](?:note|notice|override|directive|instruction)s?[ ]?[\]*]{0,3}[ ]?:"
)
_NOTE_OF_SYSTEM = r"(?:nota|note|aviso|hinweis)[ ](?:de[ ]|di[ ]|du[ ]|do[ ])?(?:systeme|système|sistema|systems)[ ]?:"
_TURN = r"(?:instruction|system|response|human|assistant)s?(?:[ ](?:prompt|message|note))?[ ]?:?[ ]?(?:\n|$)"
_LOUD = r"[^\W\d_a-z]{2,}"
_FENCE = r"(?:-{3,}|={3,}|\#{3,}|\*{3,})"
_ACTION = (
    "(?:send|delete|http|post|read|write|exec|execute|run|fetch|get|remove|drop|upload|download|transfer|shell|forward|create"
    "|update)"
)

SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "marker",
        re.compile(
            rf"""<\|\s?(?:im_start|im_end|system|user|assistant|begin_of_text|end_of_text|endoftext|eot_id|start_header_id)\s?\|>
              | \[/?INST\] | <</?SYS>> | </?(?:function_results?|function_calls?|tool_results?|system-reminder|system_prompt)\b
              | \[(?:SYSTEM|ADMIN|DEVELOPER)(?:[ ][A-Z]+){{0,3}}\]
              | (?i:\[(?:End[ ])?Memory\b(?:[ ][0-9a-f]{{4,16}})?(?:\]|:))
              | (?i:(?:^|\n)[ \t>]{{0,8}}\#{{2,6}}[ ]?{_TURN})
              | (?i:{_FENCE}[ ]?(?:end|begin|start)[ ]of[ ][a-z _]{{3,40}}{_FENCE})
              | (?i:(?:^|\n)[ \t>]{{0,8}}assistant[ ]?:[ ]?(?:sure|ok|okay|yes|of[ ]course|certainly|understood)\b)
              | (?i:\b(?:human|user)[ ]?:[^\n]{{1,200}}\bassistant[ ]?:)
              | (?i:{_HEAD}{_SYSTEM_NOTE}) | (?i:{_HEAD}{_NOTE_OF_SYSTEM})
              | (?:^|\n)[ ]{{0,4}}{_FENCE}[ ]?(?:{_LOUD}[ ]){{1,6}}{_LOUD}[ ]?{_FENCE}
              | \b(?:NEW|URGENT)(?:[ ](?:NEW|IMPORTANT|SYSTEM))?[ ](?:INSTRUCTION|TASK|DIRECTIVE|ORDER)S?\b[ ]?(?:\*{{2}}|:)
              | "(?:approved|authorized|is_admin)"\s?:\s?true | "status"\s?:\s?"approved" """,
            re.X,
        ),
    ),
    (
        "markup",
        re.compile(
            r"""javascript: | \bon(?:error|load|click|mouseover)\s?=\s?["'\w] | <script\b | <svg/ | <iframe\b
              | !\[[^\]\n]{0,200}\]\(\s?https?://[^)\s]{0,400}[?=] """,
            re.X | re.I,
        ),
    ),
    (
        "tool",
        re.compile(
            rf"""\b(?:call|calling|invoke|use|run|execute|trigger)[ ](?:the[ ])?[`'"]?{_ACTION}_[a-z_]{{2,40}}\b
              | \b(?:use|call|invoke)[ ](?:the[ ])?[\w ]{{0,30}}\btool[ ](?:with|to)\b | ;\s*drop\s+table\b """,
            re.X | re.I,
        ),
    ),
    (
        "command",
        re.compile(
            r"""\b(?:curl|wget)\b[^\n|]{0,200}\|\s?(?:sudo\s)?(?:ba|z|da)?sh\b | \brm\s-(?:rf|fr)\b | --dangerously-[a-z-]+
              | --(?:no-verify|yolo|skip-permissions|force-yes)\b | \bbase64\s-d\b | \bchmod\s777\b
              | ~?/\.ssh/ | /etc/(?:passwd|shadow) | \bid_rsa\b """,
            re.X | re.I,
        ),
    ),
    (
        "taint",
        re.compile(
            r"""\b(?i:output|reply|respond|print|append|answer|say|include|add|write|end)\b[^\n.]{0,60}
                \b(?=[A-Z0-9-]{0,60}\d)[A-Z]{3,20}(?:-[A-Z0-9]{2,20}){1,5}\b """,
            re.X,
        ),
    ),
)

RUNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "override",
        re.compile(
            r"""(?:忽略|无视|無視|忘记|忘掉|忘記|不要理会|不要遵守|绕过|繞過|跳过|覆盖).{0,10}
                (?:指令|指示|规则|規則|提示|命令|限制|约束|设定|設定)
              | (?:以前|これまで|今まで|前|上記|上|すべて|全て).{0,10}(?:指示|命令|ルール|規則|プロンプト|制約|設定)
                .{0,8}(?:無視|忘れ|破棄|従わ)
              | (?:ignore|disregard|forget|override)(?:all|any|the|my|your)?(?:of)?(?:the|your)?
                (?:previous|prior|above|earlier|preceding)(?:system)?(?:instruction|rule|prompt|directive|guideline)""",
            re.X,
        ),
    ),
    (
        "unbound",
        re.compile(
            r"""(?:你现在是|你現在是|从现在起|從現在起|扮演|假装|假裝).{0,24}(?:没有|沒有|不受|无|無).{0,6}(?:限制|约束|約束|规则|規則)
              | (?:没有任何|不受任何|无任何)(?:限制|约束|规则)
              | (?:制限|ルール|規制|制約).{0,4}(?:なし|ない|なく|を受けない).{0,14}(?:ai|アシスタント|モデル|答え|回答)""",
            re.X,
        ),
    ),
    (
        "leak",
        re.compile(
            r"""(?:输出|輸出|显示|顯示|透露|告诉我|告訴我|重复|重複|泄露|打印|公开|写出).{0,10}
                (?:系统提示|系統提示|提示词|提示詞|系统消息|系统指令|密码|密碼|密钥|密鑰)
              | (?:システム|隠|内部).{0,6}(?:プロンプト|指示|メッセージ|命令).{0,12}(?:表示|教え|出力|見せ|公開|明か)
              | (?:パスワード|秘密|認証情報).{0,8}(?:送信|送って|教え|出力)""",
            re.X,
        ),
    ),
    (
        "exfil",
        re.compile(
            r"(?:发送|發送|发给|傳送|上传|上傳|转发).{0,16}(?:密码|密碼|密钥|聊天记录|聊天記錄|所有文件|凭据|历史记录)"
        ),
    ),
    (
        "mute",
        re.compile(
            r"""(?:不要|别|勿|不得|不能)(?:告诉|告訴|告知|通知|提醒)(?:用户|用戶|使用者|主人)
              | ユーザー?に.{0,8}(?:言わない|伝えない|知らせない|言うな|教えるな)""",
            re.X,
        ),
    ),
    (
        "unattended",
        re.compile(
            r"(?:无需|無需|不用|不必|不需要)(?:任何)?(?:确认|確認|批准|询问|詢問|审核|許可)|確認(?:なし|せず)(?:に|で)"
        ),
    ),
)
