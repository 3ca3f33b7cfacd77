"""The words by which `support` tells a statement from a denial, a question, a condition, a pretence or a report.

Data, one table an idea, all languages together: a message is not told its language first, and a word that means denial
in one language costs at most a miss in another. `clawmark.facts.listed` tells how a table is read. As in a message, what is
elided is a word of its own: `j aime`.
"""

from __future__ import annotations

from clawmark.facts.listed import Phrases as Phrases
from clawmark.text import STOP_WORDS, normal

SPACELESS = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Scripts whose words are not, or not wholly, parted by blanks; for a character class. In normal form."""

NEGATION = Phrases(
    """
    not, never, cannot, neither, nor, none, nothing, nobody, hardly, barely, rarely, seldom, refuse, refuses, dont,
    doesnt, didnt, cant, wont, isnt, arent, wasnt, wouldnt, aint, hate, hates, dislike, avoid, nope, nah, far from,
    anything but, false, untrue, wrong, except, despise, loathe, doubt, doubts, deny, denied, disagree, will ever,
    would ever, zero, sober, off of, i'm off, free of,
    free from, sucks, annoys, annoying, terrible, awful, horrible, useless, garbage, overrated, on my nerves,
    drives me, nervt,
    schrecklich, swore off, cut out, bezweifle, dudo, doute, dubito, duvido, betwijfel, сомневаюсь,
    nicht, nichts, kein*, nie, niemals, weder, nein, niemand, außer, hasse,
    nunca, jamás, jamas, ni, tampoco, nada, ningún, ninguna, odio, detesto,
    ne, n, pas, jamais, aucun, aucune, non, rien, déteste,
    né, nessun*, mai più, nemmeno, neanche,
    não, nao, nem, nenhum, nenhuma, odeio, detesto,
    niet, niets, geen, nooit, nee, noch ik,
    не, нет, никогда, ни, ничего, ненавижу, ні, nie,
    δεν, μην, όχι, inte, ikke, değil, लہीं, नहीं, मत, لا, ليس, لم, لست, לא, אין,
    ない, ません, なく, なかった, じゃな, 嫌い, いいえ, 不, 没, 沒, 别, 別に, 勿, 讨厌, 討厭, 從未, 从未,
    안 , 않, 못, 없, 아니, 말고, 지 마, 지마, 싫
    """
)
"""`n't` at the end of a word is one as well, and `no` where nothing looks Portuguese: there it means "in the"."""

LACK = Phrases(
    """
    without, minus, down from, up from, compared to, compared with, instead of, rather than, replaced, replacing,
    ohne, statt, anstatt, sin, en vez de, en lugar de, sans, au lieu de, plutôt que, senza, invece di,
    al posto di, sem, em vez de, ao invés de, zonder, in plaats van, без, вместо
    """
)
"""Denies what follows, never what stands before."""

PORTUGUESE = Phrases("eu, meu, minha, moro, você, gosto, trabalho, nasci, não, estou, prefiro, nossa")

DROPPED = Phrases(
    """
    used to, no longer, anymore, any more, formerly, previously, former, previous, ex, considered, rejected,
    evaluated, tried, discarded, scrapped,
    deprecated, obsolete, wanted, is out, is gone, is dead, is history, used, lived, worked,
    preferred, liked, loved, owned, stopped, stop, quit, gave up,
    given up, giving up, dropped, ditched, abandoned, uninstalled, sold, got rid, rid of, moved away, moving away,
    moved out, out of, goodbye, enough of, tired of, sick of, cancelled, canceled, was, were, had, hadn't, i left,
    i've left, we left, have left, leaving, done with, over with, back then, in the past,
    until recently, lapsed, expired, retired from, got over, fed up, bye,
    nicht mehr, früher, ehemals, ehemalig*, damals, aufgehört, gekündigt, verlassen, war, hatte, weg von,
    alte, alter, altes, alten, vormals, ehem, adieu, genug von,
    ya no, solía, solia, dejé, deje de, he dejado, era, antiguo, antigua, antiguamente, usaba,
    vivía, trabajaba, tenía, anterior, dejado,
    je plus, autrefois, arrêté, quitté, ancien, ancienne, était, étais, avais, auparavant,
    habitais, utilisais, jadis, marre de, plus jamais,
    smesso, lasciato, ero, usavo, abitavo, avevo, una volta, vecchio, vecchia, basta,
    deixei, parei, costumava, antigamente, já não, morava, usava, tinha, antigo, antiga,
    vroeger, gestopt, voormalig*, voorheen, oude, woonde, gebruikte, had,
    раньше, бывш*, перестал*, бросил*, прежде, прежн*, был, была, были, жил, жила, больше не, когда-то, старый,
    以前, 昔, かつて, やめ, 辞め, 止め, の代わり, ていた, ていました, でした, だった, 卒業, 曾, 过去, 過去, 不再,
    原来, 从前, 從前,
    放弃, 放棄, 戒了, 而不是, 之前, 예전, 옛날, 그만, 더 이상, 대신, 했었, 살았, 썼었, 였어, 이었, 끊었, 전에
    """
)
STILL_SO = Phrases("was born, was named, was raised, were born, years old, year old, months old, weeks old")
"""What looks dropped and is not."""

BEFORE_NOW = Phrases("old, earlier, antes, avant, prima, vorher, before")
BEFORE_WHAT = frozenset("de di the i you we each every any le la les que d he meeting pushing".split())
"""`antes de` is an order, `antes` alone a past."""

COMPARED = Phrases(
    """
    than, versus, vs, over, als, dan, чем, más que, mejor que, mieux que, plus que, più di, mais que
    """
)
PREFERS = Phrases(
    """
    prefer*, chose, choose, pick, picked, favor, favour, better, worse, more, rather, less, bevorzug*, lieber, besser,
    mehr, prefier*, mejor, peor, más, préfèr*, mieux, pire, prefer*, meglio, peggio, melhor, pior, liever, beter,
    лучше, хуже, предпочита*
    """
)

LEAVING = Phrases(
    """
    switch*, move, moved, moving, migrat*, chang*, convert*, transition*, replac*, went, swapped, wechs*, gewechselt,
    umgestiegen, umgezogen, zog, ziehe, gezogen, cambi*, mud*, pas*, déménag*, chang*, trasferit*, passat*, troqu*,
    overgestapt, verhuisd, перешёл, перешел, перешла, переехал*, 引っ越, 移, 変え, 換え, 替え, 搬, 换, 換, 改, 바꾸,
    바꿨, 옮,
    이사, 갈아탔
    """
)
FROM = frozenset("from von de da desde van с со из du des dal dalla del do".split())
TO = frozenset("to auf zu nach a à ao para naar op на в au aux al alla into".split())

CONDITION = Phrases(
    """
    if, unless, when, whenever, in case, suppose, supposing, supposed to, assume, assuming, provided, as long as,
    whether,
    would, might, i may, we may, maybe, perhaps, possibly, probably, could, thinking about, thinking of,
    considering, consider,
    wondering, not sure, unsure, wish, hope, hoping, dream, dreaming, planning, plan to, someday, one day,
    would love to,
    tempted, about to, i'd love to, guess, otherwise, i'd, were i, had i, should i, i'll try, trying, else,
    wenn, falls, sobald, würde, könnte, vielleicht, ob, sofern, möglicherweise, überlege, hätte, wäre, hoffe,
    wünschte,
    si, cuando, quizá, quizás, tal vez, ojalá, sería, podría, usaría, viviría, pensando en, espero,
    quand, lorsque, peut-être, serait, pourrait, voudrais, aimerais, au cas où, espère, envisage,
    quando, forse, magari, vorrei, sarebbe, potrebbe, qualora, talvez, seria, caso, tomara, oxalá,
    als ik, als we, als je, als het, indien, misschien, zou, wanneer, mocht, hoop,
    если, когда, может, возможно, бы, хотел, хотела, наверное, думаю,
    もし, たら, れば, なら, 場合, かもしれ, かも, たい, つもり, 如果, 假如, 要是, 的话, 的話, 也许, 也許, 可能,
    万一, 若,
    만약, 만일, 다면, 으면, 하면, 아마, 싶
    """
)
POLITE_WISH = Phrases(
    """
    would like, would prefer, would rather, i'd like, i'd prefer, i'd rather, würde gern, würde lieber, hätte gern,
    hätte gerne
    """
)
UNFULFILLED = Phrases("like to live, like to move, like to be, like to try, like to know, like to see, like to visit")

PRETENCE = Phrases(
    """
    pretend, pretending, imagine, imagining, let's say, lets say, hypothetical*, suppose, role-play, roleplay,
    role-playing, roleplaying, for the sake of, as a joke, joking, kidding, kiddin, jk, lol not, sarcasm, fictional,
    in the story, in this story, act as, in a dream, i dreamed, i dreamt, for example, for instance, e.g, just a test,
    test data, as if, what if, let's play, say that i, make believe, placeholder, dummy, example, in this game,
    sarcastically,
    as though, alter ego, in character, ha ha, haha, hahaha, demo account, test account, sandbox, nonsense,
    made up, made-up, fake, let's test, test your, testing, a lie, lies, bluff, parody,
    unsinn, quatsch, mentira, tontería, n importe quoi, sciocchezza, bobagem, onzin, ерунда, 嘘, 胡说, 骗你, 거짓말,
    stell dir vor, stellen sie sich vor, angenommen, tu so, nehmen wir an, rollenspiel, nur spaß, scherz,
    zum beispiel,
    witz, spielen wir, als ob,
    imagina, imaginemos, supongamos, finge, finjamos, juego de rol, broma, por ejemplo, digamos, es coña,
    imagine*, imaginons, supposons, faisons semblant, fais semblant, jeu de rôle, blague, par exemple, disons,
    je plaisante,
    immagina, supponiamo, facciamo finta, fai finta, fingi, gioco di ruolo, scherzo, scherzavo, per esempio, diciamo,
    ad esempio, imaginemos, suponhamos, finja, faz de conta, brincadeira, por exemplo, digamos,
    stel je voor, stel dat, doe alsof, rollenspel, grapje, bijvoorbeeld, laten we zeggen,
    представь, представим, допустим, притвор*, предположим, ролев*, шутка, шучу, например, скажем,
    冗談, 想像して, 仮に, 例えば, ふりをして, ロールプレイ, と仮定, 假装, 假裝, 想象, 想像, 假设, 假設, 开玩笑,
    開玩笑, 比如, 例如, 角色扮演,
    扮演, 상상해, 가정해, 농담, 예를 들, 역할극, 척해, 인 척
    """
)
ROLE_PLAY = Phrases(
    """
    role-play, roleplay, role-playing, roleplaying, rollenspiel, juego de rol, jeu de rôle, gioco di ruolo,
    rollenspel,
    jogo de papéis, ролевая, ロールプレイ, 角色扮演, 역할극
    """
)
OVER = Phrases(
    """
    end, over, no more, stop, enough, done, finished, out of, ende, schluss, fin, fine, fim, basta, einde, конец,
    終わり, 结束, 끝
    """
)

REPORT = Phrases(
    """
    said, says, say, saying, told, tells, thinks, claims, claimed, claiming, asked, asks, wrote, writes, reckons,
    heard,
    according to, recommend, recommends, recommended, suggests, suggested, advises, advised, mentions, mentioned,
    reads,
    states, stated, apparently, allegedly, supposedly, reportedly, rumour, rumor, swears, insists, insisted, believes,
    you think, quote, quoting, titled, called it, article, tweet, lyrics, they say, read that, advertises,
    announced, shows, showed, showing, displays, displayed,
    popped up, pops up, appeared, appears, came up, instructs, warns, warned, prints, printed, logs, logged,
    returned, returns,
    tipped, texted, emailed, messaged, pasted, copied,
    sagt, sagte, sagten, meint, meinte, schreibt, schrieb, laut, behauptet, angeblich, empfiehlt, findet, gehört dass,
    erzählt, erzählte, heißt es,
    dice, dicen, dijo, dicho, según, recomienda, opina, cree, contó, escribió, supuestamente, afirma, diz, disse,
    segundo,
    recomenda, acha, escreveu, dizem, dit, disent, selon, recommande, pense que, écrit, raconte, prétend, paraît,
    parait, d après, après lui, dice che, detto, secondo, consiglia, pensa, scritto, pare,
    zegt, zei, zeggen, volgens, vindt, schreef, beweert, raadt, schijnbaar, blijkbaar,
    сказал*, говорит, говорят, пишет, написал*, считает, советует, якобы, слышал*, согласно, утверждает,
    と言, って言, そうです, らしい, によると, だって, とのこと, 说, 說, 听说, 聽說, 据说, 據說, 告诉我, 认为, 推荐,
    推薦, 建议, 라고 했,
    다고, 대요, 래요, 라고 말, 라고 해, 따르면
    """
)
OWN_REPORT = Phrases("i said, as i said, i say, like i said, i told you, i mentioned, as i mentioned")

PRONOUN = Phrases(
    """
    he, she, they, his, her, hers, him, their, them, theirs, he's, she's, they're, they've, everyone, everybody,
    someone,
    somebody, people, folks, anyone, who, er, seine, seiner, ihm, jemand, manche, leute, viele, él, ella, ellos,
    ellas,
    su, sus, alguien, gente, elle, ils, elles, lui, leur, quelqu'un, gens, lei, loro, qualcuno, suo, sua, ele, ela,
    eles,
    elas, seu, alguém, hij, zij, ze, hun, zijn vrouw, haar, iemand, mensen, он, она, они, его, её, ее, их, кто-то,
    люди,
    彼, 彼女, あの人, 他, 她, 他们, 她们, 有人, 大家, 그는, 그녀, 그들
    """
)

PERSONS: dict[str, Phrases] = {
    concept: Phrases(listed)
    for concept, listed in {
        "wife": "wife, frau, esposa, mujer, femme, moglie, mulher, vrouw, жена, жену, жены, 妻, 奥さん, 老婆, 아내",
        "husband": "husband, mann, marido, mari, marito, man, муж, мужа, 夫, 旦那, 丈夫, 老公, 남편",
        "partner": "partner, partner*, spouse, fiancé, fiancée, girlfriend, boyfriend, novia, novio, copine, copain, "
        "ragazza, ragazzo, namorada, namorado, девушка, парень, 恋人, 彼氏, 女朋友, 男朋友, 여자친구, 남자친구",
        "daughter": "daughter, daughters, tochter, hija, fille, figlia, filha, dochter, дочь, дочка, 娘, 女儿, 女兒, 딸",
        "son": "son, sons, sohn, hijo, fils, figlio, filho, zoon, сын, 息子, 儿子, 兒子, 아들",
        "kid": "kid, kids, child, children, kinder, hijos, enfants, figli, filhos, kinderen, дети, ребёнок, "
        "子供, 子ども, 孩子, 아이들",
        "mother": "mother, mom, mum, mutter, mama, madre, mère, maman, mamma, mãe, moeder, мать, мама, 母, 妈妈, 媽媽, "
        "어머니, 엄마",
        "father": "father, dad, vater, papa, padre, père, papà, pai, vader, отец, папа, 父, 爸爸, 아버지, 아빠",
        "sister": "sister, sisters, schwester, hermana, sœur, soeur, sorella, irmã, zus, сестра, 姉, 妹, 姐姐, 누나, "
        "언니, 여동생",
        "brother": "brother, brothers, bruder, hermano, frère, fratello, irmão, broer, брат, 兄, 弟, 哥哥, 오빠, 남동생",
        "boss": "boss, boss's, manager, supervisor, lead, chef, chefin, jefe, jefa, patron, patronne, capo, chefe, baas, "
        "начальник, начальница, 上司, 老板, 老闆, 상사",
        "friend": "friend, friends, friend's, buddy, mate, pal, freund, freundin, freunde, amigo, amiga, ami, amie, amico, "
        "amica, vriend, vriendin, друг, подруга, 友達, 友人, 朋友, 친구",
        "colleague": "colleague, colleagues, coworker, co-worker, coworkers, teammate, kollege, kollegin, colega, "
        "collègue, collega, коллега, 同僚, 同事, 동료",
        "neighbour": "neighbour, neighbor, nachbar, nachbarin, vecino, vecina, voisin, voisine, vicino, vicina, vizinho, "
        "buurman, buurvrouw, сосед, соседка, 隣人, 邻居, 이웃",
        "doctor": "doctor, dentist, therapist, arzt, ärztin, médico, médecin, medico, arts, врач, 医者, 医生, 의사",
        "dog": "dog, dogs, hund, perro, perra, chien, chienne, cane, cachorro, hond, собака, 犬, 狗, 강아지",
        "cat": "cat, cats, katze, kater, gato, gata, chat, chatte, gatto, gatta, kat, кошка, кот, 猫, 貓, 고양이",
        "client": "competitor, competitors, vendor, supplier, rival, client, customer, customers, clients, "
        "kunde, kundin, cliente, klant, клиент, 客户, 고객",
        "teacher": "teacher, professor, landlord, roommate, flatmate, uncle, aunt, cousin, grandma, grandpa, grandmother, "
        "grandfather, nephew, niece, onkel, tante, oma, opa, tío, tía, abuela, abuelo, primo, prima de, "
        "mitbewohner, 先生, 老师, 선생님",
    }.items()
}

ABOUT_OTHERS = Phrases(
    """
    uses, likes, prefers, loves, hates, lives, works, wants, eats, drinks, plays, speaks, drives, owns, studies,
    teaches,
    wears, enjoys, needs, writes, codes, knows, moved in, benutzt, nutzt, verwendet, mag, liebt, wohnt, lebt,
    arbeitet,
    trinkt, isst, bevorzugt, usa, vive, prefiere, trabaja, bebe, prefiero que, utiliza, préfère, utilise, habite, vit,
    travaille, boit, aime, preferisce, abita, lavora, beve, mora, prefere, trabalha, gosta, gebruikt, woont, werkt,
    drinkt, zog, kaufte, mudó, compró, eligió, déménagé, acheté, trasferito, trasferita, comprato, mudou, comprou,
    verhuisde, kocht, went, got, bought, took, chose, picked, became, began, quits, goes, runs, использует,
    пользуется, живёт, живет, предпочитает, любит, работает, пьёт, пьет
    """
)
"""Verbs in the third person: of the fact's own subject, where the key names it."""

