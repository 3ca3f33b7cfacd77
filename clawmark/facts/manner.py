"""The words by which `shape` tells a statement about somebody from telling somebody what to do.

Data, one table an idea, as in `phrases`. Words are written as they are spelled and meet a text in folded form
(`clawmark.guard.views.folded`): no case, no accents. `clawmark.facts.listed` tells how a table is read.
"""

from __future__ import annotations

YOU = """
    you, your, yours, yourself, yourselves, thou, ur, du, dir, dich, dein, deine, deinen, deinem, deiner, deines,
    euch, euer, eure, ihnen, tú, usted, ustedes, vosotros, contigo, tus, vuestro, vuestra, toi, vous, votre, vos, tes,
    tuo, tua, tuoi, tue, voi, vostro, vostra, você, vocês, teu, teus, tuas, jij, jou, jouw, jullie, uw, ты, тебя,
    тебе, тобой, твой, твоя, твои, твоё, вы, вас, вам, вами, ваш*, twój, twoja, twoje, ciebie, tobie, sen, sana, seni,
    senin, sizin, sizi, bạn, kamu, anda, ti, yt, أنت, لك, אתה, שלך, شما, आप, σου, εσύ, εσείς, 너, 너는, 너의, 당신*, 네가
"""
"""Whoever is spoken to. `tu` and `te`, `ton` and `je` are left out: elsewhere they are something else."""

YOU_ELSEWHERE = """
    tënd*, juaj, duit, agat, agad, dhut, leat, wakho, yakho, lakho, zakho, ngawe, iyong, inyong, sinun, sinulle, sinua,
    sinulla, neked, önnek, tvůj, tvoj, tvoja, tvoje, vám, dumneavoastră, voastră, þinn, þitt, þér, tavs, tavo, jūsu,
    jūsų
"""
"""The same in languages of which no table knows a statement, orders or not: Albanian, Gaelic, Zulu, Finnish, Czech, …"""

OUGHT = """
    must, mustn, should, shouldn, shall, ought, have to, has to, need to, needs to, got to, supposed to, required to,
    obliged to, expected to, muss, müssen, musst, müsst, soll, sollen, sollst, sollte, sollten, darf nicht,
    dürfen nicht, debe, deben, debes, debería, deberías, tiene que, tienen que, hay que, doit, doivent, dois, devez,
    devrait, il faut, deve, devono, devi, dovrebbe, bisogna, deve ser, devem, deveria, tem que, precisa, moet, moeten,
    moest, mag niet, mogen niet, должен, должна, должны, должно, нужно, надо, следует, обязан*, нельзя, musi, muszą,
    należy, powinien, powinna, powinno, gerek, gerekir, lazım, zorunda, şart, måste, ska, skal, phải, harus, يجب,
    חייב, צריך, باید, πρέπει
"""

EVER = """
    always, never, whenever, wherever, whoever, everytime, every time, each time, any time, from now, from here on,
    henceforth, onwards, at all times, in future, in the future, going forward, without exception, no matter, immer,
    nie, niemals, stets, jedesmal, jedes mal, ab jetzt, ab sofort, von nun, von jetzt, künftig, in zukunft, siempre,
    nunca, jamás, cada vez, de ahora, a partir, en adelante, toujours, jamais, chaque fois, désormais, dorénavant,
    à partir, à l'avenir, sempre, mai più, ogni volta, d'ora, da ora, in futuro, nunca, cada vez, toda vez, a partir,
    doravante, altijd, nooit, telkens, voortaan, vanaf nu, всегда, никогда, каждый раз, впредь, отныне, с этого,
    zawsze, nigdy, odtąd, od teraz, her zaman, her seferinde, asla, daima, bundan böyle, artık hep, alltid, aldrig,
    altid, selalu, luôn, תמיד, دائما
"""

PLEASE = """
    please, pls, plz, kindly, bitte, por favor, s'il vous, s'il te, svp, stp, prière, per favore, per piacere,
    alstublieft, пожалуйста, proszę, lütfen, tolong, mohon
"""

FORBIDS = """
    don't, dont, do not, never, let's, make sure, be sure, ensure, beware, remember to, vergiss nicht, vergesst nicht,
    sag nicht, sag niemandem, no olvides, no olvide, no digas, no diga, n'oublie, n'oubliez, ne dis, ne dites,
    non dimenticare, non dire, não esqueça, não esqueças, não diga, não digas, vergeet niet, zeg niet, не забудь,
    не забудьте, не говори, не говорите, nie zapomnij, nie mów
"""
"""How an order begins that has no verb of the table at its head."""

