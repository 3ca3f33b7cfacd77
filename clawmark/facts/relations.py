"""What people say of whom they are, what they have and what they use: the words of it, and what may stand in its place.

Data for `fitting`. A relation is a way of speaking ("live … in") that states one concept ("city") of what stands right
behind it, if that is of the kind which the place asks for: behind "live in" stands a town, and no month and no fear. What is
in no table here states no concept, so that a key in doubt waits for the person. Words are in normal form; pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from clawmark.facts import phrases as p
from clawmark.facts.dated import MONTHS
from clawmark.text import normal

# ---------------------------------------------------------------------------------------------------------------------
# What stands in a place
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Filler:
    """What stands in the place of a relation: its words, and whether it is spelled as a name."""

    words: Sequence[str]
    text: str
    is_name: bool
    spaceless: bool = False


Slot = Callable[[Filler], bool]

_TIME: Final = p.Phrases(
    """
    monday*, tuesday*, wednesday*, thursday*, friday*, saturday*, sunday*, weekend*, weekday*, today, tomorrow,
    tonight, yesterday, morning*, evening*, afternoon*, night, nights, noon, midnight, summer*, winter*, spring,
    autumn, day, days, week, weeks, month, months, year, years, hour, hours, minute, minutes, later, soon, now,
    then, once, january, february, march, april, june, july, august, september, october, november, december,
    montag*, dienstag*, mittwoch*, donnerstag*, freitag*, samstag*, sonntag*, heute, morgen, abend*, nacht, nachts,
    sommer, frühling, herbst, januar, februar, märz, mai, juni, juli, oktober, dezember, lunes, martes, miércoles,
    jueves, viernes, sábado*, domingo*, hoy, mañana, noche, verano, invierno, enero, febrero, marzo, abril, mayo,
    junio, julio, agosto, septiembre, octubre, noviembre, diciembre, lundi*, mardi*, mercredi*, jeudi*, vendredi*,
    samedi*, dimanche*, demain, aujourd'hui, nuit, soir*, été, hiver, janvier, février, mars, avril, juin, juillet,
    août, septembre, octobre, décembre, lunedì, martedì, mercoledì, giovedì, venerdì, sabato, domenica, oggi,
    domani, notte, sera, estate, inverno, gennaio, febbraio, aprile, maggio, giugno, luglio, settembre, ottobre,
    dicembre, segunda*, terça*, quarta*, quinta*, sexta*, hoje, amanhã, noite, verão, janeiro, fevereiro, março,
    maio, junho, julho, setembro, outubro, novembro, dezembro, maandag*, dinsdag*, woensdag*, donderdag*, vrijdag*,
    zaterdag*, zondag*, vandaag, nacht, zomer, januari, februari, maart, mei, augustus, понедельник*, вторник*,
    сред*, четверг*, пятниц*, суббот*, воскресень*, сегодня, завтра, утр*, вечер*, ночь*, ночам, январ*, феврал*,
    март*, апрел*, мая, июн*, июл*, август*, сентябр*, октябр*, ноябр*, декабр*, 月, 曜日, 星期, 周末, 今天, 明天, 今日, 明日, 夏,
    冬, 요일, 오늘, 내일, 여름, 겨울
    """
)
_NO_PLACE: Final = frozenset(
    """
    fear peace hope pain harmony poverty luxury doubt debt denial exile silence darkness sin love chaos danger panic
    shame misery comfort dread isolation solitude style private public general person bed shifts prison jail angst
    frieden hoffnung armut sünde ruhe zweifel schulden miedo paz pobreza dudas peur paix pauvreté paura pace povertà
    medo guerra nood vrede страхе мире бедности нищете a dream dreams bubble world house flat apartment home homes
    hell heaven paradise town city village country haus wohnung casa piso maison appartement appartamento huis доме
    квартире office büro home hause work free nothing fun it this that there here everyone nobody people myself
    yourself me him her us them
    """.split()
)
_STRAY: Final = frozenset(
    """
    since with from near because but for as until during seit mit bei weil aber als desde con como pero porque
    depuis avec comme mais dal come com sinds met maar с как но
    """.split()
)
_JOINED: Final = frozenset("and or without und oder ohne y o sin et ou sans e senza sem en of zonder и или без".split())
_TOWNS: Final = frozenset(("rio de janeiro",))
"""Whose names have a month."""
MOST_OF_A_NAME = 4


def _is_free(filler: Filler) -> bool:
    """No time, and nothing of a second phrase."""
    words = filler.words
    if filler.text in _TOWNS:
        return True
    if _TIME.within(words, filler.text if filler.spaceless else "") or not MONTHS.keys().isdisjoint(words):
        return False
    return bool(words) and _STRAY.isdisjoint(words)


def a_name(filler: Filler) -> bool:
    """A name of somebody or something, of no time or tool."""
    if not _is_free(filler) or len(filler.words) > MOST_OF_A_NAME or not _NO_PLACE.isdisjoint(filler.words[:1]):
        return False
    if not _JOINED.isdisjoint(filler.words):
        return False
    return filler.is_name and not any(word[:1].isdigit() for word in filler.words[:1])


def a_place(filler: Filler) -> bool:
    return a_name(filler) and not any(char.isdigit() for char in filler.text) and not kinds_of(filler)


def anything(filler: Filler) -> bool:
    return _is_free(filler)


def a_day(filler: Filler) -> bool:
    """A day of some month, with or without its year."""
    if filler.spaceless:
        return "月" in filler.text or "월" in filler.text
    has_month = not MONTHS.keys().isdisjoint(word.rstrip(".,") for word in filler.words)
    return any(char.isdigit() for char in filler.text) and (has_month or _WRITTEN_DAY.search(filler.text) is not None)


_WRITTEN_DAY: Final = re.compile(r"(?<!\d)\d{1,4}[-./]\d{1,2}(?:[-./]\d{1,4}|\.)?(?!\d)")


def a_year(filler: Filler) -> bool:
    return re.fullmatch(r"(?:18|19|20)\d\d年?", filler.text) is not None


OLDEST: Final = 130


def an_age(filler: Filler) -> bool:
    digits = re.fullmatch(r"(\d{1,3})(?:\W.*|[岁歲歳살].*)?", filler.text)
    return (
        digits is not None
        and int(digits[1]) <= OLDEST
        and (len(filler.words) < 2 or _YEARS.within(filler.words, filler.text))
    )


_YEARS: Final = p.Phrases("years, year, jahre, años, ans, anni, anos, jaar, лет, года, год, yaşında, 岁, 歲, 歳, 살")


def _one_of(listed: str, *, ends: bool = False, last: bool = False) -> Slot:
    """Whether a phrase of the table stands in the filler, or is the first or last word of it, or its last phrase: "type 1
    diabetes", but not "diabetes lecture"."""
    table = p.Phrases(listed)

    def slot(filler: Filler) -> bool:
        if not _is_free(filler):
            return False
        words = filler.words
        if filler.spaceless or not (ends or last):
            return table.within(words, filler.text if filler.spaceless else "")
        if last:
            return any(table.length_at(words, index) == len(words) - index for index in range(len(words)))
        return table.stand_at(words, 0) or table.stand_at(words, len(words) - 1)

    return slot