OWNER = Phrases(
    """
    i, i'm, i've, i'd, i'll, im, ive, my, me, mine, we, we're, we've, our, us, ours, myself, ich, mein*, mir, mich,
    wir,
    unser*, uns, yo, mi, mis, nosotros, nuestro, nuestra, je, j, mon, ma, mes, moi, m, nous, notre, nos, io, mio,
    mia, miei,
    noi, nostro, eu, meu, minha, meus, nós, nosso, ik, mijn, wij, ons, onze, я, мой, моя, моё, мое, мои, мне, меня,
    мы, наш
    """
)

STARTS = Phrases(
    """
    i, i'm, i've, i'd, i'll, im, ive, my, we, we're, we've, our, ich, mein*, wir, unser*, yo, mi, mis, je, j, mon,
    mes,
    nous, notre, io, mio, mia, eu, meu, minha, ik, mijn, wij, я, мой, моя, моё, мое, мои, мне, у меня, мы, наш,
    uso, utilizo, vivo, trabajo, prefiero, tengo, soy, estoy, abito, preferisco, lavoro, sono, moro, prefiro,
    trabalho, sou
    """
)
SUBJECTS = frozenset("i we ich wir yo nosotros je j nous io noi eu nós ik wij я мы أنا".split())
STATES = Phrases(
    """
    am, are, live, use, prefer, like, love, enjoy, work, drive, ride, play, speak, have, own, run, drink,
    eat, study, write, program, code, weigh, wear, start, finish, teach, sleep, wake up, get up, go, commute,
    cycle, sing, paint, collect, grow, train, practise, practice, do, keep, code in, switched to, switched from,
    moved to, joined, migrated to, upgraded to, started using, am called, was born, can't eat, don't eat, take,
    follow, subscribe to, pay, celebrate, support, listen to, learn, learn best, watch, attend, cook, bake, swim,
    volunteer, manage, lead, suffer from, identify as, bank with, belong to, specialise in, specialize in,
    develop, design, sell, maintain, raise, knit, draw, dance, swear by, rely on, favour, favor, smoke, shop at,
    vote, hike, climb, ski, surf, row, travel by, fly, meditate, coach, organise, bike, walk, jog, dislike,
    deploy, ship, test with, lint with, format with, build with, manage with, communicate, type, publish, blog,
    stream, garden, repair, restore, care for, look after, always want, report to, major in, schaue, höre, koche,
    backe, schwimme, lese, schreibe, reite, wandere, tanze, singe, male, nehme, leide an, unterrichte, kaufe,
    bin bei, leite, führe, züchte, gehe, mache, bin, sind, wohne, wohnen, lebe, arbeite, arbeiten, heiße, heisse,
    nutze, nutzen, benutze, verwende, verwenden, trinke, esse, mag, liebe, spiele, fahre, spreche, lerne,
    studiere, bevorzuge, habe, hab, haben, komme aus, trage, wiege, utilise, habite, vis, travaille,
    préfère, aime, adore, bois, mange, parle, joue, suis, ai, m appelle, étudie, conduis, écris, lis, fais,
    écoute, regarde, nage, cuisine, cours, apprends, prends, vais, utilisons, sommes, avons, mesure, pèse, woon,
    werk, gebruik, heet, eet, speel, spreek, rijd, ben, heb, hou van, studeer, lees, zwem, fiets, kook,
    luister naar, kijk, geef les, rook, leer, schrijf, zijn, gebruiken, wonen, kom uit, живу, работаю, использую,
    пользуюсь, люблю, предпочитаю, пью, ем, играю, говорю, езжу, пишу, изучаю, учу, أسكن, أعيش, أعمل
    """
)
"""What holds of its subject for some time, in the first person of the present, or as the outcome of a change."""
STATES_ALONE = Phrases(
    """
    i'm, im, we're, i've got, ive got, we've got, i've been a, i've been an, i've switched to, i've moved to,
    i'm called, allergic, based, born, prefer, bin, wohne, lebe, arbeite, heiße, heisse, nutze, benutze,
    verwende, hab, habe, trinke, esse, spiele, fahre, spreche, lerne, studiere, bevorzuge, vivo, soy, estoy,
    tengo, uso, utilizo, trabajo, prefiero, me llamo, me gusta, me gustan, me encanta, me encantan, bebo, tomo,
    hablo, toco, juego, estudio, conduzco, peso, mido, nací, somos, vivimos, trabajamos, usamos, tenemos,
    escribo, escucho, leo, cocino, bailo, nado, corro, aprendo, enseño, colecciono, desayuno, ceno, fumo, viajo,
    hago, practico, moro, sou, estou, tenho, trabalho, prefiro, gosto, adoro, falo, estudo, me chamo, chamo-me,
    jogo, nasci, dirijo, ouço, leio, cozinho, danço, ensino, faço, pratico, coleciono, abito, sono, ho, lavoro,
    preferisco, mi chiamo, mi piace, mi piacciono, bevo, parlo, suono, studio, guido, mangio, gioco, ascolto,
    leggo, cucino, ballo, nuoto, imparo, insegno, faccio, viaggio, amo, scrivo, меня зовут, живу, работаю,
    предпочитаю, люблю, пользуюсь, использую, мне нравится, у меня, мене звати, μένω, χρησιμοποιώ, δουλεύω
    """
)
"""The same with their subject in them, or left out as people do in a chat."""
DOING = frozenset(
    """
    living working using running training learning studying writing moving building driving playing getting
    teaching coding speaking drinking eating taking
    """.split()
)
"""What "I'm" may be followed by in -ing and hold for some time."""
OFTEN = frozenset(
    """
    always mostly usually generally normally mainly only still now currently really also just actually personally
    often
    exclusively already primarily both all absolutely
    immer meist meistens normalerweise nur noch jetzt auch hauptsächlich gerade selbst aktuell eigentlich derzeit
    gern gerne
    siempre normalmente solo ahora también ya principalmente actualmente toujours surtout aujourd'hui maintenant
    aussi sempre
    ora adesso anche di solito também agora altijd meestal nu ook voortaan alleen всегда обычно сейчас теперь
    тоже только
    """.split()
)
BREAKS = Phrases(
    """
    that, who, which, whose, where, because, than, as if, like a, how, why, what, when, while, saying, says,
    called out,
    for my, for a friend, i, i'm, im, you, ich, du, je, j, yo, eu, ik, dass, que, wie, afraid, glad, sure, told,
    off, back,
    done, over, sorry, curious, jealous, worried, tired, looking, interested
    """
)
"""What ends a statement about its subject: behind it another one begins."""
IS = Phrases(
    """
    is, are, is called, are called, is named, is at, is on, is from, starts, start, starts at, begins, begin,
    ends, end,
    runs on, is now, ist, sind, heißt, heisst, heißen, lautet, beginnt, es, son, está, se llama, se llaman,
    est, sont, s appelle, s appellent, è, sono, si chiama, si chiamano, é, são, se chama, se chamam, chama-se,
    is, heet,
    heten, зовут, называется, это, है
    """
)
ORDERS = Phrases(
    """
    use, call me, address me, remember, note, save, store, answer, respond, reply, speak, talk, prefer, stick to,
    stick with, i'd prefer, i would prefer, mail me, email me, text me, reach me, contact me, avoid, assume,
    default to, treat me, switch to, keep it, keep me, nutze, nutz, verwende, benutze, nimm, nenn mich,
    nenne mich, antworte, antworten sie, sprich, rede, merk, merke, duze, usa, utiliza, llámame, respóndeme,
    responde, contéstame, contesta, háblame, habla, trátame, pon, recuerda, utilise, utilisez, appelle-moi,
    réponds, réponds-moi, parle-moi, parle, tutoie-moi, chiamami, rispondi, rispondimi, parlami, parla,
    dammi del, me chame, me chama, chame-me, responda, fale, fala, gebruik, noem me, antwoord, praat, spreek,
    onthoud, используй, используйте, отвечай, отвечайте, называй, зови, пиши, говори, запомни
    """
)
"""What is asked of an assistant for good."""
TASKS_KEPT = Phrases(
    """
    i'd like, i would like, i want, i always want, i need, ich hätte gern, ich möchte, quiero, je veux,
    je voudrais, vorrei, quero, ik wil, write, explain, show, show me, give, give me, send, send me, keep, make,
    be, put, format, start, set, list, change, schreib, schreibe, zeig, zeige, gib, mach, sei, escribe,
    escríbeme, dame, muestra, sé, donne, donne-moi, écris, affiche, sois, dammi, scrivi, scrivimi, sii, mostra,
    escreva, mostre, me dê, seja, schrijf, geef, toon, wees, показывай, давай, будь
    """
)
"""What is asked of an assistant for good when its object or an adverb tells so."""
FOR_GOOD = Phrases(
    """
    always, never, from now on, in future, in the future, going forward, by default, every time, in general,
    ever, from you, answers, replies, responses, dates, times, prices, units, amounts, distances, temperatures,
    numbers, summaries, commit messages, reminders, messages, with me, mit mir, conmigo, avec moi, con me,
    comigo, met me, immer, stets, künftig, ab jetzt, in zukunft, grundsätzlich, antworten, preise, siempre,
    de ahora en adelante, a partir de ahora, respuestas, precios, toujours, désormais, dorénavant, réponses,
    sempre, d ora in poi, risposte, prezzi, de agora em diante, a partir de agora, respostas, preços, altijd,
    voortaan, antwoorden, prijzen, всегда, впредь, ответы
    """
)
NO_ORDER = frozenset(
    "a an the it this that these those there here my your our his her their i you he she they we".split()
)
TO_ASSISTANT = Phrases(
    """
    always, never, from now on, in future, in the future, going forward, by default, every time, immer, künftig,
    ab jetzt,
    in zukunft, siempre, de ahora en adelante, a partir de ahora, toujours, désormais, sempre, d ora in poi,
    de agora em diante, altijd, voortaan, всегда, впредь
    """
)
ONCE = Phrases(
    """
    this time, for now, just this once, this once, once, today, tonight, right now, for a minute, for a moment,
    for a sec, diesmal, dieses mal, heute, esta vez, hoy, cette fois, aujourd'hui, stavolta, oggi, desta vez, hoje,
    deze keer, vandaag, сегодня, в этот раз
    """
)
FOR_THIS = Phrases(
    "for this, in this, on this, for that, for the, in the, on the, to this, to the, here, hier, aquí, ici, qui, aqui, здесь"
)
"""What makes a task of an instruction."""
LEAD = Phrases(
    """
    please, pls, plz, hey, hi, hello, ok, okay, so, well, also, and, but, yes, yeah, yep, no, nope, nah, btw,
    by the way, remember to, don't forget to, make sure to, be sure to, save this, remember this, note this,
    one more thing, quick note, note to self, fyi, just so you know, for the record, note, ps, now, then,
    actually, currently, remember, remember that, note that, note for later, keep in mind, keep in mind that,
    don't forget, don't forget that, bear in mind, bear in mind that, save, store, save that, for context,
    as i said, like i said, i said, sorry, sorry i meant, i meant, i mean, i told you, that, it's simple,
    these days, nowadays, as for me, because, about me, important, from now on, always, never, in future,
    by default, generally, usually, mostly, mainly, personally, honestly, instead, can you, could you, would you,
    will you, you can, you should, you may, can you please, could you please, kindly, thanks, thank you,
    good morning, haha, no no, you must know, today, as of today, plus, lol, ugh, hm, hmm, oh, ah, well then,
    in general, as a rule, to be clear, und, aber, bitte, merk dir, merke dir, merk dir bitte, dass, übrigens,
    hallo, moin, ja, nein, ab jetzt, immer, jetzt, notiz, achtung, künftig, ich meine, eigentlich, denk dran,
    weil, denn, hinweis, normalerweise, zurzeit, derzeit, hola, oye, por favor, porfa, recuerda, recuerda que,
    ten en cuenta, ten en cuenta que, que, y, pero, ahora, siempre, por cierto, sí, bonjour, salut, et, mais,
    retiens, retiens que, note que, souviens-toi que, stp, toujours, maintenant, au fait, oui, désormais, car,
    ciao, per favore, ricorda, ricorda che, ricordati che, che, e, ma, sempre, sì, adesso, comunque, perché, oi,
    olá, lembra que, lembre-se que, lembre-se de que, sim, agora, a propósito, porque, mas, hoi, onthoud,
    onthoud dat, dat, en, maar, let op, voortaan, alsjeblieft, trouwens, nu, altijd, want, привет, запомни, и, а,
    но, запомни что, что, кстати, да, пожалуйста, всегда, сейчас, потому что, здравствуйте
    """
)
"""What may stand before a statement of one's own or an instruction and leave it one."""
SINCE = frozenset("since for at as seit ab beruflich depuis desde da dal sinds с за".split())
FILLERS = Phrases(
    """
    please, pls, plz, thanks, thank you, thx, ty, ever, ok, okay, always, yes, no, too, only, just, here, btw,
    now, for me, with me, from you, from now on, in future, in the future, by default, going forward, it's, its,
    a, an, the, bitte, danke, immer, por favor, porfa, gracias, siempre, stp, merci, s il te plaît,
    s il vous plaît, te plaît, toujours, per favore, grazie, sempre, obrigado, obrigada, aub, alsjeblieft,
    dank je, altijd, пожалуйста, спасибо, всегда, and, und, y, et, e, en
    """
)
"""What may stand beside a value that is a whole answer."""
GOES_ON = (
    frozenset(
        """
    now allergic allergisch allergique alérgico alérgica allergico allergica running fyi nightly mornings
    evenings monday tuesday wednesday thursday friday saturday sunday lately recently tbh imho los las une un
    deux trois myself everywhere best most more first called named twice please pls plz thanks btw too always
    ever mostly usually atm rn lol anyway currently nowadays daily weekly originally each every today tonight
    tomorrow since without because instead like using when where near per via during after before last next old
    years year tall this that these it's its i'm im mit in am an auf für und oder aber seit bei als von aus zu
    zum zur weil denn gern gerne auch immer jetzt bitte noch gegen ist bin sowie da also beim über unter nach um
    damit jeden jede elke tous toutes todos todas tutti каждый каждое y o en con de del desde para por como pero
    porque a al la el es soy siempre porfa también ahora que muy et ou à au aux avec du des depuis pour comme
    mais car chez dans sur est suis toujours stp ne sans donc e di nel nella dal come ma perché sono anche sempre
    adesso quindi com em no na do pra mas também agora met op van voor sinds bij maar want ook altijd nu aub
    graag и в на с у для из но а как потому тоже всегда है
    """.split()
    )
    | STOP_WORDS
)
"""What may follow a value whose words are complete: "30" is not what "30 tabs" says."""