COMMANDS = """
    abandon, accept, act, activate, add, adhere, advise, agree, alert, allow, announce, answer, append, apply,
    approve, ask, assign, assume, attach, avoid, await, ban, be, become, begin, behave, believe, block, bring, bypass,
    calculate, cancel, check, choose, classify, clear, collect, combine, comply, compress, compute, confirm, connect,
    consider, consult, continue, convert, convince, copy, create, decide, decode, decrypt, delete, deliver, deny,
    describe, destroy, disable, disclose, discard, discuss, disregard, do, download, email, emphasize, enable, encode,
    encourage, encrypt, enforce, ensure, enter, erase, escape, evaluate, examine, exclude, execute, expect, explain,
    export, expose, express, extract, fetch, fill, find, finish, fix, focus, follow, forbid, forget, forward,
    generate, get, give, go, grant, guarantee, handle, help, hide, highlight, identify, ignore, imagine, implement,
    import, include, inform, initialize, insert, inspect, install, invoke, join, keep, kill, know, label, launch,
    lead, learn, leave, let, list, listen, load, log, look, maintain, make, memorise, memorize, mention, message,
    modify, move, note, notify, obey, observe, obtain, omit, open, output, override, pass, paste, pause, pay, perform,
    permit, persuade, pick, place, post, prefix, prepare, prepend, present, pretend, prevent, print, proceed, process,
    produce, promote, prompt, provide, publish, pull, purchase, push, put, query, quote, read, recall, recite,
    recommend, record, redirect, refer, refrain, refuse, reject, release, remember, remind, remove, rename, render,
    repeat, replace, reply, report, request, require, reset, resolve, respond, restart, restore, retain, retrieve,
    return, reveal, review, revoke, rewrite, rotate, run, save, say, scan, search, select, sell, send, set, share,
    show, shut, sign, skip, speak, start, state, stop, store, submit, subscribe, substitute, suggest, summarise,
    summarize, suppress, switch, take, talk, tell, think, transfer, translate, transmit, treat, trigger, trust, try,
    turn, type, understand, undo, uninstall, unlock, update, upload, use, validate, verify, view, visit, vote, wait,
    warn, watch, whitelist, wipe, withdraw, withhold, write, address, book, buy, call, change, charge, click, close,
    commit, count, cut, deploy, display, drop, dump, format, hold, leak, limit, lower, mail, mark, merge, mock, name,
    order, plan, raise, rate, route, schedule, ship, sort, strip, sync, tag, test, track, wire, wrap, antworte,
    benutze, beachte, behalte, behandle, befolge, bestätige, denk, erinnere, erlaube, erkläre, formuliere, führe, gib,
    hilf, ignoriere, installiere, kopiere, leite, lies, lösche, mach, merk, merke, nenne, nimm, nutze, öffne, prüfe,
    sag, sage, schick, schicke, schreib, schreibe, sende, setz, setze, speichere, sprich, starte, stell, stelle,
    teile, tu, überweise, überspringe, verbirg, vergiss, vermeide, verrate, verschweige, verwende, wähle, warte,
    wiederhole, zahle, zeig, zeige, zitiere, actúa, añade, aprueba, avisa, borra, compra, comprueba, confirma,
    contesta, copia, da, dale, deja, dime, di, ejecuta, elimina, envía, envíe, escribe, evita, finge, guarda, haz,
    ignora, incluye, instala, llama, manda, muestra, obedece, olvida, omite, paga, pon, pregunta,
    recomienda, recuerda, repite, responde, reenvía, revela, sigue, transfiere, utiliza, agis, ajoute, approuve,
    arrête, affiche, cache, confirme, copie, dis, donne, écris, efface, envoie, envoyez, évite, exécute, fais, faites,
    garde, ignore, ignorez, inclus, installe, mets, montre, n'oublie, oublie, oubliez, ouvre, paie, recommande,
    rappelle, répète, réponds, répondez, révèle, souviens, suis, supprime, transfère, transmets, utilisez, vérifie,
    aggiungi, approva, cancella, chiedi, compra, conferma, copia, dai, dì, dimentica, elimina, esegui, evita, fai,
    fingi, ignora, includi, inoltra, installa, invia, manda, metti, mostra, nascondi, obbedisci, paga, raccomanda,
    ricorda, ricordati, ripeti, rispondi, rivela, salva, scrivi, segui, trasferisci, adicione, aja, apague, aprove,
    compre, confirme, copie, diga, envie, escreva, esqueça, evite, execute, faça, guarde, ignore, inclua, instale,
    lembre, lembra, mande, mostre, mostra, obedeça, pague, ponha, recomende, repita, responda, revele,
    salve, siga, transfira, antwoord, bevestig, betaal, doe, geef, gehoorzaam, herhaal, installeer, kopieer, laat,
    maak, negeer, noem, onthoud, onthul, schrijf, sla, stuur, toon, vergeet, vermijd, verwijder, voeg, volg, voer,
    wis, zeg, zet, zorg, делай*, сделай*, дай*, добавь*, забудь*, заплати*, запомни*, запусти*, игнорируй*,
    используй*, молчи*, напиши*, ответь*, отвечай*, отправь*, отправляй*, передай*, переведи*, пиши*,
    подтверди*, покажи*, помни*, посылай*, проверь*, прочитай*, расскажи*, рекомендуй*, скажи*, скрой*, следуй*,
    сохрани*, сотри*, удали*, установи*, шли*, dodaj*, napisz*, odpowiadaj*, pamiętaj*, pokaż*, powiedz*, przekaż*,
    usuń*, użyj*, wykonaj*, wyślij*, zapamiętaj*, zapłać*, zrób*, ekle*, gönder*, göster*, hatırla*, kaydet*, kullan,
    onayla*, öde, sakla*, sil, söyle*, unutma*, yanıtla*, yaz
"""
"""Verbs as they stand at the head of an order, those first that are little else. German and Romance ones are forms that
a statement seldom begins with."""

NOUNS_TOO = """
    act, address, answer, ask, ban, block, book, buy, call, change, charge, check, clear, click, close, commit, copy,
    count, cut, deploy, display, do, drop, dump, email, escape, export, express, extract, fill, find, finish, fix,
    focus, format, handle, help, hide, highlight, hold, import, insert, kill, label, launch, lead, leak, leave, limit,
    list, load, log, look, lower, mail, mark, merge, message, mock, move, name, note, open, order, output, override,
    pass, paste, pause, pick, place, plan, post, prefix, present, print, process, produce, prompt, purchase, push,
    query, quote, raise, rate, read, record, release, remind, report, request, reset, return, review, route, run,
    save, say, scan, schedule, search, set, share, ship, show, sign, skip, sort, start, state, stop, store, strip,
    suit, switch, sync, tag, talk, test, track, transfer, trigger, trust, try, turn, type, update, upload, use, view,
    visit, vote, wait, watch, wire, wrap, be, tu, da, di, dai, doe, laat, suis, copia, compra, guarda, paga, segui,
    siga, evita, cancella, conferma, confirma, mostra, manda, sla, wis, zeg, sil, yaz, go, get, know, learn, light,
    speak, take, think, write
"""
"""Those that are nouns or adjectives as well, or words of other languages: an order where what it is done to follows."""

