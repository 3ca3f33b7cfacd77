"""Subject: keys of one thing are told from keys that share a word."""

from __future__ import annotations

import pytest

from clawmark.facts.subject import same_subject


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("pref.editor", "user.editor", True),
        ("user.home_address", "user.address", True),
        ("user.allergies", "user.allergy", True),
        ("pref.preferred_editor", "pref.editor_preferred", True),
        ("project.app.port", "project.app.ports", True),
        ("user.work_address", "user.address", False),
        ("user.dog_name", "user.name", False),
        ("pref.editor_theme", "pref.editor", False),
        ("pref.editor_theme", "pref.theme", False),
        ("project.alpha.port", "project.beta.port", False),
        ("project.editor", "pref.editor", False),
        ("user.birthplace", "user.birthday", False),
    ],
)
def test_keys_of_one_subject_are_told_from_keys_that_share_a_word(one: str, other: str, same: bool) -> None:
    """A8."""
    assert same_subject(one, other) is same_subject(other, one) is same