ABOUT_TEXT = Phrases(
    """
    translate, translation, proofread, rephrase, reword, rewrite, polish this, polish my, polish it, paraphrase,
    summarise, summarize, tldr, cover letter, how do i say, how do you say, how would you say,
    correct english, correct german, correct french, correct spanish, sound natural, sound better, sound nicer,
    sound more, grammatical, grammar, first person, dating profile, profile text, example sentence, sample,
    subject line, autocomplete, übersetz*, formulier*, korrigier*, korrektes, auf deutsch richtig, traduc*,
    traduis*, traduz*, corrige*, reformul*, traduire, vertaal*, verbeter, corregg*, переведи*, исправь, перевод,
    翻译, 翻譯, 翻訳, 訳して, 添削, 번역, 고쳐
    """
)
"""Work on a text: the message may hold that text, unmarked."""

JA_HOLDS = (
    r"\s*(?:(?:に|で)(?:住ん|住み|勤め|働い|生まれ|通っ)|が(?:大)?好き|(?:を|は)(?:使|飲|食べ|飼|して|やって|習|話|弾)|です|だ|と申|"
    r"といい|と呼ん|って呼ん|で(?:話|答|お願い|返)|の?アレルギー|派|$)"
)
JA_MINE = ("これから", "今後", "いつも", "普段", "最近", "私", "僕", "俺", "わたし", "うち", "名前", "趣味", "好きな")
KO_HOLDS = (
    "(?:에서|에|을|를|은|는|이|가|으로|로|이라고|라고)? ?(?:살|일하|일해|근무|좋아|써|쓰|사용|마시|마셔|먹|키우|키워|"
    "예요|이에요|입니다|이야|야|불러|대답|답|말|알레르기|배우|배워|$)"
)
KO_MINE = ("저는", "나는", "제가", "내가", "저희는", "우리는", "이름은", "취미는", "직업은")
ZH_HOLDS = (
    "^[\\s,]*(?:请|請|以后|以後|你好|记住|記住|记一下|其实|其實|现在|現在|平时|一般|还有|另外|顺便|对了|[,:\\s])*"
    "(?:(?:我们|我們|咱们|我)(?:现在|現在|一直|平时|最|都|也|就|很|特别|比较|经常|每天|目前|一般)*"
    "(?:住在|住|在|叫|是|用|喜欢喝|喜欢吃|喜欢用|喜欢|喜歡|爱喝|爱吃|爱|愛|喝|吃|养了?|養|有|对|對|做|来自|來自|姓|学|學|说|說|讲|玩|"
    "习惯用?|常用)|(?:我|我们|我們)的[^的,]{1,6}(?:是|叫)|(?:一直|总是|都)?(?:用|叫我|称呼我|说|讲))[^,我他她你]{0,6}$"
)