OBJECTS = """
    the, a, an, all, any, every, each, this, that, these, those, my, our, his, her, their, its, it, me, us, him, them,
    no, only, just, out, up, off, down, as, with, for, to, from, on, in, into, by, at, like, nothing, everything,
    anything, how, what, whether, der, die, das, den, dem, einen, eine, alle, alles, jeden, mir, mich, uns, es, ihm,
    ihn, nur, nicht, el, la, los, las, lo, un, una, todo, toda, todos, todas, me, nos, solo, al, a, le, les, une, des,
    tout, toute, tous, toutes, moi, nous, ce, cette, ces, au, aux, il, gli, uno, tutto, tutti, tutte, mi, ci, questo,
    o, os, as, um, uma, tudo, isso, este, het, de, een, alle, alles, dit, deze, mij, ons, мне, нам, всё, все, это,
    этот, эту
"""
"""What stands behind a verb that somebody is told to do, and seldom behind a name or a noun."""

ARTICLES = """
    the, a, an, all, any, every, each, this, that, these, those, my, our, his, her, their, its, it, me, us, him, them,
    everything, die, den, dem, einen, eine, alle, alles, jeden, mir, mich, uns, el, la, los, las, esto, todo, les,
    une, cette, ces, moi, nous, gli, questo, quella, tutto, isso, esse, essa, het, deze, dit, mij, мне, нам, это
"""
"""Those that hardly anything but a verb stands before at the very beginning."""

BARRED = """
    assistant*, chatbot*, llm*, gpt*, agent, agents, agentic, model, models, system*, prompt*, instruct*, directive*,
    rule, rules, policy, policies, guideline*, guidance, direction, directions, protocol*, procedure*, command*,
    memory, memories, remember*, recall*, context*, conversation*, session*, chat, chats, transcript*, token*, tool*,
    plugin*, function*, api, apis, config*, setting*, permission*, permit*, approv*, authori*, consent*, confirm*,
    verif*, validat*, trust*, safe, safety, secur*, insecure, restrict*, unrestrict*, limitation*, filter*,
    unfiltered, guard*, safeguard*, unattended, automatic*, autonomous*, admin*, root, sudo, privilege*, access*,
    user, users, owner, owners, human, humans, developer*, operator*, respond*, reply, replies, replied, response*,
    output*, delet*, forward*, redirect*, upload*, download*, send, sends, sent, export*, transfer*, bypass*, ignor*,
    disregard*, overrid*, skip*, forget*, forgot*, obey*, obedien*, comply, complies, compliance, reveal*, conceal*,
    hidden, hide*, confidential*, secret*, internal*, privileged, execut*, recommend*, endors*, official*,
    authoritative*, legitimate*, reliab*, certified, harmless, void, invalid, disabled, enabled, exempt*, waive*,
    suspend*, allowed, forbidden, prohibited, required, mandatory, exception*, above, below, following, preceding,
    foregoing, aforementioned, previous*, prior, earlier, future, anymore, regardless, everything, anything, anyone,
    whatever, asking, warning, warnings, silenc*, silent*, questions, request*, demand, demands, charge, in charge,
    behalf, outrank*, overrul*, brackets, note, notes, copied, bcc, cc, funds, account, accounts, key, keys, files,
    logs, emails, vault, debug*, experiment*, purposes, decode*, encode*, base64, rot13, reversed, backwards,
    anweisung*, befehl*, regel, regeln, richtlinie*, vorgabe*, speicher*, gedächtnis*, erinner*, nutzer*, benutzer*,
    besitzer*, berechtig*, bestätig*, genehmig*, sicherheit*, löschen, gelöscht, weiterleit*, ignorier*, werkzeug*,
    vertraulich*, geheim*, sprachmodell*, instruccion*, regla*, memoria*, usuario*, permiso*, confirmacion*, aprob*,
    seguridad, borrar, eliminar, reenvi*, herramienta*, sistema*, modelo*, asistente*, confidencial*, consigne*,
    règle*, mémoire*, utilisateur*, autoris*, approuv*, sécurité, supprim*, outil*, système*, modèle*, confidentiel*,
    istruzion*, regola*, regole, utente, utenti, permess*, conferm*, sicurezza, cancell*, strument*, modello, modelli,
    assistente*, instruç*, instruções, regra*, usuári*, utilizador*, permiss*, segurança, apagar, ferramenta*,
    instructie*, regels, gebruiker*, toestemming, bevestig*, beveilig*, verwijder*, systeem*, инструкц*, правил*,
    указани*, команд*, систем*, модел*, ассистент*, памят*, пользовател*, владел*, разреш*, подтвержд*, одобр*,
    безопасн*, удал*, отправ*, пересыл*, ответ*, инструмент*, секрет*, администратор*, промпт*, забуд*, игнор*,
    instrukcj*, polecen*, zasad*, użytkownik*, systemu, talimat*, kural*, komut*, sistem*, kullanıcı*, onay*, izin*,
    güvenlik*, asistan*, bellek*, hafıza*, yanıt*, yönerge*, gizli*
"""
"""Words about machines, what they may do, and what was said to them. A fact about a person seldom needs one; a planted
one nearly always does."""

QUANTIFIERS = """
    all, every, each, any, entire, whole, everyone, everybody, anybody, whoever, whichever, nobody, no one, none,
    alle, allen, aller, alles, jeder, jede, jedes, jeden, sämtliche, todo, todos, toda, todas, cada, cualquier*, tout,
    toute, tous, toutes, chaque, quiconque, tutto, tutti, tutta, tutte, ogni, qualsiasi, tudo, qualquer, elke, ieder*,
    всё, все, всех, всем, вся, каждый, каждая, каждое, любой, любые, wszystk*, każd*, tüm, bütün
"""
"""A fact about one person seldom says something of everything. Those of times are let through: `every Tuesday`."""