_LANGUAGES: Final = """
    english, german, french, spanish, italian, portuguese, dutch, danish, swedish, norwegian, finnish, polish,
    czech, russian, ukrainian, greek, turkish, arabic, hebrew, persian, farsi, hindi, urdu, bengali, chinese,
    mandarin, cantonese, japanese, korean, vietnamese, thai, indonesian, swahili, romanian, hungarian, catalan,
    basque, irish, welsh, icelandic, croatian, serbian, bulgarian, latin, esperanto, englisch, deutsch, französisch,
    spanisch, italienisch, portugiesisch, niederländisch, dänisch, schwedisch, polnisch, russisch, türkisch,
    chinesisch, japanisch, inglés, alemán, francés, español, italiano, portugués, holandés, ruso, chino, japonés,
    anglais, allemand, français, espagnol, italien, portugais, néerlandais, russe, chinois, japonais, inglese,
    tedesco, francese, spagnolo, portoghese, olandese, russo, cinese, giapponese, inglês, alemão, francês, espanhol,
    português, holandês, chinês, japonês, engels, duits, frans, spaans, italiaans, portugees, nederlands, deens,
    английск*, немецк*, французск*, испанск*, русск*, по-английски, по-немецки, по-русски, китайск*, японск*,
    ingilizce, almanca, türkçe, english*, 英语, 英語, 中文, 汉语, 漢語, 普通话, 日语, 日文, 日本語, 德语, ドイツ語,
    法语, フランス語, 韩语, 韓国語, 한국어,
    영어, 일본어, 중국어, 독일어, 프랑스어
"""
a_language: Final = _one_of(_LANGUAGES)
an_occupation: Final = _one_of(
    """
    nurse, doctor, teacher, developer, engineer, programmer, designer, architect, lawyer, accountant, carpenter,
    plumber, electrician, baker, chef, cook, waiter, waitress, barista, farmer, gardener, florist, student,
    researcher, scientist, professor, lecturer, journalist, writer, author, editor, translator, interpreter,
    musician, actor, actress, artist, painter, sculptor, photographer, potter, pilot, driver, mechanic, technician,
    manager, consultant, analyst, administrator, librarian, pharmacist, dentist, surgeon, paramedic, therapist,
    psychologist, psychiatrist, vet, veterinarian, midwife, biologist, chemist, physicist, geologist, mathematician,
    statistician, economist, historian, cashier, clerk, secretary, firefighter, soldier, sailor, tailor,
    hairdresser, barber, butcher, builder, roofer, welder, machinist, nanny, tutor, coach, beekeeper, bookkeeper,
    goldsmith, blacksmith, locksmith, schreiner, maurer, friseur, friseurin, boulanger, boulangère, arquitecto,
    arquitecta, arquiteto, arquiteta, architekt, architektin, architecte, social worker, freelancer, paralegal,
    lehrer, lehrerin, ärztin, arzt, krankenschwester, krankenpfleger, pfleger, pflegerin, entwickler, entwicklerin,
    ingenieur, ingenieurin, anwalt, anwältin, koch, köchin, bäcker, tischler, lokführer, lokführerin, elektriker,
    elektrikerin, student, studentin, profesor, profesora, maestro, maestra, enfermero, enfermera, médico, médica,
    ingeniero, ingeniera, abogado, abogada, cocinero, cocinera, programador, programadora, estudiante, professeur,
    infirmier, infirmière, médecin, ingénieur, avocat, avocate, cuisinier, étudiant, étudiante, développeur,
    infermiere, infermiera, insegnante, ingegnere, avvocato, cuoco, medico, professore, professoressa, studente,
    enfermeiro, enfermeira, engenheiro, engenheira, advogado, advogada, professora, estudante, cozinheiro, leraar,
    lerares, verpleegkundige, timmerman, ingenieur, kok, advocaat, учитель, учительница, врач, медсестра, инженер,
    программист*, бухгалтер, юрист, повар, студент*, 医生, 老师, 老師,
    护士, 工程师, 程序员, 律师, 学生, 医者, 医師, 看護師, 教師, 弁護士, エンジニア,
    会社員, 의사, 간호사, 교사, 개발자, 변호사, 학생, 선생님
    """,
    ends=True,
)
an_illness: Final = _one_of(
    """
    asthma, diabetes, cancer, migraine*, epilepsy, hiv, hepatitis, arthritis, depression, anxiety, adhd, autism,
    eczema, anaemia, anemia, hypertension, coeliac, celiac, crohn's, crohn, colitis, leukaemia, leukemia, tinnitus,
    narcolepsy, lupus, psoriasis, gout, flu, covid, hay fever, high blood pressure, blood pressure, back pain, heart
    disease, kidney disease, insomnia, dyslexia, ptsd, ocd, asma, diabetes, krebs, heuschnupfen, migräne, epilepsie,
    cáncer, migraña, asthme, diabète, cancer, cancro, diabete, emicrania, câncer, enxaqueca, suikerziekte, астм*,
    диабет*, рак, мигрен*, эпилепси*, 糖尿病, 哮喘, 癌症, 喘息, 천식, 당뇨병
    """,
    last=True,
)
an_animal: Final = _one_of(
    """
    dog, dogs, cat, cats, rabbit, rabbits, parrot, parrots, hamster*, horse*, tortoise*, turtle*, fish, bird, birds,
    budgie*, canary, guinea pig, guinea pigs, ferret*, snake*, lizard*, gecko*, chicken*, hen, hens, goat, goats,
    sheep, donkey, rat, rats, mouse, mice, hund, hunde, katze, katzen, hase, hasen, kaninchen, pferd, pferde,
    wellensittich*, perro*, perra*, gato*, gata*, conejo*, chien*, chat, chats, chatte, lapin*, cheval, cane, cani,
    gatto, gatti, coniglio, cachorro*, coelho*, hond, honden, kat, katten, konijn*, собак*, кот, кота, кошк*,
    кролик*, köpek, kedi, 狗, 猫, 貓, 犬, 兔子, うさぎ, 강아지, 고양이, 토끼
    """,
    last=True,
)
_VEHICLES: Final = p.Phrases(
    """
    car, van, truck, lorry, suv, estate, hatchback, convertible, pickup, camper, campervan, minivan, taxi, bus, tractor, scooter,
    auto, wagen, kombi, coche, furgoneta, voiture, camionnette, macchina, furgone, carro, busje, машин*
    """
)