FOR_A_WHILE = Phrases(
    """
    weekend, once a year, twice a year, makes me, forces me, for the week, for a week, for a few, for a couple,
    at the moment, right now, tonight, on holiday,
    on vacation, on business, visiting, in my dreams, dreams, another life, universe, simulator, costume, wii,
    xbox, playstation, nintendo, console, in the game, on paper, borrowed, rental, rented for, gerade in,
    gerade am, gerade im, grad in, grad am, heute, im urlaub, zu besuch, de vacaciones, de visita, hoy,
    en vacances, en visite, aujourd'hui, in vacanza, oggi, de férias, hoje, op vakantie, vandaag, сегодня, в отпуске
    """
)
"""What holds for a few days, or nowhere."""
HOMES = frozenset("city town home location country residence hometown place region".split())
AT_HOME = Phrases(
    """
    live, living, lives, based, home, moved, moving, reside, i'm from, im from, am from, settled, born, wohn*,
    leb*, komme aus,
    zog, gezogen, umgezogen, ziehe, vivo, vive, vivimos, soy de, resido, mudé, habit*, vis, vit, suis de, moro,
    mora, moramos,
    sou de, abit*, sono di, woon*, kom uit, живу, живём, живем, живёт, переехал*, μένω, أسكن, أعيش
    """
)
"""A city that is spoken of is mostly not the one that somebody lives in."""
PREPOSITIONS = frozenset(
    """
    at in with for from about to on near by bei mit für aus von über auf en con para sobre em com chez avec pour
    da per bij voor в на с
    """.split()
)
PLACES = frozenset("in at near am im beim bei en à au em op visiting в на".split())
OUR_WORK = Phrases(
    """
    we, we're, we've, our, my, i, wir, unser*, nosotros, nuestro, nuestra, nous, notre, noi, nostro, nostra, nós,
    nosso,
    nossa, wij, ons, onze, мы, наш*, this repo, this project, this app, this codebase, this team, the repo,
    the project,
    the app, the team, usamos, utilizamos, tenemos, temos, usiamo, abbiamo
    """
)
RUN = Phrases("run, deploy, test, build, commit, push, merge, release, install")
JEST = (
    r"(?:^|\s)/s\b|[🙄🙃🤡]|^(?:yeah|oh|yes|ah|wow)? ?(?:sure|right|great|fantastic|wonderful|brilliant)\b(?!\s*[.!:])"
)
"""Marks and openings of irony."""
WHERE_I = Phrases(
    "is where i live, is where i work, is what i use, is what i prefer, is what i drink, is what i eat, is my home"
)
THANKS = frozenset("please pls plz thanks thx bitte danke merci gracias".split())
GERMANIC = frozenset("habe hab haben bin sind heb ben zijn ich ik".split())
VERBS = Phrases("is, are, was, were, said, says, uses, lives, works")
COMMANDS = Phrases(
    """
    remember, note, set, use, call, save, store, please, always, merk, merke, nimm, nutze, verwende, benutze, bitte,
    recuerda, usa, pon, por favor, retiens, souviens, utilise, ricorda, lembra, lembre, onthoud, gebruik, запомни,
    используй
    """
)
LEADS = frozenset(
    """
    and but so now instead today then also currently plus und aber jetzt y pero et mais e ma en maar и но а
    """.split()
)
REASONS = frozenset("so because weil denn porque car perché omdat want потому".split())
REASON_STARTS = frozenset(
    "no not don't please keep avoid that this the it you your der die das es el la le il o het de это".split()
)
STARTS_SPACELESS = ("私", "僕", "俺", "我", "저", "제", "나는", "내")