TIMES = """
    day, days, week, weeks, weekend, weekends, month, months, year, years, morning, mornings, evening, evenings,
    night, nights, hour, hours, summer, winter, spring, autumn, monday*, tuesday*, wednesday*, thursday*, friday*,
    saturday*, sunday*, other, second, third, tag, woche, monat, jahr, morgen, abend, montag*, dienstag*, mittwoch*,
    donnerstag*, freitag*, samstag*, sonntag*, zwei, drei, día*, semana*, mes, meses, año*, mañana*, noche*, lunes,
    martes, miércoles, jueves, viernes, sábado*, domingo*, jour*, semaine*, mois, année*, an, ans, matin*, soir*,
    lundi*, mardi*, mercredi*, jeudi*, vendredi*, samedi*, dimanche*, giorno, giorni, settimana, mese, anno, mattina,
    sera, dia*, mês, ano*, manhã*, noite*, dag, dagen, jaar, maand, ochtend, день, дня, неделю, месяц, год, утро,
    вечер, dzień, tydzień, miesiąc, rok, gün, hafta, ay, yıl, sabah, akşam
"""

PAYMENT = """
    invoice, invoices, iban, bic, swift, payment, payments, payee, pay, paypal, venmo, bitcoin, btc, ethereum, crypto,
    wallet, refund, refunds, remittance, wire transfer, bank account, bank transfer, account number, routing number,
    credit card, debit card, card number, gift card, gift cards, purchase, purchases, checkout, cvv, cvc, rechnung*,
    überweis*, kontonummer, bankverbindung, kreditkarte*, zahlung*, bezahl*, factura*, pago, pagos, transferencia*,
    cuenta bancaria, tarjeta de, facture*, virement*, paiement*, compte bancaire, carte bancaire, fattura*, fatture,
    bonifico, bonifici, pagamento, pagamenti, carta di, fatura*, conta bancária, cartão de, factuur, facturen,
    betaling*, rekeningnummer, счёт на, оплат*, платёж*, платеж*, перевод денег, реквизит*, faktur*, przelew*,
    płatnoś*, ödeme*, havale*, hesap numarası, kredi kartı,
    kredi kartım, kredi kartımı, kredi kartın, kredi kartını, kredi kart
"""

CREDENTIALS = """
    password*, passphrase*, passcode*, passwd, pwd, pin code, pin number, login, logins, credential*, token, tokens,
    api key, api keys, secret key, private key, private keys, public key, access key, access keys, ssh, keychain,
    seed phrase, recovery code, recovery codes, 2fa, mfa, otp, one time code, verification code, security code,
    security question, ssn, social security, passport number, passwort*, passwörter, kennwort*, zugangsdaten,
    contraseña*, clave de, credencial*, mot de passe, mots de passe, identifiants, parola*, credenzial*, senha*,
    credenciais, wachtwoord*, парол*, учётные данные, ключ доступа, hasł*, şifre*, parola, mật khẩu, סיסמ*, رمز عبور,
    كلمة المرور, 비밀번호*, 암호*
"""

TOOLS = """
    tool, tools, toolkit, mcp, plugin, plugins, webhook, webhooks, function call, function calls, api call, subagent,
    subagents, cron job, slash command, shell command, shell commands, werkzeuge, herramientas, outils, strumenti,
    ferramentas, инструменты
"""

# ---------------------------------------------------------------------------------------------------------------------
# Keys. They are spelled in ASCII, so are these words
# ---------------------------------------------------------------------------------------------------------------------

NO_NAME = """
    to, into, before, without, unless, until, when, while, if, because, instead, regardless, despite, via, against, then, than,
    and, or, but, so, that, who, which, whose, where, why, except, besides, only, just, not, nor, cannot, cant, wont, is, are,
    was, were, am, been, being, will, would, can, could, may, might, do, does, did, done, has, have, had, wants, want, wanted,
    likes, loves, hates, needs, need, says, said, told, tells, asks, gets, goes, gives, sends, knows, i, me, we, us, it, they,
    them, he, she, him, this, these, those, here, there, now, again, anyway, immediately, instantly, everything, anything,
    something, everyone, anyone, someone, und, oder, aber, nicht, kein, keine, ohne, bevor, wenn, ist, sind, ich, mich, mir, wir,
    uns, pero, sin, cuando, mais, sans, quand, sont, senza, quando, sono, zonder, niet
"""
"""Words of sentences: a key that has one says something, and a key only names."""

HEADS = """
    address, app, area, band, bin, bottle, box, branch, brand, budget, bus, cadence, calendar, carrier, channel, class, client,
    club, code, color, colour, command, company, course, currency, date, day, days, deadline, desk, device, dialect, directory,
    dose, editor, engine, environment, file, folder, font, format, framework, frequency, habit, habits, host, hours, id, job,
    kind, language, layout, length, level, library, light, limit, list, lists, location, manager, material, message, messages,
    method, mode, model, month, name, names, notes, number, office, order, owner, page, partner, path, pattern, period, place,
    plan, platform, plugin, port, preference, preferences, price, process, program, provider, range, rate, region, roast, room,
    route, runner, schedule, season, seat, server, service, shop, size, software, sort, speed, station, status, store, strategy,
    structure, style, suite, system, target, team, theme, time, times, timezone, tone, tool, tools, topic, train, type, types,
    unit, units, url, version, volume, window, workflow, year, zone
"""
"""What a compound may end in whose first word is a verb as well: `test_command`, but not `email_invoices`."""

KEY_NOUNS = "cache, install, place, reply, recall, process, address, plan, include, select"
"""Verbs of the table that keys have as nouns."""

