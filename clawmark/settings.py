"""Settings: the only place that reads the environment.

Nothing is required. Later wins: defaults, `~/.config/clawmark/clawmark.env`, the environment, arguments. Never a `.env`
of the working directory: clawmark runs inside strangers' repositories. An empty value means the default; a wrong one is
named together with what is allowed.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pydantic import AliasChoices, Field, SecretStr, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from clawmark.errors import SettingsError

PREFIX = "CLAWMARK_"
OF_SCRIPTS = frozenset(PREFIX + name for name in ("ENV", "SHARED", "NODE", "HARNESS_CACHE", "E2E_KEEP"))
"""Variables of the project's own scripts and tests."""

NO_ENDPOINT = ("host", "off")
"""What CLAWMARK_EXTRACT_URL may be beside a URL."""


def config_file() -> Path:
    """`$XDG_CONFIG_HOME/clawmark/clawmark.env`, normally under `~/.config`."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "clawmark" / "clawmark.env"


def environment() -> dict[str, str]:
    """The environment as it is, for what is no setting of ours: variables of hosts and of the system."""
    return dict(os.environ)


def local_zone() -> tzinfo:
    """This machine's zone with its summer times; UTC where it cannot be told."""
    name = os.environ.get("TZ", "").lstrip(":")
    try:
        if name and not name.startswith("/"):
            return ZoneInfo(name)
        with open(name or "/etc/localtime", "rb") as file:
            return ZoneInfo.from_file(file)
    except (OSError, ValueError, KeyError):
        return UTC


def _data_home() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser()