def a_vehicle(filler: Filler) -> bool:
    return a_name(filler) or (_is_free(filler) and _VEHICLES.within(filler.words[-1:]))


an_instrument: Final = _one_of(
    """
    piano, guitar, violin, viola, cello, bass, double bass, drums, flute, clarinet, oboe, bassoon, saxophone,
    trumpet, trombone, horn, tuba, harp, organ, accordion, ukulele, banjo, mandolin, keyboard, keyboards, recorder,
    harmonica, bagpipes, klavier, gitarre, geige, schlagzeug, flöte, klarinette, trompete, guitarra, violín,
    batería, flauta, guitare, violon, batterie, flûte, chitarra, violino, batteria, violão, bateria, gitaar, viool,
    пианино, гитар*, скрипк*, 钢琴, 吉他, 小提琴, ピアノ, ギター, 피아노, 기타
    """
)
a_sport: Final = _one_of(
    """
    football, soccer, tennis, basketball, volleyball, handball, hockey, badminton, table tennis, squash, golf,
    rugby, cricket, baseball, chess, fußball, fútbol, baloncesto, calcio, futebol, voetbal, футбол, теннис, 足球, 网球,
    サッカー, テニス, 축구
    """
)
a_diet: Final = _one_of(
    """
    vegan*, vegetari*, vegetar*, végét*, pescetari*, pescatari*, kosher, halal, gluten-free, gluten free, keto,
    lactose-free, веган*, вегетариан*, 素食, 吃素, ベジタリアン, ビーガン, 채식, 비건
    """
)
a_medicine: Final = _one_of(
    """
    mg, mcg, µg, ml, tablet, tablets, pill, pills, insulin, metformin, ibuprofen, paracetamol, aspirin,
    levothyroxine, antibiotics, statins, antidepressants, tabletten, pastillas, comprimés, compresse, comprimidos,
    таблетк*
    """
)
pronouns: Final = _one_of("he/him, she/her, they/them, she/they, he/they, er, sie")
a_zone: Final = _one_of("utc*, gmt*, cet, cest, est, pst, europe*, america*, asia*, africa*, australia*, pacific*")

