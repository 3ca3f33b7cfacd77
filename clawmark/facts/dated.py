"""Dates that were said in words: what day "tomorrow" was, when it was said.

An extractor writes the day, for "tomorrow" is true for one day alone; the person said the word. Here the day is taken
back to the word, by the date where the message was said, so that the words can be looked for. What two people could
take for two days ("next Friday" on a Wednesday, a day and month in figures) is taken for none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo

from clawmark.text import normal

LONGEST = 2000
"""Characters of a text that are looked at: more is no quote."""
_ISO = re.compile(r"(?<![\d-])(\d{4})-(\d{2})-(\d{2})(?![\d-])")


def local(at: datetime, zone: tzinfo | None) -> datetime:
    """`at` by the clock where it was said: in its own offset, or, where it has none but UTC, in `zone` (None = UTC)."""
    return at if at.utcoffset() else at.astimezone(zone or UTC)


def as_said(value: str, quote: str, day: date) -> str | None:
    """`value` with each of its dates as `quote` says it, for a quote of `day`; None where one has no place there. A value
    without a date, or whose date stands in the quote, is returned as it is."""
    text = normal(quote)
    said = value
    for match in _ISO.finditer(value):
        if match[0] in text:
            continue
        words = next((words for words, meant in days_in(text, day) if meant.isoformat() == match[0]), None)
        if words is None:
            return None
        said = said.replace(match[0], words)
    return said


def days_in(text: str, day: date) -> Iterator[tuple[str, date]]:
    """The expressions in a text in normal form that mean one day, and that day. The longest reading of a place alone."""
    text = text[:LONGEST]
    taken: list[tuple[int, int]] = []
    for start, end, meant in sorted(_found(text, day), key=lambda one: one[0] - one[1]):
        if all(end <= a or start >= b for a, b in taken):
            taken.append((start, end))
            if meant is not None:
                yield text[start:end], meant


def _found(text: str, day: date) -> Iterator[tuple[int, int, date | None]]:
    for pattern, days in _RELATIVE:
        for match in pattern.finditer(text):
            yield *match.span(), _after(day, days)
    for pattern in _IN_DAYS:
        for match in pattern.finditer(text):
            yield *match.span(), _after(day, _count(match["n"]) * (7 if match["week"] else 1))
    for match in _WEEKDAY.finditer(text):
        yield *match.span("day"), _weekday(match, day)
    for match in _WRITTEN.finditer(text):
        yield *match.span(), _written(match)
    for pattern in _FIGURES:
        for match in pattern.finditer(text):
            yield *match.span(), _of(match["y"], match["m"], match["d"])


def _after(day: date, days: int) -> date | None:
    try:
        return day + timedelta(days=days)
    except OverflowError:
        return None


# ---------------------------------------------------------------------------------------------------------------------
# So many days from now
# ---------------------------------------------------------------------------------------------------------------------


def _words(listed: str) -> str:
    """An alternative of words and phrases; those of scripts without blanks count inside a run."""
    phrases = sorted((normal(one).strip() for one in listed.split(",")), key=len, reverse=True)
    return "|".join(re.escape(one) if one[0] > "\u2fff" else rf"(?<!\w){re.escape(one)}(?!\w)" for one in phrases)


_RELATIVE = tuple(
    (re.compile(listed if "(?<" in listed else _words(listed)), days)
    for days, listed in (
        (0, "today, tonight, heute, hoy, aujourd'hui, oggi, hoje, vandaag, сегодня, bugün, 今天, 今日, 오늘"),
        (1, "tomorrow, demain, domani, amanhã, завтра, yarın, 明天, 明日, 내일"),
        # "guten Morgen", "por la mañana": the morning, not the day
        (1, r"(?<!guten )(?<!heute )(?<!jeden )(?<!gestern )(?<!am )(?<!goede)(?<!\w)morgen(?![\w'])"),
        (1, r"(?<!la )(?<!esta )(?<!cada )(?<!pasado )(?<!\w)mañana(?!\w)"),
        (2, "day after tomorrow, übermorgen, pasado mañana, après-demain, après demain, dopodomani, depois de amanhã"),
        (2, "overmorgen, послезавтра, öbür gün, 后天, 後天, 明後日, 모레"),
        (-1, "yesterday, gestern, ayer, ieri, ontem, gisteren, вчера, dün, 昨天, 昨日, 어제"),
        (
            -2,
            "day before yesterday, vorgestern, anteayer, avant-hier, l'altro ieri, anteontem, eergisteren, позавчера, 前天",
        ),
    )
)

_NUMBERS = {
    word: number
    for number, listed in enumerate(
        (
            "a an one ein einem einer un una uno une um uma een один одну bir",
            "two zwei dos deux due dois duas twee два две iki 两 兩 二",
            "three drei tres trois tre três drie три üç 三",
            "four vier cuatro quatre quattro quatro четыре dört 四",
            "five fünf cinco cinq cinque vijf пять beş 五",
            "six sechs seis sei zes шесть altı 六",
            "seven sieben siete sept sette sete zeven семь yedi 七",
            "eight acht ocho huit otto oito восемь sekiz 八",
            "nine neun nueve neuf nove negen девять dokuz 九",
            "ten zehn diez dix dieci dez tien десять on 十",
        ),
        start=1,
    )
    for word in listed.split()
}
_N = rf"(?P<n>\d{{1,3}}|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})"
_DAYS_OR_WEEKS = (
    "(?:days?|tage?n?|días?|dias?|jours?|giorn[io]|dag(?:en)?|дн(?:я|ей)|день"
    "|(?P<week>weeks?|wochen?|semanas?|semaines?|settiman[ae]|wek(?:en)|week|недел[юиь]))"
)
_IN_DAYS = (
    re.compile(rf"(?<!\w)(?:in|dentro de|en|dans|tra|fra|em|daqui a|over|через) {_N} {_DAYS_OR_WEEKS}(?!\w)"),
    re.compile(rf"(?<!\w){_N} (?:gün|(?P<week>hafta)) sonra(?!\w)"),
    re.compile(rf"{_N} ?(?:天|日|일|(?P<week>个?星期|週間|周|주)) ?(?:之?后|之?後|以后|뒤|후)"),
)


def _count(said: str) -> int:
    return int(said) if said.isdigit() else _NUMBERS[said]


# ---------------------------------------------------------------------------------------------------------------------
# Days of the week
# ---------------------------------------------------------------------------------------------------------------------

_WEEKDAYS = {
    normal(word): number
    for number, listed in enumerate(
        (
            "monday montag lunes lundi lunedì maandag понедельник pazartesi",
            "tuesday dienstag martes mardi martedì dinsdag вторник salı",
            "wednesday mittwoch miércoles mercredi mercoledì woensdag среду среда çarşamba",
            "thursday donnerstag jueves jeudi giovedì donderdag четверг perşembe",
            "friday freitag viernes vendredi venerdì vrijdag пятницу пятница cuma",
            "saturday samstag sonnabend sábado samedi sabato zaterdag субботу суббота cumartesi",
            "sunday sonntag domingo dimanche domenica zondag воскресенье pazar",
        )
    )
    for word in listed.split()
} | {f"{lead}{char}": number for number, char in enumerate("一二三四五六日") for lead in ("周", "星期", "礼拜")}
_WEEKDAYS |= {f"{char}曜日": number for number, char in enumerate("月火水木金土日")}
_WEEKDAYS |= {f"{char}요일": number for number, char in enumerate("월화수목금토일")}
_WEEKDAY = re.compile(
    r"(?P<lead>(?:(?:[^\W\d_]+|l')[ ]){0,2}|[这這本下上每毎]个?)(?P<day>"
    + "|".join(
        re.escape(word) if word[0] > "\u2fff" else rf"(?<!\w){re.escape(word)}(?!\w)"
        for word in sorted(_WEEKDAYS, key=len, reverse=True)
    )
    + r")(?P<tail>(?: [^\W\d_]+)?)"
)
_NEXT = frozenset(
    normal(
        "next nächsten nächster próximo próxima proximo prochain prossimo prossima que vem volgende следующий следующую "
        "gelecek önümüzdeki 下 下个 来週の 다음"
    ).split()
)
_GONE = frozenset(
    normal(
        "last past previous every each most some letzten letzter vergangenen jeden jede pasado último cada todos los dernier "
        "passé chaque tous scorso passato ogni passado todo toda vorige afgelopen elke iedere прошлый прошлую каждый каждую "
        "geçen her 上 上个 每 每个 毎 先週の 毎週 지난 매주 not no nicht kein don't since seit desde depuis"
    ).split()
)


def _weekday(match: re.Match[str], day: date) -> date | None:
    """The day of that name within a week, where nothing says that another one, or all of them, are meant."""
    beside = {*match["lead"].split(), *match["tail"].split()}
    ahead = (_WEEKDAYS[match["day"]] - day.weekday()) % 7
    if ahead == 0 or beside & _GONE:
        return None
    if beside & _NEXT and ahead <= 6 - day.weekday():
        return None  # of this week, or of the next
    return _after(day, ahead)


# ---------------------------------------------------------------------------------------------------------------------
# Day, month and year
# ---------------------------------------------------------------------------------------------------------------------

MONTHS = {
    normal(word): number
    for number, listed in enumerate(
        (
            "january jan januar jänner enero janvier gennaio janeiro januari января ocak",
            "february feb februar febrero février febbraio fevereiro februari февраля şubat",
            "march mar märz marzo mars março maart марта mart",
            "april apr abril avril aprile апреля nisan",
            "may mai mayo maggio maio mei мая mayıs",
            "june jun juni junio juin giugno junho июня haziran",
            "july jul juli julio juillet luglio julho июля temmuz",
            "august aug agosto août augustus августа ağustos",
            "september sep sept septiembre septembre settembre setembro сентября eylül",
            "october oct oktober okt octubre octobre ottobre outubro октября ekim",
            "november nov noviembre novembre novembro ноября kasım",
            "december dec dezember dez diciembre décembre dicembre dezembro декабря aralık",
        ),
        start=1,
    )
    for word in listed.split()
}
_MONTH = "|".join(sorted(map(re.escape, MONTHS), key=len, reverse=True))
_WRITTEN = re.compile(
    rf"(?<!\w)(?P<d1>\d{{1,2}})(?:st|nd|rd|th|\.|er|º)?(?: of| de)? (?P<m1>{_MONTH})\.?,?(?: de)? (?P<y1>\d{{4}})(?!\w)"
    rf"|(?<!\w)(?P<m2>{_MONTH})\.? (?P<d2>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<y2>\d{{4}})(?!\w)"
)
_FIGURES = (
    re.compile(r"(?<![\d.])(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>\d{4})(?![\d.])"),
    re.compile(r"(?P<y>\d{4}) ?[年년] ?(?P<m>\d{1,2}) ?[月월] ?(?P<d>\d{1,2}) ?[日일号]"),
)
"""With dots the day stands first; with slashes nobody knows."""


def _written(match: re.Match[str]) -> date | None:
    year, month, day = match["y1"] or match["y2"], match["m1"] or match["m2"], match["d1"] or match["d2"]
    return _of(year, str(MONTHS[month]), day)


def _of(year: str, month: str, day: str) -> date | None:
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None
