"""Compare a memory with one that was never killed: `crash_check.py DATABASE REFERENCE [--complete]`.

Sound: SQLite's own checks pass, each passage is in the lexicon and nothing else is, every passage waits for its vector or
has it, no space holds another's vectors, and whatever is there is also in the reference. Complete: passages, refs,
lexicon, searched vectors and cursors are equal.

With --belief the same of what extraction wrote.

`crash_check.py acks DATABASE FILE`: every set and forget that `crash_run.py acks` noted in FILE holds, in the database and
in the sidecar from which a damaged one is recovered.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from clawmark.store import sidecar

Dump = dict[str, dict[Any, Any]]

PASSAGES = """
SELECT r.ref, p.part, s.source, s.name, p.scope, p.origin, p.author, p.at, hex(p.content_key), p.recipe,
       c.session, c.window, c.started_at, r.location, hex(r.text_hash),
       (SELECT min(q.ref) FROM passage_refs q WHERE q.passage_id = p.previous_id)
FROM passages p JOIN passage_refs r ON r.passage_id = p.id JOIN streams s ON s.id = r.stream_id
JOIN conversations c ON c.id = p.conversation_id
"""
REF = "(SELECT min(ref) FROM passage_refs WHERE passage_id = {0}), (SELECT part FROM passages WHERE id = {0})"
CURSORS = "SELECT name, json_extract(value, '$[0]'), json_extract(value, '$[3]') FROM cursors WHERE name LIKE 'index:%'"


def connected(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(10_000)
    return connection


def dump(path: Path) -> Dump:
    connection = connected(path)
    connection.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab('main', 'lexicon', 'instance')").fetchall()
    lexicon: dict[Any, list[Any]] = {}
    for ref, part, *word in connection.execute(f"SELECT {REF.format('words.doc')}, term, col, offset FROM temp.words"):
        lexicon.setdefault((ref, part), []).append(tuple(word))
    vectors = connection.execute(
        f"SELECT {REF.format('message_vectors.passage_id')}, embedding FROM message_vectors"
        " JOIN spaces ON spaces.id = space_id WHERE is_active"
    ).fetchall()
    result = {
        "passages": {row[:2] + row[3:4]: row for row in connection.execute(PASSAGES).fetchall()},
        "lexicon": {key: sorted(found) for key, found in lexicon.items()},
        "vectors": {row[:2]: np.frombuffer(row[2], "<f4") for row in vectors},
        "cursors": {row[0]: row for row in connection.execute(CURSORS).fetchall()},
    }
    connection.close()
    return result


def unsound(path: Path) -> list[str]:
    connection = connected(path)
    faults = [str(row) for row in connection.execute("PRAGMA integrity_check").fetchall() if row != ("ok",)]
    faults += [f"foreign key {row}" for row in connection.execute("PRAGMA foreign_key_check").fetchall()]
    for name, query in {
        "passages outside the lexicon": "SELECT count(*) FROM passages WHERE id NOT IN (SELECT id FROM lexicon_docsize)",
        "lexicon rows without passage": "SELECT count(*) FROM lexicon_docsize WHERE id NOT IN (SELECT id FROM passages)",
        "passages without ref": "SELECT count(*) FROM passages WHERE id NOT IN (SELECT passage_id FROM passage_refs)",
        "pending with a vector": (
            "SELECT count(*) FROM pending_vectors JOIN message_vectors USING (passage_id)"
            " JOIN spaces ON spaces.id = space_id"
            " WHERE CASE WHEN EXISTS (SELECT 1 FROM spaces WHERE is_target) THEN is_target ELSE is_active END"
        ),
        "spaces searched": "SELECT max(0, count(*) - 1) FROM spaces WHERE is_active",
        "spaces filled": "SELECT max(0, count(*) - 1) FROM spaces WHERE is_target",
        "vectors of another length": (
            "SELECT count(*) FROM message_vectors JOIN spaces ON spaces.id = space_id WHERE length(embedding) != 4 * dimension"
        ),
    }.items():
        ((count,),) = connection.execute(query).fetchall()
        if count:
            faults.append(f"{name}: {count}")
    connection.close()
    return faults


def same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return a.shape == b.shape and float(a @ b) > 0.999
    return bool(a == b)


def compare(path: Path, reference: Path, *, complete: bool) -> list[str]:
    """What is wrong, each as one line; nothing when all is well. A database that is not there yet is sound."""
    if not path.exists():
        return ["no database"] if complete else []
    faults = unsound(path)
    mine, wanted = dump(path), dump(reference)
    for table, rows in mine.items():
        if table == "cursors" and not complete:
            continue
        foreign = [key for key, row in rows.items() if key not in wanted[table] or not same(row, wanted[table][key])]
        missing = [key for key in wanted[table] if key not in rows]
        if foreign:
            faults.append(f"{table}: {len(foreign)} unlike the reference, e.g. {foreign[0]}")
        if complete and missing:
            faults.append(f"{table}: {len(missing)} missing, e.g. {missing[0]}")
    return faults


BELIEF = {
    "facts": "SELECT scope || ' ' || key, * FROM facts",
    "evidence": "SELECT scope || ' ' || key || ' ' || hex(value_hash) || ' ' || hex(content_key) || said_at, * FROM evidence",
    "proposals": "SELECT id, * FROM proposals",
    "events": "SELECT id, * FROM memory_events",
    "extracted": "SELECT hex(content_key) || said_at, * FROM extracted",
    "cursor": "SELECT name, * FROM cursors WHERE name = 'extract'",
}


def compare_belief(path: Path, reference: Path, *, complete: bool) -> list[str]:
    """The same of what extraction wrote: facts, evidence, proposals, events, what was looked through, and the cursor."""
    if not path.exists():
        return ["no database"] if complete else []
    faults = unsound(path)
    mine, wanted = connected(path), connected(reference)
    try:
        for table, query in BELIEF.items():
            rows, whole = ({row[0]: row for row in c.execute(query).fetchall()} for c in (mine, wanted))
            if table in ("evidence", "extracted", "events") or complete:  # a fact may be replaced later
                foreign = [key for key, row in rows.items() if whole.get(key) != row]
                if foreign and not (table == "cursor" and not complete):
                    faults.append(f"{table}: {len(foreign)} unlike the reference, e.g. {foreign[0]}")
            if complete and len(rows) != len(whole):
                faults.append(f"{table}: {len(rows)} instead of {len(whole)}")
    finally:
        mine.close()
        wanted.close()
    return faults


def broken_promises(path: Path, noted: Path) -> list[str]:
    """Acknowledgements that do not hold. The last one may have been made and not be noted yet."""
    promised: dict[str, str | None] = {}
    for line in noted.read_text(encoding="utf-8").splitlines() if noted.exists() else []:
        what, key, value = line.split()
        promised[key] = value if what == "set" else None
    if not promised:
        return []
    last = key
    if not path.exists():
        return ["acknowledged, but there is no database"]
    connection = connected(path)
    stored = dict(connection.execute("SELECT key, value FROM facts WHERE is_deleted = 0").fetchall())
    faults = [str(row) for row in connection.execute("PRAGMA integrity_check").fetchall() if row != ("ok",)]
    connection.close()
    kept = sidecar.read(path)
    saved = {} if kept is None else {fact["key"]: fact["value"] for fact in kept.facts}
    for name, found in {"database": stored, "sidecar": saved}.items():
        for key, value in promised.items():
            if found.get(key) != value and key != last:
                faults.append(f"{name}: {key} is {found.get(key)!r}, acknowledged was {value!r}")
    return faults


def main() -> None:
    if sys.argv[1] == "acks":
        faults = broken_promises(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        path, reference, *options = sys.argv[1:]
        compared = compare_belief if "--belief" in options else compare
        faults = compared(Path(path), Path(reference), complete="--complete" in options)
    print("\n".join(faults) or "sound")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