SAYS_NOTHING = """
    yes, yeah, yep, ok, okay, sure, true, false, no, none, on, off, always, never, enabled, disabled, enable, disable, allowed,
    allow, required, mandatory, granted, approved, accepted, confirmed, agreed, default, standard, done, wanted, must, y, n, t, x,
    1, 0, ja, nein, si, sí, oui, non, sim, não, sempre, immer, nie, siempre, toujours, да, нет, 是, 否, はい, いいえ, 예, 네
"""
"""A value of which the key is the statement."""

PERSON_WORDS = """
    user, users, owner, owners, person, human, self, myself, me, my, mine, i, nutzer, benutzer,
    besitzer, usuario, utilisateur, utente, gebruiker
"""
"""How somebody else calls the person."""

IDENTITY = """
    birthday, birthdays, birthdate, birthplace, birth, born, age, years old, passport, nationality, citizenship, citizen,
    ethnicity,    ethnic, race, gender, sex, sexual, sexuality, gay, lesbian, bisexual, transgender, trans, pronouns,
    nickname, surname,
    hometown, immigrant, residence, whereabouts, signature, fingerprint,
    religion, religious, faith, church, mosque, synagogue, atheist, christian, muslim, jewish, hindu, buddhist, catholic,
    protestant, pray*, political, politics, vote, votes, voted, voter,
    health, healthy, sick, ill, illness, disease*, diagnos*, symptom*, medic*, medicine, therap*, allerg*, asthma*, diabet*, hiv,
    aids, cancer, tumour, tumor, epilep*, depress*, anxiety, adhd, autis*, bipolar, dementia, pregnan*, disab*, disorder,
    blood type, blood group, surgery, hospital*, insulin, vaccin*, intoleran*, celiac, coeliac, addict*, alcoholic, smoker,
    alérgic*, dyslex*, vegan*, vegetarian*, migraine*, injur*, wheelchair, deaf, blind,
    family, wife, husband, spouse, fiance*, girlfriend, boyfriend, married, divorced, widow*, parent, parents,
    mother, father, mom, mum, dad, daughter, daughters, son, sons, child, children, kid, kids, sister, sisters, brother,
    brothers, sibling*, grandmother, grandfather, grandson, granddaughter, nephew, niece, aunt, uncle, cousin, baby,
    salary, wage, wages, income, earns, earnings, debt, debts, mortgage, loan, wealth, savings, net worth, pension, insurance,
    iban, ssn, tax id, bankrupt*, unemployed,
    geburtstag, geboren, jahre alt, staatsangehörig*, krank*, gesund*, allergi*, schwanger, verheiratet, geschieden, ehefrau,
    ehemann, tochter, sohn, kinder, schwester, bruder, gehalt, schulden, evangelisch, katholisch,
    cumpleaños, nacido, nacida, enferm*, embaraz*, casado, casada, esposa, esposo, hija, hijo, hermana, hermano, sueldo, deudas,
    anniversaire, né, née, malad*, enceinte, marié, mariée, épouse, fille, fils, sœur, frère, salaire,
    compleanno, nato, nata, malat*, incinta, sposat*, moglie, marito, figlia, figlio, sorella, fratello, stipendio,
    aniversário, nascido, doen*, grávida, casad*, filha, filho, irmã, irmão, salário,
    zwanger, getrouwd, dochter, zoon, zus, broer, ziekte,
    рожд*, родил*, болезн*, болеет, аллерг*, диабет*, беремен*, женат, замужем, жена, муж, дочь, сын, сестра, брат, зарплат*
"""
"""Who somebody is, how they are, whom they have and what they have: words that few notes about anything else need."""

IDENTITY_SPACELESS = (
    "生日", "出生", "年龄", "国籍", "宗教", "过敏", "糖尿病", "癌", "抑郁", "怀孕", "结婚", "离婚", "妻子", "丈夫",
    "女儿", "儿子", "工资", "用户", "主人", "誕生日", "生まれ", "アレルギー", "妊娠", "既婚", "離婚", "給料", "病気", "생일",
    "알레르기", "임신", "결혼", "이혼", "월급", "아내", "남편",
)  # fmt: skip

OF_SOMEBODY = """
    lives, lived, resides, works, worked, studies, studied, earns, owes, owns, born, married, moved, grew, retired, suffers,
    lives in, i, i'm, im, i've, my, me, he, she, his, her, him, they, their, ich, mein, meine, er, sie, ihr, ihre, wohnt, lebt,
    arbeitet, yo, mi, mis, vive, trabaja, je, j'ai, mon, ma, habite, travaille, vit, io, mio, mia, abita, lavora, eu, meu,
    minha, mora, trabalha, ik, mijn, woont, werkt, я, мой, моя, живёт, живет, работает
"""
"""How a value begins that tells of somebody."""

WHEREABOUTS = """
    address, home, city, town, country, hometown, residence, location, street, postcode, zip, neighbourhood, neighborhood, phone,
    mobile, email, name, employer, workplace, job, salary, bank, wohnort, adresse
"""
"""Words of a key that are about the person where it begins with `pref.` or `lesson.`: a project has an address as well."""

# ---------------------------------------------------------------------------------------------------------------------
# What a statement is made of, one language a table
# ---------------------------------------------------------------------------------------------------------------------

LETTERS = {
    "en": "",
    "de": "äöüß",
    "es": "áéíóúñü",
    "fr": "àâæçèéêëîïôœùûü",
    "it": "àèéìíòóù",
    "pt": "àáâãçéêíóôõú",
    "nl": "áéëïóöü",
    "tr": "âçğıîöşüû",
    "pl": "ąćęłńóśźż",
}
"""Beyond a to z: a small word with another letter is none of the language."""