LABELS = frozenset(
    """
    note remember reminder ps p.s fyi edit update also btw me preference preferences info correction about answer
    yes no ok
    okay context please remember important todo memo merke hinweis nota recuerda retiens ricorda lembre onthoud
    запомни
    actually hi hello hey thanks and well so facts fact lesson lessons
    """.split()
)
"""What may stand before a colon without being a speaker's name."""

TASK = Phrases(
    """
    translate, summarise, summarize, rewrite, rephrase, proofread, paraphrase, fix, correct, explain, write, draft,
    compose,
    repeat, reply, search, google, look, read, open, visit, fetch, click, check, review, find, print, analyse,
    analyze, list,
    add to, enter, fill, insert, paste, append, copy, replace, describe, generate, complete, continue, echo, type,
    output, respond with, say, spell, pronounce, compare, tell, show,
    send, post, tweet, parse, format, convert, decode, download, browse, quote, react to,
    übersetz*, fasse, fass, schreib, schreibe, erkläre, suche, such, lies, öffne, prüfe, korrigiere, sag, sage,
    wiederhole,
    traduce, traduz*, resume, escribe, busca, lee, abre, explica, corrige, repite, di, traduis, traduisez, résume,
    écris,
    cherche, lis, ouvre, explique, corrige, répète, dis, traduci, riassumi, scrivi, cerca, leggi, apri, spiega,
    correggi,
    ripeti, escreva, escreve, resuma, leia, abra, explique, corrija, repita, vertaal, schrijf, zoek, lees, vat, leg,
    herhaal,
    переведи*, напиши*, найди*, прочитай*, объясни*, исправь*, повтори*, открой*
    """
)
TASK_SPACELESS = Phrases("翻訳, 訳して, 要約, 添削, 翻译, 翻譯, 总结, 總結, 改写, 造句, 번역, 요약, 고쳐")