class Settings(BaseSettings):
    """Every setting, with its default. Frozen; `load()` reads file and environment, `Settings(...)` adds arguments."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True)

    disabled: bool = Field(default=False, description="Switch everything off: empty blocks, no jobs.")
    db_path: Path = Field(
        default_factory=lambda: _data_home() / "clawmark" / "memory.db",
        description="The one database file. Default: $XDG_DATA_HOME/clawmark/memory.db, normally under ~/.local/share.",
    )
    source: str = Field(
        default="auto",
        description="Which message logs are read: `auto`, the name of an installed source, or a comma list, of which every "
        "one is read. `auto` reads the first of lcm, transcripts and claude-code that can be read and holds something.",
    )
    transcripts_dir: Path | None = Field(
        default=None,
        description="OpenClaw transcripts: a state directory, an agent's directory or a `sessions` directory. "
        "Default: the OpenClaw state directory.",
    )
    openclaw_state_dir: Path = Field(
        default=Path("~/.openclaw"),
        validation_alias=AliasChoices("CLAWMARK_OPENCLAW_STATE_DIR", "OPENCLAW_STATE_DIR", "openclaw_state_dir"),
        description="OpenClaw's state directory. `OPENCLAW_STATE_DIR`, which OpenClaw itself reads, is honoured too.",
    )
    lcm_db_path: Path | None = Field(
        default=None,
        validation_alias=AliasChoices("CLAWMARK_LCM_DB_PATH", "LCM_DATABASE_PATH", "lcm_db_path"),
        description="Lossless Claw's database. `LCM_DATABASE_PATH`, which Lossless Claw itself reads, is honoured too. "
        "Default: lcm.db in the OpenClaw state directory.",
    )
    claude_config_dir: Path = Field(
        default=Path("~/.claude"),
        validation_alias=AliasChoices("CLAWMARK_CLAUDE_CONFIG_DIR", "CLAUDE_CONFIG_DIR", "claude_config_dir"),
        description="Claude Code's directory. `CLAUDE_CONFIG_DIR`, which Claude Code itself reads, is honoured too.",
    )
    subagents: bool = Field(
        default=False, description="Read what Claude Code's sub-agents answered too; their prompts are never read."
    )
    keep_text: Literal["auto", "off"] = Field(
        default="auto",
        description="`auto`: of a host that deletes old logs by itself (Claude Code), the masked text is kept, so that it "
        "can still be recalled. `off`: no text is kept, and what was kept is erased.",
    )
    embedder: Literal["auto", "local", "endpoint", "fastembed", "none"] = Field(
        default="auto",
        description="`auto`: the endpoint if one is set, else the local model or fastembed, whichever is installed, else "
        "words alone. `local`, `endpoint`, `fastembed`: that one. `none`: words alone.",
    )
    embedding_url: str | None = Field(
        default=None,
        repr=False,
        description="An OpenAI-compatible embeddings endpoint, e.g. http://127.0.0.1:8092/v1; with or without `/v1`.",
    )
    embedding_model: str = Field(default="", description="The model name sent to that endpoint, or fastembed's.")
    embedding_dim: int | None = Field(
        default=None, ge=1, le=16384, description="Expected dimension. Default: what the model answers."
    )
    embedding_api_key: SecretStr | None = Field(
        default=None, description="Sent as a Bearer header. Never logged, never stored."
    )
    embedding_query_prefix: str | None = Field(
        default=None,
        description="Put in front of a query before an endpoint embeds it. Default: what the model is known to want, "
        "unless the server does it. `none`: nothing.",
    )
    embedding_document_prefix: str | None = Field(
        default=None, description="The same for a passage. Set both, or neither."
    )
    allow_remote: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Hosts outside this machine and its private network that text may be sent to; a comma list.",
    )
    recall: Literal["on", "off"] = Field(default="on", description="`off`: blocks hold facts alone.")
    recall_limit: int = Field(
        default=6,
        ge=0,
        le=50,
        description="Most excerpts in a block, where a host may take fewer, or in a search without --limit.",
    )
    confidence_threshold: float = Field(
        default=0.8,
        ge=0,
        le=1,
        description="How sure an extractor must be for a fact; below it a fact that was stored fades out of blocks.",
    )
    extract_url: str | None = Field(
        default=None,
        repr=False,
        description="Who extracts facts from what the person says: an OpenAI-compatible chat endpoint, e.g. "
        "http://127.0.0.1:8091/v1; `host`, the model that OpenClaw's gateway is configured with (CLAWMARK_ALLOW_REMOTE must "
        "name `host`); `off`, nobody. Default: nobody is asked; sentences with words like `remember`, `always` or `prefer` "
        "are proposed.",
    )
    extract_model: str = Field(default="", description="The model name sent to that endpoint.")
    extract_api_key: SecretStr | None = Field(
        default=None, description="Sent to it as a Bearer header. Never logged, never stored."
    )
    extract_daily_calls: int = Field(
        default=100, ge=0, le=100_000, description="How often a day the host's own model is asked at most."
    )
    promote: Literal["auto", "review"] = Field(
        default="auto",
        description="`auto`: what the person plainly said becomes a fact, anything in doubt a proposal. `review`: whatever "
        "is extracted becomes a proposal.",
    )
    markers: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Phrases, beside the built-in ones, by which a sentence you type says that it is meant for good, where no "
        "model extracts; a comma list.",
    )
    never_index_paths: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="A message that names one of these paths, or was said while the host worked below one, is left out "
        "whole; a comma list.",
    )
    job_every_n_messages: int = Field(
        default=30,
        ge=1,
        le=100_000,
        description="A resident process reads the logs once so many messages were said since it did.",
    )
    idle_hours: float = Field(
        default=0.05,
        gt=0,
        le=10_000,
        allow_inf_nan=False,
        description="It also does after so many hours without any; 0.05 are three minutes.",
    )
    timezone: str = Field(
        default="", description="Zone of the dates in a block, e.g. Europe/Lisbon. Default: this machine's."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, dotenv_settings

    @field_validator("allow_remote", "markers", "never_index_paths", mode="before")
    @classmethod
    def _comma_list(cls, value: Any) -> Any:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("markers")
    @classmethod
    def _plain_phrases(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for phrase in value:
            if "*" in phrase or not any(map(str.isalnum, phrase)):
                raise ValueError(f"{phrase!r} is no phrase: words as they are typed, without *")
        return value

    @field_validator("never_index_paths")
    @classmethod
    def _both_spellings(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """`~/vault` is written like that in some messages, and in full in others and in a host's own records."""
        full = [os.path.expanduser(path) for path in value if path.startswith("~")]
        return tuple(dict.fromkeys([*value, *full]))

    @field_validator("db_path", "transcripts_dir", "openclaw_state_dir", "lcm_db_path", "claude_config_dir")
    @classmethod
    def _expand(cls, value: Path | None) -> Path | None:
        try:
            return None if value is None else Path(str(value).strip()).expanduser()
        except RuntimeError as unknown:
            raise ValueError("a path; no user of that name is known") from unknown

    @field_validator("embedding_url", "extract_url")
    @classmethod
    def _http(cls, value: str | None, field: ValidationInfo) -> str | None:
        if value is None:
            return None
        if field.field_name == "extract_url" and value.strip().lower() in NO_ENDPOINT:
            return value.strip().lower()
        try:
            parts = urlsplit(value.strip())
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:  # a broken IPv6 address, a port that is none
            usable = False
        if not usable:
            others = ", or `host` or `off`" if field.field_name == "extract_url" else ""
            raise ValueError(f"a URL such as http://127.0.0.1:8092/v1{others}")
        return value.strip()

    @field_validator("embedding_query_prefix", "embedding_document_prefix")
    @classmethod
    def _prefix(cls, value: str | None) -> str | None:
        return "" if value == "none" else value

    @model_validator(mode="after")
    def _both_prefixes(self) -> Self:
        if (self.embedding_query_prefix is None) != (self.embedding_document_prefix is None):
            raise ValueError(
                "CLAWMARK_EMBEDDING_QUERY_PREFIX and CLAWMARK_EMBEDDING_DOCUMENT_PREFIX: set both (`none` for nothing), "
                "or neither"
            )
        return self

    @field_validator("embedding_api_key", "extract_api_key")
    @classmethod
    def _header(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not (value.get_secret_value().isascii() and value.get_secret_value().isprintable()):
            raise ValueError("a key of printable ASCII characters")
        return value

    @field_validator("timezone")
    @classmethod
    def _zone(cls, value: str) -> str:
        if value:
            try:
                ZoneInfo(value)
            except (OSError, ValueError, KeyError) as unknown:
                raise ValueError("a zone name such as Europe/Lisbon") from unknown
        return value


def load(**arguments: Any) -> Settings:
    """Settings from file and environment, with `arguments` on top.

    Raises SettingsError naming variable, value and what is allowed, or an argument that is no setting.
    """
    unknown = sorted(arguments.keys() - Settings.model_fields.keys())
    if unknown:
        raise SettingsError(f"{unknown[0]!r} is no setting; settings are {', '.join(Settings.model_fields)}.")
    _require_readable(config_file())
    try:
        # The underscored argument is pydantic-settings' way to name the file per call, so that tests and a changed
        # XDG_CONFIG_HOME are seen.
        return Settings(_env_file=config_file(), _env_file_encoding="utf-8", **arguments)  # type: ignore[call-arg]
    except ValidationError as wrong:
        raise SettingsError("; ".join(_named(error) for error in wrong.errors())) from None


def _require_readable(path: Path) -> None:
    """Raises SettingsError for a config file that is no list of NAME=value lines, which pydantic would pass over."""
    try:
        if not path.is_file():
            if path.exists():
                raise SettingsError(f"{path} is no file; correct it or move it away.")
            return
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} cannot be read ({error}); correct it or move it away.") from None
    for number, line in enumerate(lines, 1):
        said = line.strip()
        if said and not said.startswith("#") and "=" not in said:
            raise SettingsError(f"{path}, line {number} is no NAME=value; correct or remove it.")