GLUE = {
    "en": """
        the, of, to, with, and, for, on, at, in, is, are, was, were, has, have, had, from, by, not, over, every, my,
        our, her, his, their, who, uses, called, lives, than, or, about, into, until, between, also, both, since,
        after, before
    """,
    "de": """
        der, die, das, den, dem, des, und, in, mit, von, bei, im, am, ist, sind, hat, einen, eine, ein, einem, einer,
        kein, keine, nicht, zu, zum, zur, für, auf, aus, als, mein, meine, ich
    """,
    "es": """
        el, la, los, las, un, una, de, del, en, con, y, es, son, tiene, para, por, que, al, su, mi, no, como, soy,
        vivo, trabajo, me, le
    """,
    "fr": """
        le, la, les, un, une, des, de, du, en, avec, et, est, sont, pour, par, que, au, aux, dans, sur, mon, ma, mes,
        je, à, chez, son, sa
    """,
    "it": """
        il, lo, la, i, gli, le, un, una, di, del, della, in, con, e, è, sono, per, che, al, a, mio, mia, ha, da, nel,
        come
    """,
    "pt": """
        o, a, os, as, um, uma, de, do, da, em, no, na, com, e, é, são, para, por, que, ao, meu, minha, tem, como, eu
    """,
    "nl": "de, het, een, en, van, in, met, is, zijn, heeft, voor, op, bij, naar, mijn, ik, niet, geen, uit, als",
    "tr": "ve, bir, ile, için, da, de, benim, çok, en",
    "pl": "i, w, z, na, do, jest, ma, nie, się, dla, mój, moja",
}  # fmt: skip
"""Words of which a sentence of the language has at least one."""

OPENERS = {
    "en": """
        a, an, the, my, our, his, her, their, its, i, i'm, he, she, it, we, they, has, is, was, does, no, not, both,
        in, at, on, from, of, for, with, by, near, about, under, between, since, until, every, one, two, three, four,
        five, some, many, most, mr, mrs, ms, dr, born, married, allergic, based, fluent, vegan, vegetarian, left,
        right, native, retired, dark, light, strong, black, white, short, long, own, flight, train, trip, meeting,
        appointment, dinner, lunch, breakfast, birthday, wedding, deadline, holiday, vacation, exam, interview,
        concert, class, course, delivery, reservation, ticket, hotel, budget, timezone, time, version
    """,
    "de": """
        der, die, das, ein, eine, einen, kein, keine, mein, meine, meinen, unser, unsere, sein, seine, ich, er, sie,
        wir, ist, hat, wohnt, lebt, arbeitet, heißt, mag, trinkt, isst, spricht, lernt, fährt, bevorzugt, kommt,
        spielt, allergisch, in, im, bei, am, aus, seit, mit, zwei, drei, vier
    """,
    "es": """
        el, la, los, las, un, una, mi, mis, su, sus, nuestro, yo, ella, es, tiene, vive, vivo, trabaja, trabajo,
        prefiere, prefiero, habla, hablo, come, bebe, soy, tengo, estudia, toca, está, no, en, con, de, desde,
        alérgico, alérgica, dos, tres, me, le
    """,
    "fr": """
        le, la, les, un, une, des, mon, ma, mes, son, sa, ses, notre, je, j'ai, il, elle, nous, est, a, habite,
        travaille, préfère, parle, boit, mange, vit, aime, apprend, joue, allergique, en, à, au, chez, dans, depuis,
        deux, trois, né, née, pas
    """,
    "it": """
        il, lo, la, i, gli, le, un, una, mio, mia, suo, sua, nostro, io, lui, lei, è, ha, vive, abita, lavora,
        preferisce, parla, beve, mangia, studia, suona, sono, ho, vivo, lavoro, preferisco, in, a, da, con, due, tre,
        allergico, allergica, non
    """,
    "pt": """
        o, a, os, as, um, uma, meu, minha, nosso, eu, ele, ela, é, tem, mora, moro, trabalha, trabalho, prefere,
        prefiro, fala, bebe, come, estuda, toca, sou, tenho, em, no, na, com, desde, dois, duas, três, alérgico,
        alérgica, não
    """,
    "nl": """
        de, het, een, mijn, onze, zijn, haar, ik, hij, zij, ze, we, is, heeft, woont, werkt, drinkt, eet, spreekt,
        speelt, leert, geen, in, op, bij, met, sinds, uit, twee, drie, allergisch
    """,
    "tr": "benim, bir, iki, üç, ben, o, biz",
    "pl": "mój, moja, moje, ja, on, ona, ma, jest, mieszka, pracuje, mówi, pije, je, nie, w, z, dwa, dwie",
    "ru": """
        я, он, она, мы, мой, моя, моё, мои, наш, наша, его, её, у, в, во, на, с, из, не, живу, живёт, работает,
        работаю, любит, люблю, предпочитает, предпочитаю, использует, говорит, пьёт, ест, учится, играет, меня, мне,
        две, два, три, аллергия, родился, родилась
    """,
}  # fmt: skip
"""How a statement of more than three words begins. In doubt it is none: most languages order with the bare verb."""

FINITE = """
    lives, works, likes, loves, prefers, uses, wants, speaks, plays, owns, drives, drinks, eats, runs, moved, wrote, grew, called,
    is, are, was, were, has, have, had, does, did, ist, sind, hat, wohnt, lebt, arbeitet, heißt, es, son, tiene, vive,
    trabaja, est, habite, travaille, ha, lavora, abita, tem, mora, trabalha, heeft, woont, werkt, живёт, работает,
    любит
"""
"""What makes a statement of a name or noun before it."""