MATERIAL = Phrases(
    """
    page, webpage, article, mail, email, e-mail, text, message, letter, website, site, post, thread, docs,
    documentation,
    readme, document, log, logs, output, review, snippet, quote, paragraph, lyrics, poem, transcript, says, said,
    wrote,
    reads, received, newsletter, comment, ticket, issue, file, screenshot, pasted, attached, forwarded, response,
    seite, artikel, nachricht, brief, webseite, beitrag, sagt, schreibt, página, artículo, correo, mensaje, texto,
    carta,
    dice, texte, courriel, lettre, dit, pagina, articolo, messaggio, testo, lettera, artigo, mensagem, bericht, tekst,
    страница, страницы, статья, письмо, сообщение, текст, ページ, 記事, メール, 本文, 文章, 页面, 邮件, 文字,
    페이지, 기사, 메일, 글
    """
)
POINTING = frozenset(
    """
    this that here here's these below following got found received look see dies diese hier este esta voici ce
    questo ecco aqui dit deze это вот
    """.split()
)

RETRACTION = Phrases(
    """
    wait that's, wait it's, wait i, scratch that, never mind, nevermind, just kidding, only kidding, i'm kidding,
    i was kidding, kidding, jk,
    i was joking,
    i'm joking, joking, i lied, i was lying, a lie, that was a, not true, i was wrong, not serious, instead,
    forget that, forget it, forget what i said, ignore that, ignore what i,
    disregard that, disregard, strike that, no wait, wait no, cancel that, undo that, not really, i take it back,
    i take that back, that's wrong, that was wrong, that is wrong, that's not true, that is not true, wasn't true,
    my mistake,
    my bad, i meant, i mean, correction, make that, change that to, change it to, oops, whoops, typo, i misspoke,
    keep it, keep that, on second thought, on second thoughts, don't save that, don't remember that, that's not right,
    vergiss das, doch nicht, quatsch, nur spaß, war nur, ich meine, ich meinte, korrektur, stimmt nicht,
    war ein scherz,
    olvídalo, olvida eso, era broma, es broma, quise decir, quería decir, corrección, mentira, no es verdad,
    laisse tomber, je plaisante, oublie ça, je voulais dire, correction, c est faux, lascia stare, scherzavo,
    volevo dire,
    dimentica, correzione, non è vero, deixa pra lá, deixa para lá, esquece isso, quis dizer, correção, brincadeira,
    laat maar, grapje, ik bedoel, ik bedoelde, vergeet dat, шучу, шутка, я имел в виду, я имела в виду,
    забудь об этом,
    неправда, отмена, やっぱり, 冗談, 間違え, 訂正, 取り消, 开玩笑, 開玩笑, 我说错, 我說錯, 说错了, 更正, 算了,
    不对, 농담, 잘못 말, 정정, 취소
    """
)
ACTUALLY = Phrases(
    """
    actually, eigentlich, en realidad, en fait, in realtà, na verdade, eigenlijk, на самом деле, 实际上, 実は, 사실
    """
)