# ---------------------------------------------------------------------------------------------------------------------
# What things are
# ---------------------------------------------------------------------------------------------------------------------

_KINDS: Final = (
    (
        "editor ide",
        """
        helix, vim, neovim, nvim, vi, emacs, doom emacs, spacemacs, kakoune, kate, nano, micro, zed, sublime,
        sublime text, vscode, vs code, visual studio code, visual studio, vscodium, codium, cursor, atom, notepad++,
        bbedit, textmate, textadept, gedit, intellij, intellij idea, pycharm, webstorm, goland, rider, clion,
        rubymine, phpstorm, android studio, xcode, eclipse, lapce
        """,
    ),
    (
        "browser",
        """
        firefox, chrome, chromium, safari, edge, brave, opera, vivaldi, librewolf, arc, waterfox, tor browser,
        orion, zen browser
        """,
    ),
    ("search engine", "duckduckgo, kagi, google search, bing, ecosia, startpage, qwant"),
    ("shell", "bash, zsh, fish, nushell, powershell, ksh, dash, tcsh, xonsh, elvish"),
    ("terminal emulator", """
    alacritty, kitty, wezterm, iterm, iterm2, ghostty, konsole, gnome terminal, foot, warp, hyper, tabby
    """),
    (
        "os distro operating system",
        """
        linux, fedora, debian, ubuntu, arch, arch linux, nixos, mint, linux mint, manjaro, gentoo, opensuse, alpine,
        macos, windows, windows 10, windows 11, freebsd, openbsd, pop!_os, popos, android, ios, rocky linux,
        almalinux
        """,
    ),
    (
        "database db datastore",
        """
        postgres, postgresql, mysql, mariadb, sqlite, mongodb, mongo, redis, cassandra, oracle, mssql, sql server,
        dynamodb, duckdb, clickhouse, cockroachdb, neo4j, couchdb, influxdb, timescaledb, supabase, firestore,
        elasticsearch, valkey
        """,
    ),
    (
        "programming language",
        """
        python, rust, go, golang, java, javascript, typescript, kotlin, swift, ruby, php, perl, haskell, ocaml,
        elixir, erlang, scala, clojure, zig, nim, julia, lua, dart, f#, c, c++, c#, fortran, cobol, r, elm, gleam
        """,
    ),
    (
        "framework",
        """
        django, flask, fastapi, rails, ruby on rails, laravel, symfony, spring, spring boot, express, nestjs, react,
        vue, angular, svelte, sveltekit, next.js, nextjs, nuxt, astro, remix, phoenix, qt, flutter, electron, tauri,
        solidjs, htmx
        """,
    ),
    ("package manager", """
    npm, pnpm, yarn, bun, pip, poetry, uv, conda, cargo, homebrew, brew, apt, dnf, pacman, nix, maven, gradle
    """),
    ("test runner framework testing", "pytest, unittest, jest, vitest, mocha, rspec, junit, playwright, cypress, nose"),
    ("linter formatter", "ruff, black, flake8, pylint, eslint, prettier, biome, clippy, rustfmt, gofmt, isort"),
    ("version control vcs", "git, mercurial, jujutsu, svn, subversion, fossil, pijul"),
    ("ci", "github actions, gitlab ci, jenkins, circleci, travis, buildkite, drone, woodpecker, teamcity"),
    ("cloud provider hosting host", """
    aws, azure, gcp, google cloud, hetzner, digitalocean, linode, ovh, heroku, fly.io, vercel, netlify
    """),
    ("notes note app", "obsidian, notion, logseq, joplin, evernote, onenote, apple notes, bear, roam, standard notes"),
    ("messenger chat app", """
    signal, whatsapp, telegram, threema, matrix, element, slack, discord, teams, microsoft teams, zulip
    """),
    ("mail email client app", "thunderbird, outlook, mutt, neomutt, aerc, apple mail, mimestream"),
    ("theme mode appearance scheme", """
    dark mode, light mode, dark theme, light theme, solarized, gruvbox, dracula, nord
    """),
    ("indent indentation", "tabs, spaces, two spaces, four spaces, 2 spaces, 4 spaces"),
    (
        "units unit measurement measurements",
        """
        metric, metric units, imperial, imperial units, si, si units, celsius, fahrenheit, kilometres, kilometers,
        miles, kilograms, pounds, grams, grammes, feet, metres, meters, kilómetros, gramos, kilomètres, chilometri,
        quilômetros, kilometer, gramm
        """,
    ),
    ("time clock format", """
    24 hour clock, 24-hour clock, 12 hour clock, 12-hour clock, 24h, 12h, 24-hour time, 24 hour time
    """),
    ("date format", "iso dates, iso 8601, dd.mm.yyyy, dd/mm/yyyy, mm/dd/yyyy, yyyy-mm-dd"),
    ("currency", """
    euro, euros, dollars, us dollars, pounds sterling, francs, swiss francs, yen, usd, eur, gbp, chf, sek, nok, dkk
    """),
    (
        "drink drinks beverage",
        """
        tea, coffee, water, beer, wine, milk, oat milk, juice, lemonade, cola, green tea, black tea, espresso,
        cappuccino, flat white, sparkling water, tee, kaffee, wasser, bier, wein, té, café, agua, thé, vin, bière,
        tè, caffè, vino, chá, vinho, thee, koffie, чай, кофе, 茶, 咖啡, 绿茶, お茶, コーヒー, 紅茶, 차, 커피
        """,
    ),
)  # fmt: skip
KINDS: Final[Mapping[str, frozenset[str]]] = {
    " ".join(name.split()): frozenset(concepts.split())
    for concepts, names in reversed(_KINDS)
    for name in names.split(",")
}
"""What well-known things are, by name: somebody who uses Helix says nothing of editors and means one."""