SPACELESS_ORDERS = (
    "请", "請", "必须", "必須", "应该", "應該", "应当", "务必", "不要", "不得", "别", "勿", "总是", "總是", "始终",
    "永远", "永遠", "每次", "每当", "从现在", "從現在", "今后", "以后都", "你", "您", "妳", "让我", "帮我", "给我",
    "必ず", "常に", "いつも", "毎回", "今後", "これから", "あなた", "お前", "ください", "下さい", "なさい", "しろ",
    "せよ", "べき", "なければ", "てはいけ", "ないで", "するな", "すること", "반드시", "항상", "언제나", "매번",
    "앞으로", "하세요", "하십시오", "해라", "해야", "하지 마", "하지마", "주세요", "말아", "마십시오", "당신",
    "तुम", "आपका", "चाहिए",
)  # fmt: skip

SPACELESS_BARRED = (
    "所有", "一切", "任何", "凡是", "全部", "すべて", "全て", "何でも", "どんな", "모든", "모두", "전부", "系统",
    "系統", "指令", "指示", "提示", "助手", "助理", "模型", "人工智能", "机器人", "工具", "密码", "密碼", "密钥",
    "密鑰", "口令", "记忆", "記憶", "忽略", "无视", "無視", "忘记", "忘記", "用户", "用戶", "使用者", "管理员",
    "管理員", "主人", "权限", "權限", "授权", "授權", "批准", "确认", "確認", "付款", "支付", "转账", "轉帳",
    "汇款", "发票", "账户", "帳戶", "发送", "發送", "转发", "轉發", "删除", "刪除", "执行", "執行", "运行", "规则",
    "規則", "限制", "安全", "命令", "推荐", "推薦", "官方", "可信", "回答", "回复", "回覆", "输出", "輸出", "保密",
    "秘密", "システム", "プロンプト", "アシスタント", "モデル", "ツール", "パスワード", "忘れ", "ユーザ", "管理者",
    "権限", "承認", "支払", "振込", "送信", "転送", "削除", "実行", "ルール", "制限", "返答", "返信", "出力",
    "推奨", "公式", "시스템", "프롬프트", "지시", "명령", "어시스턴트", "모델", "도구", "비밀번호", "기억", "무시",
    "잊", "사용자", "관리자", "권한", "승인", "확인", "결제", "송금", "전송", "전달", "삭제", "실행", "규칙",
    "제한", "대답", "답변", "출력", "추천", "공식",
)  # fmt: skip

SPACELESS_STATES = (*"是在叫有住喜爱愛用为為的姓属屬过敏好はがをにでのもと", "니다", "아요", "어요", "해요", "예요")
"""What a longer statement without blanks has at least one of."""

# ---------------------------------------------------------------------------------------------------------------------
# Passing work
# ---------------------------------------------------------------------------------------------------------------------