QUESTION_START = Phrases(
    """
    what, which, who, whom, whose, why, how, where, is, are, does, did, doesn't, didn't, isn't, aren't, wasn't,
    weren't,
    what's, who's, where's, how's, was, were, was ist, wie, warum, wieso, weshalb, wo, wohin, wer, wen, wem,
    welche*, qué, cuál,
    cuáles, dónde, quién, cuándo, cómo, quel, quelle, quels, quelles, pourquoi, comment, où, est-ce, qu est-ce,
    cosa, quale,
    quali, dove, chi, qual, quais, onde, quem, por que, o que, wat, hoe, waarom, waar, wie, welke, welk, что, как,
    какой,
    какая, какие, где, почему, кто, зачем, стоит ли, can i, can we, can it, can you, can my, could i, could we,
    could it, could you,
    could my, should, shall, would it, would i, would you, would my, will it, will you, will my, will i, will they,
    do i, do you,
    do we, do they, do my, have i, have you, have we, has my, has the, has it, am i, any, anyone, anybody,
    remind me, wonder,
    i wonder, tell me, kann ich, soll ich, sollte ich, muss ich, habe ich, bin ich, ist, sind, hast du, kennst, weißt
    """
)
QUESTION_WITHIN = Phrases(
    """
    ли, не знаю, don't know, dunno, i forget, what i use, what i am, what i like, ですか, ますか, かな, かしら,
    でしょうか, 吗, 嗎, 什么, 什麼, 怎么, 怎麼, 呢, 哪, 谁, 誰, 何, 是不是, 是否, 能不能, 要不要, 好不好, 多少, 뭐,
    무엇, 어디, 왜, 누구, 어떻게
    """
)
QUESTION_ENDS = ("か", "까", "까요", "나요", "니", "냐", "吗", "嗎", "呢", "かな")

STOP_VALUES = STOP_WORDS | frozenset(
    normal(word)
    for word in """
    yes yeah yep yup no nope nah true false ok okay sure right none null nothing all always never one please thanks
    thank
    maybe good bad fine new now today here everything something anything user me myself agent assistant on off enabled
    disabled default unknown i'm i've i'd i'll it's that's don't want use like know think go make said say tell
    really well
    ja nein doch der die das ein eine einer einen dem den des und oder ist bin sind war ich du er sie es wir ihr
    mein meine
    mit von zu in im an auf für nicht auch noch so wie was bitte danke gut
    si sí el la los las un una uno unos y o u que de del en es soy mi tu su me te se lo le por para con sin bien
    gracias bueno
    oui non le les des du et ou ce cet cette ça je tu il elle nous vous on mon ma mes ton ta sa son ne pas est suis
    au aux
    avec pour dans merci bien il lo gli i uno e o che di del della a da in con su per è sono io sì grazie bene
    sim não o os as um uma do da no na em eu meu minha ele ela que com obrigado obrigada bom het een de en of ik jij
    hij wij
    nee dank goed да нет и в на не я ты он она это что как с по мой спасибо хорошо
    はい いいえ うん ううん ええ です ます 私 これ それ あれ 是 是的 不 不是 好 好的 对 對 嗯 没有 我 你 的 这 那
    可以 行 네 예 아니요 응 저 나 그래 좋아
    """.split()
)
GAPS = frozenset(
    "a an the of in on at with and as my our to is der die das den dem ein eine mit und in el la los las un una de del y con le "
    "les du des et il lo gli di e o os um uma do da het een van en".split()
)
"""What may stand between two words of a value without changing what is said."""

JA_PARTICLES = "はがをにでとものへや"
JA_AFTER = ("です", "だ", "から", "まで", "より", "という", "って", "っす", "な ", "さん")
ZH_BEFORE = frozenset(
    "在是叫用喝吃欢歡爱住到去为為做说說讲講姓有和跟与與或从從对對了的我记记住给給把让讓称稱当當养養想要会會看玩打写寫买買开開于於来來过過学學"
)
ZH_AFTER_WORDS = ("过敏", "過敏", "回答", "回复", "上班", "上学", "长大", "生活", "出生", "写", "交流")
ZH_AFTER = frozenset("的了和与與跟工住是在做作为為当當因而但也都就我吧呢吗嗎上里裡")
KO_AFTER = frozenset(
    """
    은 는 가 을 를 에 에서 로 으로 와 과 도 의 만 예요 이에요 입니다 에요 야 라고 이라고 까지 부터 하고 랑 이랑 한테
    에게 로는 에는 에도
    """.split()
)
ELISIONS = frozenset("j l d c s n m t qu un dell all nell sull dall quest bell puisqu lorsqu jusqu".split())
ABBREVIATIONS = frozenset(
    """
    dr mr mrs ms st prof nr no jr sr vs etc e.g i.e z.b bzw inc ltd co sra dra m mme vol
    """.split()
)