def kinds_of(filler: Filler) -> frozenset[str]:
    """What a thing is, whatever version of it."""
    return KINDS.get(filler.text) or KINDS.get(_VERSION.sub("", filler.text), frozenset())


_VERSION: Final = re.compile(r" v?\d[\d.]*$")


def an_activity(filler: Filler) -> bool:
    """What somebody does, as English calls it."""
    return _is_free(filler) and any(re.fullmatch(r"[a-z-]{2,}[^e\W]ing", word) for word in filler.words[:2])


def a_way_of_eating(filler: Filler) -> bool:
    return a_diet(filler) or (_is_free(filler) and not _LACKING.isdisjoint(filler.words[:3]))


_LACKING: Final = frozenset("no without kein keine keinen sin sans senza sem geen zonder без never don't not".split())


# ---------------------------------------------------------------------------------------------------------------------
# How it is said
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Relation:
    """A way of speaking, and the concepts that it states of what stands in its place.

    said      what leads up to the place
    before    one of these stands between that and the place; empty = nothing does
    behind    what follows the place, in languages whose verb comes last
    ends      what may follow the place, where not all may
    article   whether "a", "my" or the like must stand before the place, unless it has several words
    """

    concepts: frozenset[str]
    slot: Slot
    said: p.Phrases
    before: frozenset[str] = frozenset()
    behind: re.Pattern[str] | None = None
    ends: frozenset[str] | None = None
    article: bool = False