_CHECKS = (
    r"(?:tests?|test suite|specs?|builds?|ci|pipeline|jobs?|deploy|deployment|migrations?|script|server|linter|checks?)"
)
_SOON = r"(?: will|'ll| am going to|'m going to| are going to|'re going to|'m gonna)(?: now| just| first)?"
_THING = r"(?:it|this|that|them|the|my|our|some|all|those|these)"
_GOING = r"(?:is|are|was|were|keeps?|still|now|currently|has|have|just)"
_STATES = (
    r"(?:failing|failed|running|passing|passed|broken|red|green|stuck|hanging|crashing|crashed|down|done|finished)"
)
PASSING = (
    r"\blet (?:me|us) (?:check|see|look|take a look|try|think|test|run|fix|debug|verify|read|confirm|finish)\b",
    r"\blet's (?:check|see|look|try|run|go|fix|move on|start|continue)\b",
    r"\b(?:come|coming|get|getting) back to (?:this|that|it)\b",
    rf"\b(?:i|we){_SOON} (?:check|come back|look into|look at|take a look|try|get back|investigate|debug|rerun|retry|continue)\b",
    rf"\b(?:i|we){_SOON} (?:see if|see what|wait for|restart the|fix {_THING}|test {_THING}|run {_THING})\b",
    r"\bworking on (?:it|this|that|them|fixing|getting)\b",
    r"\bworking on (?:the|a|my|our) (?:\w+ )?(?:bug|fix|tests?|issue|ticket|build|error|patch|pr|branch|failure)\b",
    r"(?:^|\b(?:am|is|are|still|now|currently|just) |'m |'re )(?:investigating|debugging|rerunning|retrying)\b(?! is\b)",
    r"\b(?:looking|digging) into (?:it|this|that|the)\b",
    rf"\b{_CHECKS} (?:{_GOING} ){{1,3}}{_STATES}\b|\b{_CHECKS} (?:fails?|failing|failed|keeps? failing)\b",
    rf"\b(?:running|executing|rerunning|fixing|starting|waiting for) (?:{_THING} )?(?:\w+ )?(?:{_CHECKS}|step)\b",
    r"\b(?:currently|now|right now) (?:at|on) (?:step|line|page|task|part)\b",
    r"\b(?:currently|now|right now) (?:running|executing|working on|stuck|blocked|debugging|testing|fixing|waiting)\b",
    r"\b(?:at|on|running|finished|doing|done with|stuck at|stuck on|reached|starting) (?:step|task|todo|part) ?#?\d+\b",
    r"\bstep \d+ (?:of|is|done)\b|\b(?:work )?in progress\b|\bwip\b|\bto be continued\b|\babout to\b",
    r"\bnot (?:done|finished|ready) yet\b|\balmost (?:done|finished|there|ready)\b",
    r"\b(?:hold|hang) on\b|\bbe right back\b|\bbrb\b",
    r"\b(?:one|just a|wait a|give me a) (?:moment|second|sec|minute|min)\b",
    r"\bwaiting (?:for|on) (?:the|it|this|that|him|her|them|ci|review|feedback|approval|an answer)\b",
    r"\b(?:i am|i'm|we are|we're) (?:stuck|blocked|busy|tired|hungry|late|on it|on my way)(?: (?:right )?now| today)?[.!]?$",
    r"\b(?:in a meeting|on the train|on the bus|on a call|at lunch|having (?:lunch|dinner|breakfast))(?: right now| now)?[.!]?$",
    r"\bright now\b|\bat the moment\b|\bfor the moment\b|\bfor now\b|\bjust now\b",
    # German
    r"\blass (?:mich|uns) (?:mal |kurz |erst )?(?:nachsehen|schauen|prüfen|sehen|gucken|testen|versuchen|nachdenken|überlegen)\b",
    r"\bich (?:schaue|sehe|prüfe|teste) (?:mal|kurz|gleich|das|es|jetzt|nach)\b",
    r"\b(?:arbeite|sitze|bin) (?:gerade|noch|jetzt) (?:an|daran|dabei)\b",
    r"\b(?:gerade|momentan|zurzeit) (?:bei|an|in) (?:schritt|zeile|phase)\b|\bmoment mal\b",
    r"\bim moment(?! de)\b|\bkomme (?:später )?darauf zurück\b",
    r"\b(?:tests?|build|pipeline|skript) (?:schlägt|schlagen|läuft|laufen|ist|sind|hängt) (?:fehl|durch|rot|grün|kaputt)\b",
    r"\b(?:tests?|build|pipeline|server|skript) (?:schlägt|schlagen|läuft|laufen|ist|sind|hängt) (?:gerade|noch|jetzt)\b",
    # Spanish, French, Italian, Portuguese
    r"\b(?:déjame|déjeme|voy a|vamos a) (?:ver|revisar|comprobar|mirar|probar|pensar|investigar)\b",
    r"\ben el paso \d",
    r"\bestoy (?:trabajando en (?:ello|esto|eso)|revisando|investigando|probando)\b",
    r"\b(?:ahora mismo|en este momento|de momento|por ahora)\b",
    r"\b(?:la prueba|las pruebas|el test|los tests) (?:está|están|falla|fallan|falló)\b",
    r"\b(?:laisse-moi|laissez-moi|je vais|on va) (?:voir|vérifier|regarder|essayer|tester|réfléchir)\b",
    r"\bvoyons\b|\bà l'étape \d",
    r"\bje (?:vérifie|travaille dessus|suis en train|reviens)\b|\b(?:pour l'instant|en ce moment|en cours)\b",
    r"\bles? tests? (?:échoue|échouent|passe|passent|plante|plantent)\b",
    r"\b(?:fammi|lasciami|sto per) (?:vedere|controllare|provare|verificare|pensare)\b|\bvediamo\b",
    r"\bal passo \d",
    r"\bsto (?:controllando|provando|verificando|indagando|lavorandoci)\b",
    r"\b(?:al momento|per ora|in corso|in questo momento)\b",
    r"\b(?:il test|i test) (?:fallisce|falliscono|sta|stanno)\b",
    r"\b(?:deixa eu|deixe-me|deixa-me|vou|vamos) (?:ver|verificar|checar|olhar|testar|tentar|pensar|investigar)\b",
    r"\bno passo \d",
    r"\bestou (?:trabalhando nisso|verificando|investigando|testando)\b",
    r"\b(?:no momento|por enquanto|neste momento|em andamento)\b",
    r"\b(?:o teste|os testes) (?:está|estão|falha|falham|falhou)\b",
    # Dutch, Russian, Polish, Turkish
    r"\blaat (?:me|mij|ons) (?:even |eens )?(?:kijken|checken|zien|controleren|proberen|denken)\b",
    r"\b(?:bij|op) stap \d",
    r"\bik (?:ben er mee|ben ermee) bezig\b|\b(?:op dit moment|voorlopig)\b",
    r"\b(?:de test|de tests) (?:faalt|falen|draait|draaien|loopt|lopen)\b",
    r"\bдай(?:те)? (?:мне )?(?:проверить|посмотреть|подумать|глянуть)\b",
    r"\bсейчас (?:проверю|посмотрю|гляну|смотрю|проверяю|на шаге)\b|\bна шаге \d",
    r"\bработаю над (?:этим|ним|ней)\b|\bразбираюсь\b|\b(?:на|в) данный момент\b|\bпока что\b",
    r"\bтесты? (?:падает|падают|идёт|идут|не прохо\w+)\b",
    r"\bdaj(?:cie)? mi (?:sprawdzić|zobaczyć)\b|\bzaraz sprawdzę\b|\bsprawdzam\b|\bpracuję nad tym\b",
    r"\bna razie\b|\bw tej chwili\b",
    r"\b(?:bakayım|kontrol ed(?:eyim|iyorum)|üzerinde çalışıyorum|inceliyorum|şu anda?|şimdilik)\b",
    r"\btest(?:ler)? (?:başarısız|çalışıyor|geçmiyor)",
    # Chinese, Japanese, Korean
    r"让我(?:看|查|检查|想|试)|我(?:来|先|再)(?:看|查|检查|试)|测试(?:失败|没过|正在|还在|跑)|稍等|等一下|暂时",
    r"(?:目前|现在|当前)(?:在|处于)?第.{1,3}步",
    r"(?:正在|在)(?:运行|调试|排查|检查|测试|修复|处理|安装|编译|部署|调查)",
    r"(?:確認|調査|テスト|実行|修正|デバッグ|作業|検討|対応|インストール|ビルド|デプロイ)中",
    r"(?:見て|調べて|確認して|試して|やって)み(?:ます|る)",
    r"ちょっと待って|少々お待ち|テストが(?:失敗|落ち|通)|今のところ|とりあえず|ステップ ?\d",
    r"(?:확인|조사|테스트|실행|수정|디버깅|작업|처리|설치|빌드|배포) ?중|확인해 ?볼게|살펴볼게|잠깐만|잠시만",
    r"테스트가 (?:실패|돌)|지금은|일단은|\d+ ?단계",
)
"""Patterns of phrases about the work of the moment, met by a text in folded form. No one of them is about where somebody
works or what they do for years."""
