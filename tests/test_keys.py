"""Keys: how one is read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clawmark import keys

KEYS = st.from_regex(r"(?:user|pref|lesson|project|ref)(?:\.[a-z0-9_]{0,8}[a-z0-9]){1,4}", fullmatch=True)


def test_a_key_is_read_without_its_prefix_unless_it_is_asked_for() -> None:
    key = "project.app.test_port"
    assert keys.prefix(key) == "project"
    assert keys.words(key) == ["app", "test", "port"]
    assert keys.words(key, whole=True) == ["project", "app", "test", "port"]
    assert keys.last_words(key) == ["test", "port"]
    assert keys.read(key) == "app test port"
    assert keys.read(key, whole=True) == "project app test port"


@given(KEYS)
def test_every_key_has_words_and_its_last_part_ends_them(key: str) -> None:
    assert keys.fault(key) is None
    words, last = keys.words(key), keys.last_words(key)
    assert last and words[-len(last) :] == last
    assert keys.words(key, whole=True) == [keys.prefix(key), *words]
    assert "".join(words) == key.partition(".")[2].replace(".", "").replace("_", "")