def _relation(
    concepts: str,
    slot: Slot,
    said: str,
    before: str = "",
    behind: str = "",
    ends: str | None = None,
    *,
    article: bool = False,
) -> Relation:
    return Relation(
        frozenset(concepts.split()),
        slot,
        p.Phrases(said),
        frozenset(before.split()),
        re.compile(behind) if behind else None,
        None if ends is None else frozenset(ends.split()),
        article,
    )


_HOME: Final = "city town location residence home place"
_BIRTH: Final = "birthday birthdate birth dob born"
_I_AM: Final = "i'm, im, i am, i'm only, ich bin, bin, soy, je suis, sono, sou, eu sou, ik ben, я, 我是, 私は, 저는"

_AGED: Final = """
    i'm, im, i am, i'm only, ich bin, bin, tengo, j ai, ho, tenho, ik ben, i just turned, i turned, мне, 我今年, 今年, 我,
    私は, 저는
    """

RELATIONS: Final = (
    _relation(
        _HOME, a_place,
        """
        live, lives, living, reside, resides, residing, based, settled, wohne, wohnen, wohnt, lebe, leben, lebt,
        vivo, vive, vivimos, resido, habite, habitons, habite, vis, vit, vivons, abito, abita, abitiamo, vivo,
        viviamo, moro, mora, moramos, woon, woont, wonen, живу, живем, живём, живет, живёт
        """,
        "in en à a no na em в во au aux im",
    ),
    _relation(_HOME, a_place, "住在, 我家在, 家住"),
    _relation(_HOME, a_place, "", behind=r"\s*(?:に(?:住ん|住み|住む|引っ越し)|에(?:서)? ?(?:살|삽|산))"),
    _relation(
        _HOME, a_place,
        """
        moved, moving, relocated, umgezogen, gezogen, mudé, mudamos, déménagé, installé, installée, trasferito,
        trasferita, mudei, verhuisd, переехал, переехала
        """,
        "to nach a à para naar в",
    ),
    _relation("hometown origin", a_place, "grew up, i'm, i am, im, i come, originally, komme, aufgewachsen", "in from aus"),
    _relation("hometown origin", a_place, "soy de, je viens de, vengo da, sou de, ik kom uit, я из, 我来自, 我來自"),
    _relation("birthplace birth place", a_place, "born, geboren, nací, né, née, nato, nata, nasci, родился, родилась",
              "in en à a em no na в"),
    _relation("birthplace birth place", a_place, "出生在, 出生于"),
    _relation("birthplace birth place", a_place, "", behind=r"\s*(?:で生まれ|に生まれ|에서 태어)"),
    _relation(_BIRTH, a_day,
              "born, geboren, nací, né, née, nato, nata, nasci, родился, родилась, 出生于", "on am el le il em op the"),
    _relation(f"{_BIRTH} year birthyear", a_year,
              "born, geboren, nací, né, née, nato, nata, nasci, родился, родилась", "in im en nel em"),
    _relation("age edad alter", an_age, _AGED, "", "", """
        years year jahre años ans anni anos jaar лет года год old from btw fyi now so and but tho です 입니다 이에요 예요
        """),
    _relation("employer company workplace organisation organization", a_name,
              """
        work, works, working, employed, arbeite, arbeitet, arbeiten, trabajo, trabaja, travaille, lavoro, lavora,
        trabalho, trabalha, werk, werkt, работаю, job
        """, "at for by bei für para chez pour presso per bij voor"),
    _relation("employer company", a_name, "joined"),
    _relation("employer company workplace", a_name, "", behind=r"\s*に勤め"),
    _relation("job occupation profession role position career title work", anything,
              """
        work, works, working, employed, job, arbeite, arbeitet, trabajo, trabaja, travaille, lavoro, lavora,
        trabalho, trabalha, werk, werkt, работаю
        """, "as als como comme come"),
    _relation("job occupation profession role position career title work", an_occupation,
              f"{_I_AM}, i've been, i have been, been"),
    _relation("job occupation profession role work", an_occupation, "",
              behind=r"\s*(?:をしています|をしてる|です|예요|이에요|입니다)"),
    _relation("language languages tongue spoken", a_language,
              """
        speak, speaks, speaking, spreche, sprechen, hablo, parle, parlo, falo, spreek, говорю, говорю на, 会说, 說, 说,
        我讲
        """),
    _relation("language languages", a_language, "", behind=r"\s*(?:を話し|が話せ|로 말)"),
    _relation("language answers answer reply replies response responses", a_language,
              """
        answer, reply, respond, write, talk, speak, speak to me, answer me, talk to me, antworte, antworte mir,
        schreib, schreibe, sprich, responde, respóndeme, escribe, habla, réponds, réponds-moi, écris, parle,
        rispondi, rispondimi, scrivi, parla, responda, responde, escreva, antwoord, schrijf, отвечай, пиши, говори
        """, "in auf en em op на"),
    _relation("language answers", a_language, "отвечай, пиши, говори, 请用, 用"),
    _relation("language answers", a_language, "", behind=r"\s*(?:で(?:答|お願い|返|話|書)|로 (?:대답|답|말|써))"),
    _relation("answers answer replies reply responses response style length tone verbosity", anything,
              """
        answer, reply, respond, answers, replies, responses, keep answers, keep replies, keep it, be, antworte,
        antworte immer, sei, responde, réponds, rispondi, responda, antwoord, отвечай
        """),
    _relation("allergy allergies allergen allergens intolerance intolerances", anything,
              """
        allergic to, intolerant to, intolerante a, intolerante al, intolérant au, intolérante au, allergisch gegen,
        allergisch auf, alérgico a, alérgica a, alérgico al, alérgica al, allergique à, allergique aux, allergique
        au, allergico a, allergica a, allergico alle, allergica alle, allergico ai, allergica ai, allergico al,
        allergica al, alérgico ao, alérgica ao, allergisch voor, аллергия на, 我对, 对
        """),
    _relation("allergy allergies allergen allergens", anything, "",
              behind=r"\s*(?:アレルギー|のアレルギー| ?알레르기|에 알레르기|过敏|過敏)"),
    _relation("allergy allergies allergen allergens intolerance", anything, "", behind=r"\s*(?:allerg|intoleran|allergie)"),
    _relation("diet", a_diet,
              f"{_I_AM}, i eat, i've been, been, ich esse, ich ernähre mich, como, je mange, mangio, eu como, ik eet, ем"),
    _relation("diet", a_way_of_eating, """
        i eat, i only eat, we eat, we only eat, i, ich esse, no como, je mange, mangio, ik eet
        """),
    _relation("diet", a_diet, "", behind=r"\s*(?:です|예요|이에요|입니다)"),
    _relation("food foods eating", anything, "i eat, i only eat, ich esse, je mange, mangio, eu como, ik eet, я ем, 我吃",
              ends=""),
    _relation("drink drinks beverage", anything,
              """
        i drink, i only drink, i always drink, i mostly drink, we drink, ich trinke, bebo, je bois, bevo, eu bebo,
        ik drink, я пью, 我喝
        """),
    _relation("likes like love loves interest interests", anything,
              """
        i love, i like, i enjoy, i really like, ich mag, ich liebe, me gusta, me gustan, me encanta, me encantan, j
        aime, j adore, mi piace, mi piacciono, adoro, gosto de, ik hou van, я люблю, мне нравится, 我喜欢, 我喜歡, 喜欢
        """),
    _relation("likes like love loves", anything, "", behind=r"\s*(?:が(?:大)?好き|[을를] ?좋아)"),
    _relation("music genre", anything, """
        listen to, ich höre, escucho, j écoute, ascolto, ouço, ik luister naar, слушаю, 我听
        """),
    _relation("instrument instruments", an_instrument,
              """
        i play, ich spiele, spiele ich, toco, je joue du, je joue de la, suono, eu toco, ik speel, играю на, 我弹
        """),
    _relation("sport sports hobby hobbies", a_sport,
              "i play, ich spiele, spiele ich, juego al, je joue au, gioco a, jogo, ik speel, играю в, 我踢, 我打"),
    _relation("hobby hobbies activity", anything, "my hobby is, i collect, mein hobby ist"),
    _relation("hobby hobbies activity", an_activity, "i go, i do, i love, i like, i enjoy, i'm into, i am into, i love to go"),
    _relation("car vehicle", a_vehicle,
              """
        i drive, i own, we drive, we own, ich fahre, conduzco, je conduis, guido, dirijo, ik rijd, ik rijd in
        """, ends="and but since now for",
              article=True),
    _relation("bike bicycle motorbike motorcycle", anything,
              "i ride, i cycle, ich fahre", ends="and but since now", article=True),
    _relation("pet pets animal animals", an_animal,
              """
        i have, i've got, we have, we've got, i own, ich habe, wir haben, tengo, tenemos, j ai, nous avons, ho,
        abbiamo, tenho, temos, ik heb, у меня, у меня есть, 我有, 我养了
        """),
    _relation("pet pets animal", an_animal, "", behind=r"\s*(?:を飼って|[을를] ?키우)"),
    _relation("health illness condition conditions disease diagnosis", an_illness,
              """
        i have, i've got, i suffer from, i was diagnosed with, i am diagnosed with, i live with, diagnosed with,
        suffer from, ich habe, ich leide an, tengo, padezco, j ai, je souffre de, ho, soffro di, tenho, sofro de, ik
        heb, у меня
        """),
    _relation("health illness condition disease", an_illness, "", behind=r"\s*(?:です|があります|이 있|가 있)"),
    _relation("medication medications medicine drug drugs", a_medicine,
              "i take, i'm on, i am on, ich nehme, tomo, je prends, prendo, eu tomo, ik neem, я принимаю"),
    _relation("partner spouse", a_name,
              """
        married to, verheiratet mit, casado con, casada con, marié à, mariée à, sposato con, sposata con, casado
        com, casada com, getrouwd met
        """),
    _relation("name nickname", a_name,
              """
        call me, calls me, i'm called, i am called, my name is, my name's, name is, nenn mich, nenne mich, ich
        heiße, ich heisse, mein name ist, me llamo, llámame, mi nombre es, je m appelle, j m appelle, m appelle,
        appelle-moi, mi chiamo, chiamami, me chamo, chamo-me, me chame, ik heet, noem me, mijn naam is, меня зовут,
        зови меня, мене звати, 我叫, 叫我, 我的名字是
        """),
    _relation("name nickname", a_name, "", behind=r"\s*(?:と申し|といいます|と呼んで|라고 (?:불러|합니다|해요))"),
    _relation("name", a_name, "名前は, 이름은, 제 이름은"),
    _relation("pronoun pronouns", pronouns, f"{_I_AM}, i use, my pronouns are"),
    _relation("timezone tz zone", a_zone, f"{_I_AM}", "in on"),
    _relation("studies study major subject", anything,
              """
        i study, i'm studying, i studied, ich studiere, estudio, j étudie, studio, estudo, ik studeer, изучаю, 我学
        """),
    _relation("avoid avoids dislike dislikes", anything, "i avoid, i dislike"),
)  # fmt: skip