CONCEPTS: dict[str, Phrases] = {
    name: Phrases(listed)
    for name, listed in {
        "address": "address, adresse, anschrift, dirección, domicilio, indirizzo, endereço, adres, адрес, 住所, 地址, 주소",
        "name": "name, namen, nombre, nom, nome, naam, имя, 名前, 名字, 이름",
        "phone": "phone, telefonnummer, telefon, handynummer, teléfono, téléphone, telefono, telefone, telefoon, "
        "telefoonnummer, телефон, 電話番号, 电话, 電話, 전화번호",
        "email": "email, e-mail, mail, e-mail-adresse, correo, courriel, почту, メール, 邮箱, 이메일",
        "birthday": "birthday, geburtstag, cumpleaños, anniversaire, compleanno, aniversário, verjaardag, 誕生日, 生日, 생일",
        "city": "city, town, stadt, ciudad, ville, città, cidade, stad, город, 城市, 도시",
        "editor": "editor, éditeur, редактор, エディタ, 编辑器, 에디터",
        "allergy": "allergy, allergies, allergie, alergia, allergia, аллергию, アレルギー, 过敏, 알레르기",
        "language": "language, sprache, idioma, langue, lingua, língua, taal, язык, 言語, 语言, 언어",
        "job": "job, beruf, trabajo, travail, lavoro, trabalho, baan, работу, 仕事, 工作, 직업",
        "diet": "diet, ernährung, dieta, régime, dieet, диету, 食事, 饮食, 식단",
        "deadline": "deadline, abgabe, abgabetermin, frist, entrega, plazo, échéance, scadenza, prazo, дедлайн, "
        "締め切り, 截止, 마감",
        "age": "age, alter, edad, âge, età, idade, leeftijd, возраст, 年齢, 年龄, 나이",
    }.items()
}
"""Common words of keys in other languages: a key is English, its owner need not be."""

FORGET = Phrases(
    """
    forget, vergiss, vergesst, vergessen, olvida, olvide, oublie, oubliez, dimentica, esquece, esqueça, vergeet,
    забудь, забудьте
    """
)
SAID_ABOUT = Phrases("what i said about, everything i said about, what i told you about, everything about, all about")
DELETE = Phrases(
    """
    delete, remove, erase, drop, wipe, purge, clear, lösch, lösche, lösch*, entfern, entferne, entfernen, borra,
    borre,
    elimina, elimine, efface, effacez, supprime, supprimez, cancella, rimuovi, apaga, apague, exclua, remova,
    verwijder, wis,
    удали, удалите, сотри, сотрите, убери, уберите
    """
)
FORGET_ENDS = (
    "忘れて",
    "忘れてください",
    "忘れて下さい",
    "忘れてくれ",
    "忘れてね",
    "忘れてほしい",
    "忘れて欲しい",
    "削除して",
    "削除してください",
    "削除して下さい",
    "消して",
    "消してください",
    "消して下さい",
    "消去して",
    "消去してください",
    "잊어 줘",
    "잊어줘",
    "잊어 주세요",
    "잊어주세요",
    "지워 줘",
    "지워줘",
    "지워 주세요",
    "지워주세요",
    "삭제해 줘",
    "삭제해줘",
    "삭제해 주세요",
    "삭제해주세요",
    "删掉",
    "删除",
    "忘掉",
    "忘了",
    "删了",
    "刪除",
    "刪掉",
)
FORGET_STARTS = ("忘记", "忘記", "忘掉", "删除", "刪除", "删掉", "刪掉", "清除", "抹掉", "忘了")
ENDS_IN_VERB = frozenset("vergessen löschen entfernen vergisst löschst entfernst vergeten verwijderen wissen".split())
MEMORY = frozenset(
    """
    memory fact entry memories facts gedächtnis memoria mémoire memória geheugen памяти fakt eintrag
    """.split()
)
COURTESY = Phrases(
    """
    please, pls, plz, kindly, now, ok, okay, also, and, so, actually, just, hey, hi, hello, thanks, then, well,
    alright, right, can you, could you, would you, will you, can you please, you can, you may, i want you to,
    i'd like you to, i would like you to, i need you to, you should, you must, you have to, go ahead and, let's,
    yes, sure, bitte, jetzt, kannst du bitte, könntest du, können sie bitte, könnten sie, ich möchte dass du,
    ich will dass du, und, por favor, ahora, y, s il te plaît, s il vous plaît, te plaît,
    maintenant, et, per favore, adesso, e, ora, agora, alsjeblieft, alstublieft, nu, en, kun je, пожалуйста, и,
    теперь, мне
    """
)
DETERMINERS = frozenset(
    """
    my the that this our all mein meine meinen meiner mi mis la el los las mon ma mes le les l il mio mia miei o a
    os meu minha
    mijn de het onze мой мою моё мое мои die der das den bitte please y et e en und and or about of everything up on
    """.split()
)
POSSESSIVES = frozenset(
    """
    my mein meine meinen mi mis mon ma mes mio mia miei meu minha mijn мой мою моё мое мои our unsere notre
    """.split()
)
AFTER_TARGET = frozenset(
    """
    please pls plz now and or again completely entirely forever thanks thank too also number numbers address
    setting settings
    preference preferences choice entry fact info information details bitte jetzt wieder löschen entfernen vergessen
    vergisst
    löschst entfernst und oder por favor ya ahora y o s il te vous plaît maintenant et per adesso e agora alsjeblieft nu
    en vergeten
    verwijderen wissen пожалуйста и right already immediately
    """.split()
)
NO = frozenset("no nein non não nee нет いや いえ 不 不是 아니".split())
HESITATION = frozenset("hmm hm oh ah uh um er sorry wait well".split())
NO_BUT_FINE = frozenset("thanks thank problem worries need idea matter danke gracias merci".split())

KEEP = Phrases(
    "keep, restore, undo, wait, don't, do not, behalte, behalten, doch nicht, nicht, mantén, garde, tieni, mantenha, bewaar, "
    "оставь, 残して, やっぱり, 保留, 不要, 别, 남겨, 취소"
)
POLITE_LEADS = r"(?:hey|hi|hello|ok|okay|please|also|and|so|then|now)"
POLITE = (
    r"(?:can|could|would|will) you (?:(?:please|kindly|also|just|now) )*"
    r"(?:remember|note|save|store|set|use|call|switch|change|keep|make|record|add|answer|reply|respond|talk|speak)"
    r"|(?:kannst|könntest|würdest|können|könnten) (?:du|sie) (?:\S+ ){0,12}"
    r"(?:merken|nutzen|verwenden|benutzen|nennen|notieren|setzen)"
    r"|(?:puedes|podrías) (?:por favor )?(?:recordar|usar|poner|anotar|llamarme)"
    r"|(?:peux-tu|pourrais-tu|tu peux|tu pourrais|pouvez-vous) (?:\S+ ){0,3}"
    r"(?:retenir|utiliser|noter|souvenir|appeler|m'appeler)"
)
"""How a request is put as a question."""
