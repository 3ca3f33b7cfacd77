"""Finds secrets in text, so that no message is indexed, embedded, stored, sent or shown with one in it.

People paste tokens into chats and say passwords in plain sentences. Scanners made for source code miss the second
kind, and entropy scanners take every hash for a secret. So this is one table of rules, each for a class of secrets with
a shape that its vendor or a standard documents, or with a word before it that says what it is.

What always holds:

- Only the value is spanned: in `NAME=value` the name stays, in a URL only the password goes.
- `find` of a masked text is empty, so `mask` applied twice equals `mask` applied once.
- A rule is tried only when one of its literals occurs in the lower-cased text (and, where it says so, when the text has
  a long enough run of token characters or enough digits). Text without secrets costs a few microseconds.
- Time grows linearly with the length of the text: quantifiers are bounded, or they stand at the end of a pattern whose
  start cannot lie inside its own match; candidates that fail their check are retried within a budget.
- No value is logged, cached or kept.

Out of reach: secrets without any shape or announcing word, and secrets split or disguised on purpose.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from operator import ne

RULES_VERSION: int = 2


@dataclass(frozen=True, slots=True)
class Secret:
    """A half-open span of code points in the text given to `find`."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One class of secrets.

    The secret is the named group that matched (`v…` as it is, `b…` without the punctuation that ends a sentence), or
    the whole match when the pattern names none. `lowered` patterns run on the lower-cased text, which has the same
    length, so one spelling covers all; `check` and `fit` always see the original.
    """

    kind: str
    literals: tuple[str, ...]
    pattern: re.Pattern[str]
    check: Callable[[str], bool] | None = None
    fit: Callable[[str], int] | None = None  # how many leading characters of the value are the secret
    lowered: bool = False
    run: int = 0  # least run of token characters in the text: 0, 16 (letters, digits, _ and -) or 40 (see `_WIDE`)
    digits: int = 0  # least number of ASCII digits in the text: 0, 4, 9 or 12
    start_only: bool = False  # tried at the start of the text only
    plain: bool = False  # tried in a text without signs as well, see `_has_signs`


# ---------------------------------------------------------------------------------------------------------------------
# Checks: what a candidate must look like
# ---------------------------------------------------------------------------------------------------------------------


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.I)
_HEX = re.compile(r"[0-9a-f]+", re.I)
_STAND_IN = re.compile(
    r"""[<\[{(].*[>\]})] | [<{\[(%].* | \$[({].* | \$[A-Z_][A-Z0-9_]* | \$[a-z_]+ | %\w+% | @\w+@
      | [x*•.·_\-?#…0]+ | .*(?:x{4}|X{4}|\*{3}|•{2}|\.{3}|…).*
      | (?:your|my|the|some|an?|insert|enter|put|replace|fake|dummy|sample|example|test)[-_ ][a-z_ -]*
      | change[-_]?(?:me|this|it).* | to-?do | tbd | n/a
      | (?:redacted|masked|hidden|removed|placeholder|example|sample|dummy|none|null|nil|true|false|undefined|empty)""",
    re.X | re.I,
)
_CODE = re.compile(
    r"""(?:process|os|env|environ|import|meta|system|config|cfg|conf|settings|options|opts|args|self|this|cls|ctx|app
         |req|request|res|response|secrets?|vars?|data|params?|props|state|user|creds|credentials|vault|local|module)
        (?:\.|\[|->|::).* | (?:[A-Za-z_]\w*(?:\.|::|->)){0,6}[A-Za-z_]\w*(?:\(|\[).* | (?:[A-Za-z_]+\.){1,6}[A-Za-z_]+
      | (?:https?|ftp|file|vault|op|arn|ref|ssm|sops|gs|s3)://[^\s@]* | arn:.* | (?:\.{0,2}|~|[A-Za-z]:)[/\\][\w./\\ -]*
      | [\w.-]+(?:/[\w.-]+)*\.(?:pem|key|txt|json|ya?ml|env|toml|crt|p12|kdbx?|gpg|py|js|ts|md)""",
    re.X | re.I,
)
_DATE = re.compile(
    r"\d{1,4}[-./]\d{1,2}(?:[-./]\d{1,4})?(?:[T ][\d:.Z+-]*)?|v?\d+(?:\.\d+){1,3}[\w.-]{0,12}|\d\d?:\d\d\S*|\d+%"
)
_QUANTITY = re.compile(
    r"[$€£~+-]?\d{1,3}(?:[,.]\d{1,3}){0,6}[+%]?"
    r"|\d{1,5}(?:[-–]\d{1,5})?-?(?:bits?|bytes?|chars?|characters?|digits?|days?"
    r"|hours?|hrs?|minutes?|mins?|seconds?|secs?|weeks?|months?|years?|[hmsxk]|ms|[kmg]i?b|st|nd|rd|th|fold|factor)"
    r"|(?:min|max|at-least)?-?\d{1,3}-(?:char(?:acter)?s?|digits?)"
    r"|[a-z]{0,5}\d?fa|sha-?\d{1,3}|md5|[her]s(?:256|384|512)|oauth2?(?:\.0)?|base\d\d|utf-?8|ed25519|argon2\w{0,2}"
    r"|pbkdf2\S{0,9}|aes-?\d\S{0,9}|1password\S{0,9}|i18n|k8s|s3|ec2|web3",
    re.I,
)
_NAME = re.compile(r"[A-Za-z_-]+[0-9]{1,2}|[a-z][-_0-9a-z]*")
_SYMBOL_INSIDE = re.compile(r"[!#$%&*+=?@^_~|][A-Za-z]")
_ORDINARY = _words(
    "string str text bytes int number integer bool boolean object any type required optional missing invalid valid "
    "incorrect correct wrong expired reset changed forgotten unknown stored saved hidden default empty none null true "
    "false password passwort passphrase passcode passwd secret token key value user username login name admin required "
    "bitwarden lastpass keepass keychain vault manager rotated leaked compromised needed here there below above ask "
    "see same "
    "unset enabled disabled yes no not in the and bearer basic input prompt file field state props variable env "
    "environment generated random protected encrypted hashed plaintext please this that with from secure strong weak "
    "short long rotate update updated reused public private pending available unavailable accepted rejected denied "
    "confirm confirmation policy rules form length minimum maximum access refresh session client server"
)


_KINDS = bytes(1 if 97 <= c < 123 else 2 if 65 <= c < 91 else 3 if 48 <= c < 58 else 1 for c in range(256))


def _changes(value: str) -> float:
    """Share of neighbours that differ in class (lower, upper, digit), separators left out.

    Random letters and digits lie near 0.6, random hex near 0.47, words, dates and identifiers below 0.2.
    """
    kinds = value.encode("latin-1", "replace").translate(_KINDS, b"_-.:/+= ")
    return sum(map(ne, kinds, kinds[1:])) / (len(kinds) - 1) if len(kinds) > 1 else 0.0


def _stand_in(value: str) -> bool:
    return _STAND_IN.fullmatch(value) is not None


def _has_digit(value: str) -> bool:
    return any("0" <= c <= "9" for c in value)


def _has_letter(value: str) -> bool:
    return any(c.isalpha() for c in value)


LONG_BODY = 24
"""Letters and digits in one run behind a prefix: no word or identifier has so many."""


def _body(value: str) -> bool:
    """A documented prefix with what follows it: not a word, not a placeholder. Random hex may hold long rows of digits."""
    last = value.rstrip("=").replace("_", "-").rpartition("-")[2]
    is_long = len(last) >= LONG_BODY and _has_digit(last) and _has_letter(last)
    return not _stand_in(value) and (is_long or _changes(value) >= 0.15) and len(set(value)) > 7


def _varied(value: str) -> bool:
    """For prefixes so rare that only placeholders have to be told apart."""
    return len(set(value)) > 7


def _random(value: str) -> bool:
    """Letters and digits mixed as no word, date, identifier or UUID mixes them."""
    return (
        _has_digit(value)
        and _has_letter(value)
        and _changes(value) >= 0.2
        and len(set(value)) > 7
        and not _UUID.search(value)
        and not _stand_in(value)
    )


def _random_not_hex(value: str) -> bool:
    return _random(value) and any(c.isupper() for c in value) and any(c.islower() for c in value)


def _opaque(value: str) -> bool:
    """What stands there without any context: evenly mixed upper, lower and digits, and not text in base64."""
    if not _random_not_hex(value) or _changes(value) < 0.4 or _HEX.fullmatch(value):
        return False
    try:
        plain = binascii.a2b_base64(value)
    except binascii.Error:
        return True
    return sum(32 <= b < 127 for b in plain) < 0.9 * len(plain)


def _made_up(value: str) -> bool:
    if _has_digit(value):
        return value.isdigit() or _has_letter(value) or len(value) >= 6
    if _SYMBOL_INSIDE.search(value):
        return True
    return len(value) >= 8 and value.isascii() and value.isalpha() and _changes(value) >= 0.25


def _ordinary(value: str) -> bool:
    """A stand-in, code, a date or a quantity."""
    return any(p.fullmatch(value) is not None for p in (_STAND_IN, _CODE, _DATE, _QUANTITY))


def _password_like(value: str) -> bool:
    """What follows 'the password is': a made-up string, not the next word of the sentence."""
    return len(value) >= 4 and _made_up(value) and not _ordinary(value)


def _assigned_password(value: str) -> bool:
    """What stands behind `password=`: here a plain word is a password too, unless it is one that forms and code use."""
    if _password_like(value):
        return True
    words = value.lower().split()
    if not all(w.isalpha() and w not in _SENTENCE_WORDS for w in words):
        return False
    if len(words) == 1:
        return len(value) >= 6 and words[0] not in _ORDINARY and not _stand_in(value)
    # A passphrase of dictionary words, as opposed to a label or a message about passwords.
    return len(words) >= 3 and len(_ORDINARY.intersection(words)) <= 1


def _assigned_token(value: str) -> bool:
    """What stands behind `token=` or `secret=`: names, numbers and words are ordinary there, a mixture is not."""
    if len(value) < 6:
        return False
    if _has_digit(value) and _has_letter(value):
        # Short names with a number behind ("python3", "v2_final") are names.
        good = len(value) >= 16 or _changes(value) >= 0.3 or not _NAME.fullmatch(value)
    elif value.isdigit():
        good = len(value) >= 16
    else:
        good = (len(value) >= 12 and _changes(value) >= 0.25) or sum(c in "!#$%&*+=?@^~|" for c in value) >= 2
    return good and not _ordinary(value)


def _assigned_key(value: str) -> bool:
    """What stands behind a bare `key=`: cache and map keys live there as well, so only a long random value counts."""
    return len(value) >= 16 and _random(value) and not _CODE.fullmatch(value) and not _DATE.fullmatch(value)


def _spoken(value: str) -> bool:
    """What follows 'the token is': as long as a machine-made token."""
    return (
        len(value) >= 12
        and not _CODE.fullmatch(value)
        and (_random(value) or (value.isalnum() and _changes(value) >= 0.3))
    )


def _url_password(value: str) -> bool:
    return (
        not _stand_in(value)
        and re.match(r"\d{1,5}(?:[?#].*)?$", value) is None
        and value.lower() not in ("password", "pass", "pwd")
    )


# A lower-case word before the separator that says "this is a key".
_KEY_WORDS = _words(
    "sk pk rk ak uk dk key keys apikey api token tok secret sec pat live test prod sandbox auth access oauth bot rt at "
    "jwt refresh session pass pwd svc service admin user app client private priv webhook hook wh license bearer cred"
)
# Of those, the ones that also stand before hashes, UUIDs and the like ("test-<commit>").
_WEAK_KEY_WORDS = _words("api live test prod sandbox auth bot app user client session service svc admin at rt hook")
# Prefixes of public identifiers and digests, which are no secrets.
_PUBLIC = _words(
    "sha sha1 sha224 sha256 sha384 sha512 md5 blake2b blake3 commit rev build release ssh ecdsa rsa file img image "
    "msg toolu call chatcmpl resp asst thread run req evt cus sub inv prod price txn acct seti pi pm ch ses"
)


def _prefixed(value: str) -> bool:
    """Prefix + separator + long random body, the shape most vendors chose after GitHub and Stripe."""
    parts = re.split("[_-]", value)
    if parts[0] in _PUBLIC:
        return False
    at = 0
    while (
        at < len(parts) - 1 and at < 4 and len(parts[at]) <= 12 and (parts[at] in _KEY_WORDS or not _random(parts[at]))
    ):
        at += 1
    heads, body = parts[:at], value[sum(len(p) + 1 for p in parts[:at]) :]
    words = _KEY_WORDS.intersection(heads)
    if words - _WEAK_KEY_WORDS:
        return len(body) >= 20 and _random(body)
    if words:
        return len(body) >= 20 and _random(body) and not _HEX.fullmatch(body)
    return len(body) >= 30 and _random_not_hex(body) and _changes(body) >= 0.4


def _bearer(value: str) -> bool:
    return not _stand_in(value) and ((_has_digit(value) and _has_letter(value)) or _changes(value) >= 0.25)


def _basic(value: str) -> bool:
    """RFC 7617: base64 of user:password."""
    try:
        return b":" in binascii.a2b_base64(value + "=" * (-len(value) % 4))
    except binascii.Error:
        return False


def _luhn(digits: str) -> bool:
    total = 0
    for i, c in enumerate(reversed(digits)):
        d = ord(c) - 48
        if i % 2:
            d = 2 * d - 9 if d > 4 else 2 * d
        total += d
    return total % 10 == 0


# Issuer ranges with their lengths: ISO/IEC 7812 and the public pages of the networks
_ISSUERS = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})"  # Visa
    r"|(?:5[1-5][0-9]{2}|222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"  # Mastercard
    r"|3[47][0-9]{13}"  # American Express
    r"|(?:6011|64[4-9][0-9]|65[0-9]{2})[0-9]{12}"  # Discover
    r"|35(?:2[89]|[3-8][0-9])[0-9]{12}"  # JCB
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}"  # Diners Club
    r"|62(?:[0-9]{14}|[0-9]{17})"  # UnionPay
    r"|(?:5018|5020|5038|5893|6304|6759|676[1-3])[0-9]{12}"  # Maestro
    r"|220[0-4][0-9]{12}"  # Mir
)
_GROUPS = re.compile(
    r"[0-9]{13,19}"
    r"|[0-9]{4}(?P<s>[ -])[0-9]{4}(?P=s)[0-9]{4}(?P=s)[0-9]{1,4}(?:(?P=s)[0-9]{1,3})?"
    r"|[0-9]{4}(?P<t>[ -])[0-9]{6}(?P=t)[0-9]{4,5}"
)


def _card(value: str) -> bool:
    digits = value.replace(" ", "").replace("-", "")
    return (
        _GROUPS.fullmatch(value) is not None
        and _ISSUERS.fullmatch(digits) is not None
        and len(set(digits)) > 1
        and _luhn(digits)
    )


def _iban(value: str) -> int:
    """ISO 13616: country and check digits moved to the end, letters as numbers, modulo 97 is 1.

    The words after a number in groups look like further groups, so shorter readings are tried as well.
    """
    end = len(value)
    while end >= 15:
        packed = value[:end].replace(" ", "").upper()
        if 15 <= len(packed) <= 34 and int("".join(str(int(c, 36)) for c in packed[4:] + packed[:4])) % 97 == 1:
            return end
        end = value.rfind(" ", 0, end)
    return 0


def _ssn(value: str) -> bool:
    """Numbers the US Social Security Administration never issues are no SSN."""
    area, group, serial = value[:3], value[4:6], value[7:]
    return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"


def _weighted(digits: str, weights: range) -> int:
    return sum(int(d) * w for d, w in zip(digits, weights, strict=True))


def _national(value: str) -> bool:
    """Numbers of persons with a check digit: China (GB 11643), Brazil (CPF), France (NIR)."""
    digits = re.sub("[ .-]", "", value).upper()
    if len(digits) == 18:
        return "10X98765432"[sum(int(d) * pow(2, 17 - i, 11) for i, d in enumerate(digits[:17])) % 11] == digits[17]
    if len(digits) == 15:
        return 97 - int(digits[:13]) % 97 == int(digits[13:])
    first = _weighted(digits[:9], range(10, 1, -1)) * 10 % 11 % 10
    second = _weighted(digits[:10], range(11, 1, -1)) * 10 % 11 % 10
    return len(set(digits)) > 1 and digits[9:] == f"{first}{second}"


def _codes(value: str) -> int:
    """One-time codes: each has a digit or is as long as the first, so that the words of a sentence end the list."""
    end, length = 0, 0
    for m in re.finditer(r"[A-Za-z0-9]{4,}(?:-[A-Za-z0-9]{4,})*", value):
        good = _has_digit(m.group()) and not _DATE.fullmatch(m.group())
        if not good and len(m.group()) != length:
            break
        if good:
            end, length = m.end(), length or len(m.group())
    return end if len(value[:end].strip()) >= 5 else 0


def _no_date(value: str) -> bool:
    return _DATE.fullmatch(value) is None


_SEED_LENGTHS = (24, 21, 18, 15, 12)
# Frequent English words that no BIP39 list has: a sentence holds one of them, a seed phrase never does.
_SENTENCE_WORDS = _words(
    "the and for with not are was were but from has had did does don any its his him she her they them there their our "
    "who how why which while because would could should been being about's please let got get gets see went going "
    "enter your must new old choose type these those some many each every than too very also's yes yet per via"
)


def _seed(value: str) -> bool:
    """BIP39 without its list of words: the right count of short words, and no sentence is made of those alone."""
    words = value.split()
    if len(words) not in _SEED_LENGTHS or _SENTENCE_WORDS & set(words):
        return False
    inflected = sum(w.endswith(("ed", "ing", "ly", "ies", "ons", "ers", "ts", "es")) for w in words)
    return inflected <= len(words) // 4 and len(set(words)) > len(words) // 2


def _announced_seed(value: str) -> int:
    """Behind 'seed phrase:' the sentence may go on after the last word, so the longest fitting count is taken."""
    ends = [m.end() for m in re.finditer(r"[a-z]+", value)]
    for n in _SEED_LENGTHS:
        if len(ends) >= n and not _SENTENCE_WORDS & set(re.findall(r"[a-z]+", value[: ends[n - 1]])):
            return ends[n - 1]
    return 0


# ---------------------------------------------------------------------------------------------------------------------
# The table
# ---------------------------------------------------------------------------------------------------------------------

# Documented token prefixes whose body is 16 or more letters, digits, _ and - : kind, prefixes, where documented.
_PREFIXES: tuple[tuple[str, str, str], ...] = (
    ("github_token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", "docs.github.com: token formats"),
    (
        "gitlab_token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct-",
        "docs.gitlab.com: token prefixes",
    ),
    (
        "slack_token",
        "xoxb- xoxp- xoxa- xoxo- xoxr- xoxs- xoxe- xoxc- xoxd- xapp- xoxe.xoxp- xoxe.xoxb-",
        "docs.slack.dev: token types",
    ),
    ("anthropic_key", "sk-ant-", "docs.anthropic.com"),
    ("openai_key", "sk-proj- sk-svcacct- sk-admin-", "platform.openai.com"),
    ("openrouter_key", "sk-or-", "openrouter.ai/docs"),
    ("langfuse_key", "sk-lf- pk-lf-", "langfuse.com/docs"),
    ("google_key", "AIza GOCSPX- ya29.", "cloud.google.com/docs/authentication"),
    ("stripe_key", "sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ pk_test_ whsec_", "docs.stripe.com/keys"),
    ("npm_token", "npm_", "npm documentation: access tokens"),
    ("pypi_token", "pypi-", "PyPI help: API tokens"),
    ("huggingface_token", "hf_ api_org_", "huggingface.co/docs: user access tokens"),
    ("digitalocean_token", "dop_v1_ doo_v1_ dor_v1_", "docs.digitalocean.com"),
    ("shopify_token", "shpat_ shpca_ shppa_ shpss_ shpua_", "shopify.dev: authentication"),
    ("notion_token", "ntn_", "developers.notion.com"),
    ("linear_key", "lin_api_ lin_oauth_", "linear.app/developers"),
    ("groq_key", "gsk_", "console.groq.com"),
    ("xai_key", "xai-", "docs.x.ai"),
    ("perplexity_key", "pplx-", "docs.perplexity.ai"),
    ("replicate_token", "r8_", "replicate.com/docs"),
    ("nvidia_key", "nvapi-", "docs.nvidia.com"),
    ("docker_token", "dckr_pat_ dckr_oat_", "docs.docker.com: access tokens"),
    ("tailscale_key", "tskey-", "tailscale.com/kb: auth keys"),
    ("vault_token", "hvs. hvb. hvr.", "developer.hashicorp.com/vault: tokens"),
    ("grafana_token", "glsa_ glc_", "grafana.com/docs: service accounts"),
    ("atlassian_token", "ATATT3 ATCTT3 ATBB", "support.atlassian.com: API tokens"),
    ("figma_token", "figd_ figo_ figu_", "figma.com/developers"),
    ("postman_key", "PMAK-", "learning.postman.com"),
    ("newrelic_key", "NRAK- NRJS- NRII- NRAA- NRIQ-", "docs.newrelic.com: API keys"),
    ("sentry_token", "sntrys_ sntryu_ sntrya_", "docs.sentry.io: auth tokens"),
    ("planetscale_token", "pscale_tkn_ pscale_pw_ pscale_oauth_", "planetscale.com/docs"),
    ("supabase_key", "sbp_ sb_secret_", "supabase.com/docs: API keys"),
    ("fly_token", "fo1_ fm1_ fm2_ fm1r_ fm1a_", "fly.io/docs: tokens"),
    ("pulumi_token", "pul-", "pulumi.com/docs: access tokens"),
    ("rubygems_key", "rubygems_", "guides.rubygems.org"),
    ("square_token", "EAAA sq0atp- sq0csp-", "developer.squareup.com"),
    ("brevo_key", "xkeysib- xsmtpsib-", "developers.brevo.com"),
    ("jfrog_token", "AKCp cmVmdGtuOj", "jfrog.com/help"),
    ("onepassword_token", "ops_eyJ", "developer.1password.com: service accounts"),
    ("buildkite_token", "bkua_ bkaj_", "buildkite.com/docs"),
    ("prefect_key", "pnu_ pnb_", "docs.prefect.io"),
    ("flutterwave_key", "FLWSECK- FLWSECK_TEST- FLWPUBK-", "developer.flutterwave.com"),
    ("easypost_key", "EZAK EZTK", "docs.easypost.com"),
    ("frameio_token", "fio-u-", "developer.frame.io"),
    ("langsmith_key", "lsv2_pt_ lsv2_sk_ ls__", "docs.smith.langchain.com"),
    ("tavily_key", "tvly-", "docs.tavily.com"),
    ("jina_key", "jina_", "jina.ai"),
    ("pinecone_key", "pcsk_", "docs.pinecone.io"),
    ("cerebras_key", "csk-", "inference-docs.cerebras.ai"),
    ("posthog_key", "phx_ phs_", "posthog.com/docs"),
    ("neon_key", "napi_", "neon.tech/docs"),
    ("vercel_token", "vcp_ vck_ vci_ vca_ vcr_ vercel_blob_rw_", "vercel.com/docs"),
    ("netlify_token", "nfp_ nfc_ nfo_ nfu_ nfb_", "docs.netlify.com"),
    ("heroku_key", "HRKU-", "devcenter.heroku.com"),
    ("contentful_token", "CFPAT-", "contentful.com/developers"),
    ("typeform_token", "tfp_", "typeform.com/developers"),
    ("readme_key", "rdme_", "docs.readme.com"),
    ("sourcegraph_token", "sgp_ sgd_ slk_", "sourcegraph.com/docs"),
    ("wandb_key", "wandb_v1_", "docs.wandb.ai"),
    ("adafruit_key", "aio_", "learn.adafruit.com"),
    ("clojars_token", "CLOJARS_", "github.com/clojars"),
    ("memory_service_key", "hsk- mem0_ m0- brv_ retaindb_", "memory services: their own docs"),
    ("doppler_token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", "docs.doppler.com: token formats"),
    ("discord_token", "mfa.", "discord.com/developers"),
    ("age_key", "AGE-SECRET-KEY-1", "age-encryption.org"),
)


def _prefix_rules() -> tuple[Rule, ...]:
    return tuple(
        Rule(
            kind,
            tuple(p.lower() for p in prefixes.split()),
            re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, prefixes.split()))})[A-Za-z0-9_-]{{16,}}=*"),
            _body,
            run=16,
        )
        for kind, prefixes, _where in _PREFIXES
    )


# Parts of the patterns for names and values. `v` groups are quoted, `b` groups are bare.
_QUOTED = (
    r"""\\?"(?P<v1>[^"\n]{3,300})"|\\?'(?P<v2>[^'\n]{3,300})'|`(?P<v3>[^`\n]{3,300})`"""
    r"""|[“„«「](?P<v4>[^“”«»」\n]{3,300})[”“»」]"""
)
_BARE = r"""[\\"'`]{0,2}(?P<b1>[^\s"'`“”„,;<&]{3,300}(?:&(?![a-z_]{1,30}=)[^\s"'`“”„,;<&]{0,100}){0,4})"""
_VALUE = rf"(?:{_QUOTED}|{_BARE})"
_TAIL = r"""(?:[_.-][a-z0-9_.-]{0,40})?[0-9]{0,4}"""
_TYPE = r"(?:[ \t]?:[ \t]?[&*]?(?:'static )?(?:str|string|bytes|char)[ \t]?(?==))?"
_LINK = (
    rf"""[\\"'`\]*]{{0,4}}{_TYPE}[ \t]{{0,8}}(?:=>|:=|={{1,3}}|:|：|＝|->|→|>(?!@))[*_]{{0,2}}[ \t]{{0,4}}"""
    r"""(?:[rbfu](?=["']))?"""
)
# A plain word counts as a password only when it is all there is: in quotes or up to the end of the line or item.
_WHOLE = rf"(?:{_QUOTED}|(?P<b1>[^\W0-9_]{{6,40}})(?=[ \t]{{0,4}}(?:[\r\n,;&<\"'`}}]|\Z)))"
_KEY = r"(?<!mon)(?<!don)(?<!tur)(?<!hoc)key"  # monkey, donkey, turkey and hockey are no keys
_PASS = r"pass(?:word|wd|phrase|code|wort|key)?s?(?![a-z])"
_KEY_NAMES = (
    r"(?:api|access|auth|account|private|secret|signing|encryption|master|service|shared[_ -]?access|subscription|app"
    r"|client|session|deploy|webhook|bot|admin|consumer|storage|preshared|license|host|server|root|cookie|jwt|aws|ssh|pgp"
    r"|gpg|application|integration|developer|dev|rest|personal|functions?|primary|instance|ingest|wallet)"
)

# Words between the announcing word and the value, and what links the two: "the password for the router is …".
_GAP = r"(?:[ \t][^\s:=,.;!?：]{1,24}){0,6}?"
_SAID = (
    r"(?:[ \t]{0,3}(?:[:=：＝]|->|→|[ \t][—–-][ \t])[ \t]{0,3}\n?[ \t]{0,3}"
    r"|[ \t](?:is|was|are|to|be|ist|war|sind|lautet|lauten|heißt|auf|est|sont|était|es|son|era|è|é|e|são|jest|är|er|on)"
    r"(?:[ \t](?:now|still|currently|set to|changed to|just|jetzt|nun|aktuell|noch|maintenant|ahora|adesso|agora|nu))?"
    r"[ \t]?[:：]?[ \t]{0,3}\n?[ \t]{0,3})"
)
_NO_TOPIC = (
    r"(?![ _-]?(?:manager|polic|reset|hash|rotation|rule|field|length|protect|generator|strength|prompt|recovery|auth"
    r"|safe\b|based|less|store|storage|vault|expir|history|complexity|requirement|encrypt))"
)
_PASS_WORDS = (
    r"(?:pass(?:word|wd|phrase|code|wort)s?|kennw(?:ort|örter)|passwörter|mots? de passe|contraseñas?|contrasenas?"
    r"|senhas?|wachtwoord(?:en)?|lösenord|hasło|adgangskode|salasana|parola|heslo|jelszó|şifre|пароль|mdp|pwd|pw|psk"
    r"|wi-?fi[ -]key|wlan[ -]?schlüssel|netzwerkschlüssel|network key|clave|clé wi-?fi|codeword)"
)
_PASS_LITERALS = (
    "pass", "kennw", "contrase", "senha", "wachtwoord", "lösenord", "hasło", "adgangskode", "salasana", "parola",
    "heslo", "jelszó", "şifre", "пароль", "mdp", "pw", "psk", "schlüssel", "key", "clé", "clave", "code",
)  # fmt: skip
_CJK_PASS = r"(?:密码|密碼|口令|パスワード|暗証番号|暗号|비밀번호|암호|パスコード|合言葉)"
# Between "PIN" or "code" and its digits, and what must not follow them: more of a number, a date, a version.
_CODE_IS = (
    r"(?:[ \t][a-zà-ÿ'’-]{1,20}){0,5}?"
    r"(?:[ \t]{0,2}[:=：][ \t]{0,2}|[ \t](?:is|was|ist|lautet|est|es|è|é)[ \t]:?[ \t]?)"
)
_CODE_END = r"(?![\w%]|[.,:/-][0-9])"

RULES: tuple[Rule, ...] = (
    # RFC 7468, RFC 4880 armor, OpenSSH: the whole block. Cut off before its END line, the base64 lines that are there.
    Rule(
        "private_key",
        ("private",),
        re.compile(
            r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:(?:[^-]|-(?!----)){0,40000}-----END [^-\n]{1,60}-----"
            r"|(?:(?:\\[nrt]|[\s\"'+,>|]){0,12}(?:[A-Za-z-]{3,20}: [^\n\\]{1,80}|[A-Za-z0-9+/=]{16,100})){0,800}"
            r"(?:(?:\\[nrt]|[\s\"'+,>|]){0,12}[A-Za-z0-9+/]{1,80}={0,2}(?![A-Za-z0-9 ,.]))?)"
        ),
    ),
    # PuTTY manual, appendix C: the PPK file format
    Rule(
        "private_key",
        ("private",),
        re.compile(r"private-lines: [0-9]{1,3}\s{1,2}(?P<v1>(?:[a-z0-9+/=]{4,64}\s?){1,200})"),
        lowered=True,
    ),
    *_prefix_rules(),
    # AWS IAM reference: unique identifiers
    Rule(
        "aws_key_id",
        ("akia", "asia", "abia", "acca"),
        re.compile(r"(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,20}(?![A-Za-z0-9])"),
        _varied,
        run=16,
    ),
    # AWS: a secret access key is 40 characters of base64. Amazon Bedrock keys start with ABSK.
    Rule(
        "aws_secret_key",
        (),
        re.compile(r"(?<![A-Za-z0-9+/=_.-])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=_-])"),
        _opaque,
        run=40,
    ),
    Rule(
        "aws_bedrock_key",
        ("absk", "bedrock-api-key-"),
        re.compile(r"(?<![A-Za-z0-9])(?:ABSK|bedrock-api-key-)[A-Za-z0-9+/]{30,}={0,2}"),
        _random,
        run=40,
    ),
    # RFC 7519 and 7516: JSON in base64url starts with eyJ; an unsecured or cut one may lack the last part
    Rule(
        "jwt",
        ("eyj",),
        re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*){0,3}"),
        run=16,
    ),
    # core.telegram.org/bots
    Rule(
        "telegram_token",
        (":",),
        re.compile(r"(?<![A-Za-z0-9])[0-9]{7,11}:[A-Za-z0-9_-]{32,40}(?![A-Za-z0-9_-])"),
        _random,
        run=16,
        digits=4,
    ),
    # discord.com/developers: base64 of the user id, time and HMAC
    Rule(
        "discord_token",
        (".",),
        re.compile(
            r"(?<![A-Za-z0-9_.-])[MNO][A-Za-z0-9_-]{22,29}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,45}(?![A-Za-z0-9_-])"
        ),
        _random,
        run=40,
    ),
    Rule(
        "webhook",
        ("/webhooks/",),
        re.compile(r"/api/(?:v[0-9]{1,2}/)?webhooks/[0-9]{15,21}/(?P<v1>[A-Za-z0-9_-]{30,})"),
        run=16,
    ),
    # docs.slack.dev: incoming webhooks
    Rule(
        "webhook",
        ("hooks.slack.com/",),
        re.compile(r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<v1>[A-Za-z0-9/_-]{20,})"),
        run=16,
    ),
    Rule(
        "webhook",
        ("/incomingwebhook/",),
        re.compile(r"/incomingwebhook/(?P<v1>[a-z0-9/_-]{20,})"),
        lowered=True,
        run=16,
    ),
    # twilio.com/docs: API key SIDs and auth pairs
    Rule(
        "twilio_key", ("sk", "ac"), re.compile(r"(?<![A-Za-z0-9])(?:SK|AC)[0-9a-f]{32}(?![A-Za-z0-9])"), _random, run=16
    ),
    # docs.sendgrid.com: SG. + 22 + . + 43
    Rule("sendgrid_key", ("sg.",), re.compile(r"(?<![A-Za-z0-9])SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"), run=16),
    # learn.microsoft.com: Entra client secrets
    Rule(
        "azure_client_secret",
        ("q~",),
        re.compile(r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,40}"),
        run=40,
    ),
    # Tokens in parts joined by dots: Airtable, Dynatrace, Terraform, Mapbox, Cloudflare origin keys
    Rule(
        "dotted_token",
        ("pat", "dt0", "atlasv1.", "sk.eyj", "v1.0-"),
        re.compile(
            r"(?<![A-Za-z0-9_.-])(?:pat[A-Za-z0-9]{14}\.[a-f0-9]{40,}|dt0[a-z][0-9]{2}\.[A-Z0-9]{20,}\.[A-Z0-9]{50,}"
            r"|[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{50,}|sk\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{15,}"
            r"|v1\.0-[a-f0-9]{20,}-[a-f0-9]{100,})"
        ),
        run=40,
    ),
    # docs.databricks.com: dapi + 32 hex; crates.io: cio + 32; Meta Graph API: EAA…; Alibaba Cloud RAM: LTAI…
    Rule(
        "vendor_token",
        ("dapi", "dkea", "cio", "eaa", "ltai"),
        re.compile(
            r"(?<![A-Za-z0-9])(?:(?:dapi|dkea)[a-f0-9]{32}(?:-[0-9])?|cio[A-Za-z0-9]{32}|EAA[A-Za-z0-9]{60,}"
            r"|LTAI[A-Za-z0-9]{16,24})(?![A-Za-z0-9])"
        ),
        _random,
        run=16,
    ),
    # Bitcoin wallet import format and BIP32 extended private keys: Base58Check
    Rule(
        "wallet_key",
        ("xprv", "yprv", "zprv", "tprv"),
        re.compile(r"(?<![A-Za-z0-9])[xyzt]prv[1-9A-HJ-NP-Za-km-z]{90,120}"),
        run=40,
    ),
    Rule(
        "wallet_key",
        (),
        re.compile(
            r"(?<![A-Za-z0-9+/=_.-])(?:5[1-9A-HJ-NP-Za-km-z]{50}|[KL][1-9A-HJ-NP-Za-km-z]{51})(?![A-Za-z0-9+/=_-])"
        ),
        _random_not_hex,
        run=40,
    ),
    # crypt(5): hashes of passwords can be attacked offline
    Rule(
        "password_hash",
        ("$2", "$6$", "$5$", "$1$", "$y$", "$argon2"),
        re.compile(
            r"\$(?:2[abxy]\$[0-9]{2}\$[A-Za-z0-9./]{53}|[156y]\$[A-Za-z0-9./$=,]{30,200}"
            r"|argon2(?:id|i|d)\$[A-Za-z0-9+/=$,]{40,300})"
        ),
        run=40,
    ),
    # RFC 6750 and RFC 7617; "Authorization: token …" of GitHub and Gitea
    Rule(
        "bearer_token",
        ("bearer",),
        re.compile(r"bearer[ \t]{1,3}[\"']?(?P<b1>[a-z0-9._~+/=|:-]{12,4000})"),
        _bearer,
        lowered=True,
    ),
    Rule("basic_auth", ("basic ",), re.compile(r"basic {1,3}(?P<v1>[a-z0-9+/_-]{8,2000}={0,2})"), _basic, lowered=True),
    Rule(
        "auth_header",
        ("authorization",),
        re.compile(r"authorization[\"']?[:=] {0,3}[\"']?(?:[a-z-]{3,20} {1,3})?(?P<b1>[^\s\"',;]{12,4000})"),
        _bearer,
        lowered=True,
    ),
    # RFC 3986 userinfo: connection strings and URLs with a password, or with a token as the user
    Rule("url_password", ("://",), re.compile(r"://[^\s/:@\"'<>]{0,100}:(?P<v1>[^\s/\"'<>]{1,200})@"), _url_password),
    Rule(
        "url_password",
        ("://",),
        re.compile(r"://[^\s/:@\"'<>]{0,100}:(?P<v1>[^\s\"'<>@]{1,200})@(?=[a-z0-9.-]{1,100}(?::[0-9]{2,5}|/))"),
        _url_password,
    ),
    Rule("url_token", ("://",), re.compile(r"://(?P<v1>[A-Za-z0-9_.~-]{16,200})@"), _random, run=16),
    # Signatures of pre-signed URLs: Azure SAS, S3, Google Cloud Storage, CloudFront
    Rule(
        "url_signature",
        ("sig",),
        re.compile(r"[?&;](?:x-(?:amz|goog)-)?sig(?:nature)?=(?P<v1>[a-z0-9%+/=_~-]{20,600})"),
        _random,
        lowered=True,
    ),
    # Names that end in a word for a password, with any value behind = or :
    Rule(
        "password",
        ("pass", "pw", "kennw"),
        re.compile(rf"(?:{_PASS}|pwd(?![a-z])|kennwort){_TAIL}{_LINK}{_VALUE}"),
        _password_like,
        lowered=True,
    ),
    Rule(
        "password",
        ("pass", "pw", "kennw"),
        re.compile(rf"(?:passw(?:or)?[dt]|passphrase|(?<=_)pass|pwd|kennwort)(?![a-z]){_TAIL}{_LINK}{_WHOLE}"),
        _assigned_password,
        lowered=True,
    ),
    Rule(
        "secret",
        ("secret",),
        re.compile(rf"secret(?:[_ -]?(?:key|token|access[_ -]?key))?(?![a-z]){_TAIL}{_LINK}{_VALUE}"),
        _assigned_token,
        lowered=True,
    ),
    Rule(
        "token",
        ("token", "cookie", "session"),
        re.compile(rf"(?:token|cookie|session_?id)(?![a-z]){_TAIL}{_LINK}(?:[a-z0-9_.]{{1,30}}=)?{_VALUE}"),
        _assigned_token,
        lowered=True,
    ),
    Rule("api_key", ("key",), re.compile(rf"{_KEY}(?![a-z]){_TAIL}{_LINK}{_VALUE}"), _assigned_key, lowered=True),
    Rule(
        "api_key",
        ("key", "cred"),
        re.compile(rf"(?:{_KEY_NAMES}[_. -]?key|credentials?)(?![a-z]){_TAIL}{_LINK}{_VALUE}"),
        _assigned_token,
        lowered=True,
    ),
    # Command lines: --password X, -u user:pass (curl), sshpass -p, mysql -pX
    Rule(
        "password",
        ("--",),
        re.compile(
            r"--[a-z-]{0,30}(?:pass(?:word|wd|phrase|code)?|pwd|secret|token|api-?key|access-key|auth-key|secret-key)"
            rf"[ \t]{{1,3}}(?!-){_VALUE}"
        ),
        _assigned_password,
        lowered=True,
    ),
    Rule(
        "password",
        ("-u", "pass", "mysql"),
        re.compile(
            r"(?<!\S)(?:-u[ \t]?[\"']?[^\s:\"']{1,80}:(?P<b1>[^\s\"'/]{4,200})"
            r"|sshpass[ \t]{1,3}-p[ \t]?[\"']?(?P<b2>[^\s\"']{4,200})"
            r"|mysql[a-z]{0,6}[ \t](?:[^\n|;]{0,80}[ \t])?-p(?P<b3>[^\s\"']{4,200}))"
        ),
        _assigned_password,
        lowered=True,
    ),
    # .netrc (curl, ftp) and .pgpass (postgresql.org/docs: libpq)
    Rule(
        "password",
        ("pass",),
        re.compile(
            r"(?:login|machine)[ \t]{1,4}\S{1,100}\s{1,8}(?:login[ \t]{1,4}\S{1,100}\s{1,8})?"
            r"password[ \t]{1,4}(?P<v1>\S{3,200})"
        ),
        _url_password,
        lowered=True,
    ),
    Rule(
        "password",
        (":5", ":*:"),
        re.compile(r"(?<!\S)[^\s:]{1,100}:(?:[0-9]{2,5}|\*):[^\s:]{1,64}:[^\s:]{1,64}:(?P<v1>\S{3,200})"),
        _url_password,
    ),
    # What people say. The value must look made up, for "my password is stored in the vault" is no secret.
    Rule(
        "password",
        _PASS_LITERALS,
        re.compile(rf"{_PASS_WORDS}(?![a-z]){_NO_TOPIC}{_GAP}{_SAID}{_VALUE}"),
        _password_like,
        lowered=True,
    ),
    Rule(
        "password",
        _PASS_LITERALS,
        re.compile(rf"{_PASS_WORDS}(?![a-z]){_NO_TOPIC}{_GAP}{_SAID}(?:{_QUOTED})"),
        _assigned_password,
        lowered=True,
    ),
    Rule(
        "password",
        ("密码", "密碼", "口令", "パス", "暗証", "暗号", "비밀번호", "암호", "合言葉"),
        re.compile(rf"{_CJK_PASS}[^\n:：=!-~]{{0,12}}[:：=]?[ \t「『“\"']{{0,3}}(?P<b1>[!-~]{{4,64}})"),
        _password_like,
        lowered=True,
    ),
    Rule(
        "token",
        ("token", "secret", "key", "cred", "schlüssel", "clé", "llave"),
        re.compile(rf"(?:token|secret|{_KEY}|credentials?|schlüssel|clé|llave)(?![a-z]){_GAP}{_SAID}{_VALUE}"),
        _spoken,
        lowered=True,
    ),
    # PINs and codes: digits only, so what kind of code it is must be said
    Rule(
        "pin",
        ("pin", "cv", "geheimzahl"),
        re.compile(
            r"(?<![a-z])(?:pin(?:[- ]?(?:code|number|nummer))?|cvv2?|cvc2?|geheimzahl|sim-?pin)(?![a-z])"
            rf"{_CODE_IS}(?P<v1>[0-9]{{3,12}}){_CODE_END}"
        ),
        lowered=True,
        digits=4,
    ),
    Rule(
        "pin",
        ("pin",),
        re.compile(
            r"(?<![A-Za-z])PIN(?:[- ]?(?:[Cc]ode|[Nn]ummer|[Nn]umber))? (?P<v1>[0-9]{4,8})(?![\w%]|[.,:/-][0-9])"
        ),
        digits=4,
    ),
    Rule(
        "pin",
        ("暗証番号", "pin码", "验证码", "驗證碼", "認証コード", "인증번호", "密码", "パスワード", "비밀번호", "暗証"),
        re.compile(r"(?:暗証番号|pin码|验证码|驗證碼|認証コード|인증번호)[^0-9\n]{0,12}(?P<v1>[0-9]{4,10})(?![0-9])"),
        lowered=True,
        digits=4,
    ),
    Rule(
        "code",
        ("code", "otp", "einmalpass", "combination"),
        re.compile(
            r"(?:(?:door|alarm|gate|access|unlock|safe|entry|security|lock|garage|keypad|verification|one[- ]time|sms"
            r"|2fa|mfa|otp|confirmation|login|auth|authenticator|tür|einmal|bestätigungs|sicherheits"
            r"|zugangs|zugriffs)[ -]?codes?|code (?:de sécurité|secret|d'accès|secreto|de acceso|de verificación)"
            r"|otp|einmalpasswort|safe combination)"
            rf"(?![a-z])(?:{_CODE_IS}|[ \t])(?P<v1>[#*]?[0-9][0-9-]{{2,10}}[0-9][#*]?){_CODE_END}"
        ),
        _no_date,
        lowered=True,
        digits=4,
    ),
    # One-time backup codes (RFC 4226 based services print lists of them)
    Rule(
        "backup_code",
        ("code", "key"),
        re.compile(
            r"(?:(?:backup|recovery|scratch|emergency|2fa|wiederherstellungs?|notfall)[ -]?(?:codes?|keys?)"
            r"|einmalcodes?|codes? de (?:récupération|secours|recuperación|respaldo))(?![a-z])"
            r"(?:[ \t][a-zà-ÿ0-9'’-]{1,20}){0,5}?"
            r"(?:[ \t]{0,2}[:=：]\s{0,4}|[ \t](?:is|are|ist|sind|lautet|lauten|est|sont|es|son)[ \t]:?\s{0,3})"
            r"(?P<v1>(?:(?:[0-9]{1,2}[.)][ \t]|[-*•][ \t])?[a-z0-9]{4,10}(?:[- ]?[a-z0-9]{4,10}){0,7}"
            r"[\s,;|/]{0,4}){1,24})"
        ),
        fit=_codes,
        lowered=True,
    ),
    # BIP39: 12 to 24 words. Announced in a sentence, or alone on a line or behind a colon.
    Rule(
        "seed_phrase",
        ("seed", "mnemonic", "recovery", "wallet", "phrase", "wörter", "token", "secret"),
        re.compile(
            r"(?:seed|mnemonic|recovery|wallet|phrase|wörter|token|secret)(?:[ \t][^\s:=,.;]{1,20}){0,8}?"
            r"(?:[ \t]{0,2}[:=][ \t\"'`]{0,3}\n?(?:1[.)] ?)?|[ \t](?:is|are|ist|lautet|lauten|est|es)[ \t:\"'`]{1,4})"
            r"(?P<v1>[a-z]{3,8}(?:[ \t\n,]{1,3}(?:[0-9]{1,2}[.)] ?)?[a-z]{3,8}){11,30})(?![a-z])"
        ),
        fit=_announced_seed,
        lowered=True,
        plain=True,
    ),
    Rule(
        "seed_phrase",
        (":", '"', "\n", "`"),
        re.compile(r"[:\"'\n`][ \t]?(?P<v1>[a-z]{3,8}(?: [a-z]{3,8}){11,23})(?=[.!]?[ \t]{0,3}(?:[\n\"'`]|\Z))"),
        _seed,
    ),
    Rule(
        "seed_phrase",
        (),
        re.compile(r"\s{0,4}(?P<v1>[a-z]{3,8}(?: [a-z]{3,8}){11,23})(?=[.!]?[ \t]{0,3}(?:\n|\Z))"),
        _seed,
        start_only=True,
        plain=True,
    ),
    # ISO/IEC 7812 with the check digit of Luhn; not inside a longer number, identifier, decimal or phone number
    Rule(
        "card_number",
        (),
        re.compile(
            r"[2-6](?<![\w.#+/-].)(?:[0-9]{3}[ -][0-9]{4}[ -][0-9]{4}[ -][0-9]{4}(?:[ -][0-9]{3})?"
            r"|[0-9]{3}[ -][0-9]{6}[ -][0-9]{4,5}|[0-9]{12,18})(?![\w-]|[.,][0-9])"
        ),
        _card,
        digits=12,
    ),
    # ISO 13616
    Rule(
        "iban",
        (),
        re.compile(r"(?<![a-z0-9_/-])[a-z]{2}[0-9][0-9](?: ?[a-z0-9]{4}){2,7}(?: ?[a-z0-9]{1,4})?(?![a-z0-9_-])"),
        fit=_iban,
        lowered=True,
        digits=12,
    ),
    # US Social Security numbers (ssa.gov: randomization)
    Rule(
        "ssn",
        ("-",),
        re.compile(r"[0-9](?<![\w.#+/-].)[0-9][0-9]-[0-9][0-9]-[0-9]{4}(?![\w-]|[.,][0-9])"),
        _ssn,
        digits=9,
    ),
    Rule(
        "ssn",
        ("ssn", "social security"),
        re.compile(
            r"(?:ssn|social security)(?:[ \t][^\s:=]{1,12}){0,3}?[ \t]?[:=#]?[ \t]?"
            r"(?P<v1>[0-9]{3}[ -]?[0-9]{2}[ -]?[0-9]{4})(?![0-9])"
        ),
        lowered=True,
        digits=9,
    ),
    # National numbers with a check digit: China, Brazil, France
    Rule(
        "national_id",
        (),
        re.compile(
            r"[0-9](?<![\w.#+/-].)(?:[0-9]{5}(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])[0-9]{3}[0-9Xx]"
            r"|[0-9]{2}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}"
            r"|(?<=[12]) ?[0-9]{2} ?(?:0[1-9]|1[0-2]) ?[0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{2})(?![\w-]|[.,][0-9])"
        ),
        _national,
        digits=9,
    ),
    # The text inside a Wi-Fi QR code (ZXing): WIFI:T:WPA;S:name;P:password;;
    Rule("password", ("wifi:",), re.compile(r"wifi:[^\n]{0,80}?[:;]p:(?P<v1>[^;\n]{4,64});"), lowered=True),
    # Prefix + separator + random body: the vendors this table does not name
    Rule(
        "api_key",
        ("-", "_"),
        re.compile(r"(?<![A-Za-z0-9_/.-])[a-z][a-z0-9]{0,15}[_-][A-Za-z0-9_-]{20,}"),
        _prefixed,
        run=16,
    ),
)

# ---------------------------------------------------------------------------------------------------------------------
# The search
# ---------------------------------------------------------------------------------------------------------------------

_MARK = re.compile(r"\[REDACTED:[a-z0-9_]{1,40}\]")
_SHORTEST = 6  # no name with a value is shorter
_ROUNDS = 8


def _classes(**chars: str) -> bytes:
    """A table for bytes.translate that replaces each character by the name of its class, and all others by a space."""
    table = bytearray(b" " * 256)
    for name, members in chars.items():
        for c in members:
            table[ord(c)] = ord(name)
    return bytes(table)


_LOWER, _UPPER, _DIGITS = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
_NARROW = _classes(x=_LOWER + _UPPER + _DIGITS + "_-")
_WIDE = _classes(x=_LOWER + _UPPER + _DIGITS + "_-+/=.:~$")
_SIGNS = _classes(a=_LOWER, A=_UPPER, s="!#$%&*+?@^_~|", q=':=>"`«»')
_NO_DIGITS = bytes(c for c in range(256) if chr(c) not in _DIGITS)
_RUN_16, _RUN_40 = b"x" * 16, b"x" * 40


def _has_signs(text: str, data: bytes) -> bool:
    """Whether a text without digits may hold a secret at all, seed phrases apart.

    All checks want a digit, a capital or a symbol inside a word, a value behind : or =, or one in quotes.
    """
    kinds = data.translate(_SIGNS)
    return (
        b"q" in kinds
        or b"aA" in kinds
        or b"sa" in kinds
        or b"sA" in kinds
        or b"--" in data
        or b" '" in data
        or (not text.isascii() and any(c in text for c in "：＝“„「『"))
    )


def _bits(literals: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Literal → the bits of the rules that want it."""
    found: dict[str, int] = {}
    for literal, number in literals:
        found[literal] = found.get(literal, 0) | 1 << number
    return found


_WANTED = [(literal, number) for number, rule in enumerate(RULES) for literal in rule.literals or ("",)]
_IN_WORDS = _bits((literal, number) for literal, number in _WANTED if not any(c.isspace() for c in literal))
_ACROSS_WORDS = _bits((literal, number) for literal, number in _WANTED if any(c.isspace() for c in literal))
_ALWAYS = _IN_WORDS.pop("", 0)
_LONG = sum(1 << number for number, rule in enumerate(RULES) if rule.run)
"""Rules that want a long run: their literals stand inside it or touch it, so in a long word."""

_LONG_WORD, _CACHED_WORD = 16, 40


def _due_in(word: str) -> int:
    """Bits of the rules that have a literal in this lower-cased word."""
    due = 0
    for literal, bits in _IN_WORDS.items():
        if literal in word:
            due |= bits
    return due if len(word) >= _LONG_WORD else due & ~_LONG


_known_words: dict[str, int] = {}
"""People use the same words again and again: word → _due_in(word). Kept are ordinary words alone, never a value."""
_PLAIN_WORD = re.compile(r"\W{0,3}(?:[^\W\d_]+(?:['’-][^\W\d_]+)*|(?:19|20)\d\d|\d\d?)\W{0,3}")
"""A word of letters, a year, a small number, with the punctuation around it."""
_MOST_WORDS = 1 << 16


def _due(low: str) -> int:
    """Bits of the rules of which a literal occurs in this lower-cased text."""
    due = _ALWAYS
    for literal, bits in _ACROSS_WORDS.items():
        if literal in low:
            due |= bits
    words = low.split()
    known = set(map(_known_words.get, words))
    for word_bits in known - {None}:
        due |= word_bits or 0
    if None in known:
        for word in words:
            if word not in _known_words:
                due |= _learned(word)
    return due


def _learned(word: str) -> int:
    bits = _due_in(word)
    if len(word) <= _CACHED_WORD and _PLAIN_WORD.fullmatch(word):
        if len(_known_words) >= _MOST_WORDS:
            _known_words.clear()
        _known_words[word] = bits
    return bits


@lru_cache(maxsize=256)
def _allowed(signs: bool, run: int, digits: int) -> int:
    """Bits of the rules that a text with these traits can match at all; digits is capped by the caller."""
    return sum(
        1 << number
        for number, rule in enumerate(RULES)
        if (signs or rule.plain) and rule.run <= run and rule.digits <= digits
    )


_MOST_DIGITS = max(rule.digits for rule in RULES)
_GROUPS_OF = tuple(tuple((g, name[0] == "b") for name, g in r.pattern.groupindex.items()) for r in RULES)


def _lower(text: str) -> str:
    """Lower-cased, and as long as the text: U+0130 is the only character whose lower case is two."""
    low = text.lower()
    return low if len(low) == len(text) else text.replace("\u0130", "i").lower()


def _spans(text: str) -> list[tuple[int, int, int]]:
    """(start, end, number of the rule) of all candidates that pass, in no order and maybe overlapping."""
    low = _lower(text)
    data = text.encode("latin-1", "replace")
    digits = len(data.translate(None, _NO_DIGITS))
    signs = digits > 0 or _has_signs(text, data)
    run = 0
    if signs:
        run = 40 if _RUN_40 in data.translate(_WIDE) else 16 if _RUN_16 in data.translate(_NARROW) else 0
    due = _due(low) & _allowed(signs, run, min(digits, _MOST_DIGITS))
    found: list[tuple[int, int, int]] = []
    while due:
        i = (due & -due).bit_length() - 1
        due &= due - 1
        rule = RULES[i]
        subject = low if rule.lowered else text
        pattern = rule.pattern
        at, again = 0, len(text)
        while True:
            m = pattern.match(subject, at) if rule.start_only else pattern.search(subject, at)
            if m is None:
                break
            start, end = m.span()
            for group, bare in _GROUPS_OF[i]:
                if m.start(group) >= 0:
                    start, end = m.span(group)
                    if bare:
                        end = start + len(text[start:end].rstrip(".,:;)]}>\\*"))
                    break
            value = text[start:end]
            if rule.fit is not None:
                end = start + rule.fit(value)
            if end > start and (rule.check is None or rule.check(value)):
                found.append((start, end, i))
                at = m.end()
            else:
                # What was no value may hold the next name. Trying it twice is bounded, so that time stays linear.
                at = m.end()
                if _GROUPS_OF[i] and again > 0:
                    again -= at - start
                    at = max(start, m.start() + 1)
            if rule.start_only:
                break
    return found


def _once(text: str) -> list[Secret]:
    """Overlapping candidates become one secret: all of them is covered, the first rule in the table gives the kind."""
    spans = _spans(text)
    if not spans:
        return []
    merged: list[tuple[int, int, int]] = []
    for start, end, i in sorted(spans):
        if merged and start < merged[-1][1]:
            first, last, j = merged[-1]
            merged[-1] = first, max(last, end), min(i, j)
        else:
            merged.append((start, end, i))
    return [Secret(start, end, RULES[i].kind) for start, end, i in merged]


def find(text: str) -> tuple[Secret, ...]:
    """The secrets of a text, sorted and without overlap.

    What is masked already is left alone. When something was found, the pieces around it are searched again, for a piece
    standing alone may match where the whole did not: that makes masking idempotent.
    """
    pieces = [(0, text)]
    if "[REDACTED:" in text:
        pieces, at = [], 0
        for m in _MARK.finditer(text):
            pieces.append((at, text[at : m.start()]))
            at = m.end()
        pieces.append((at, text[at:]))
    found: list[Secret] = []
    for _ in range(_ROUNDS):
        rest: list[tuple[int, str]] = []
        for offset, piece in pieces:
            secrets = _once(piece) if len(piece) >= _SHORTEST else []
            at = 0
            for s in secrets:
                found.append(Secret(s.start + offset, s.end + offset, s.kind))
                rest.append((offset + at, piece[at : s.start]))
                at = s.end
            if secrets:
                rest.append((offset + at, piece[at:]))
        if not rest:
            break
        pieces = rest
    return tuple(sorted(found, key=lambda s: s.start))


def mask(text: str) -> str:
    """The text with each secret replaced by `[REDACTED:<kind>]`."""
    parts: list[str] = []
    at = 0
    for s in find(text):
        parts += (text[at : s.start], f"[REDACTED:{s.kind}]")
        at = s.end
    return "".join((*parts, text[at:])) if parts else text