def unknown_variables() -> list[str]:
    """Variables of the environment that look like settings and are none: a slip of the hand, most likely."""
    known = {variable(field) for field in Settings.model_fields} | OF_SCRIPTS
    return sorted(name for name in os.environ if name.startswith(PREFIX) and name not in known)


def variable(field: str) -> str:
    return PREFIX + field.upper()


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value in (None, "", ()) else str(value)


def _named(error: Any) -> str:
    if not error["loc"]:  # about several settings together, and its input is all of them, the key too
        return f"{str(error['msg']).removeprefix('Value error, ')}. Nothing is done until it is corrected."
    field = str(error["loc"][0])
    name = field.upper() if field.upper().startswith((PREFIX, "OPENCLAW_", "LCM_", "CLAUDE_")) else variable(field)
    if error["type"] == "extra_forbidden":
        given = _given(field, error["input"])
        return f"{name}{given} in {config_file()} is no setting; correct or remove it (docs/settings.md lists all)."
    given = _given(field, error["input"])
    info = Settings.model_fields.get(field.removeprefix(PREFIX).lower())
    default = info.get_default(call_default_factory=True, validated_data={}) if info is not None else None
    wanted = "true or false" if error["type"].startswith("bool") else str(error["msg"]).removeprefix("Value error, ")
    return f"{name}{given}: {wanted}. Nothing is done until it is corrected or removed (default: {_shown(default)})."


def _given(field: str, value: Any) -> str:
    """`=value` for a message, unless a secret may stand in it: by the setting's name, or a URL with more than a place."""
    if re.search(r"key|token|secret|pass", field, re.IGNORECASE) or re.search(r"[@?#=]", str(value)):
        return ""
    return f"={value!r}"