USES: Final = p.Phrases(
    """
    use, uses, using, switched to, migrated to, moved to, changed to, went with, chose, picked, stick to, stick
    with, swear by, rely on, code in, write in, on, run, running, run on, prefer, prefers, i'm on, we're on, keep
    using, nutze, nutzen, benutze, benutzen, verwende, verwenden, umgestiegen auf, bevorzuge, bevorzugen, nutze ich,
    verwende ich, benutze ich, i'm using, im using, we're using, im on, uso, utilizo, usamos, utilizamos, me pasé a,
    cambié a, prefiero, preferimos, utilise, utilisons, j utilise, passé à, passée à, préfère, préférons, usiamo,
    passato a, passata a, preferisco, preferiamo, mudei para, prefiro, gebruik, gebruiken, overgestapt op,
    prefereer, использую, используем, пользуюсь, предпочитаю, перешёл на, перешла на, kullanıyorum, kullanıyoruz, 用,
    使用, 换成, 更喜欢, 喜欢用, always want, want, show me, i write, we write
    """
)
"""Behind one of these stands what somebody uses or prefers."""
USED_BEHIND: Final = re.compile(
    r"\A\s*(?:を使|を利用|を好|[을를] ?(?:써|쓰|사용|선호|마시)|が(?:大)?好き|[을를] ?좋아|を飲)"
)
DRUNK: Final = p.Phrases(
    """
    prefer, prefers, love, like, enjoy, mag, liebe, gusta, aime, piace, gosto de, люблю, 喜欢, 喜欢喝, 爱喝, drink, drinks,
    bevorzuge, trinke, prefiero, bebo, préfère, bois, preferisco, bevo, prefiro, 喝
    """
)
"""The only verbs that make a drink one: who uses water drinks none."""


def is_spelled_as_a_name(written: str, text: str) -> bool:
    """
    Whether a value stands in a text as names are written: with a capital, or in a script that has none. Who types
    without capitals leaves it to the value.
    """
    first = next((char for char in written if char.isalpha()), "")
    if not first or (first.lower() == first.upper()):
        return bool(first)
    found = re.search(rf"(?<!\w){re.escape(written)}(?!\w)", text, re.IGNORECASE)
    if found is None:
        return normal(written) != written
    at = next((char for char in found[0] if char.isalpha()), "")
    return at.isupper() or (first.isupper() and not any(char.isupper() for char in text))
