"""Killing a sync at any moment loses nothing and repeats nothing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from crash_check import compare

SAMPLE = Path(__file__).parent / "fixtures" / "openclaw" / "sqlite"


def sync(database: Path) -> subprocess.Popen[bytes]:
    settings = {
        "CLAWMARK_DB_PATH": str(database),
        "CLAWMARK_TRANSCRIPTS_DIR": str(SAMPLE),
        "CLAWMARK_EMBEDDER": "none",
    }
    return subprocess.Popen(
        [sys.executable, "-m", "clawmark", "sync"],
        env={**os.environ, **settings},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def test_killed_anywhere_ends_like_an_unkilled_run(tmp_path: Path) -> None:
    reference = tmp_path / "reference" / "memory.db"
    start = time.monotonic()
    assert sync(reference).wait() == 0
    whole = time.monotonic() - start
    rng = random.Random(7)
    for round_ in range(3):
        database = tmp_path / f"killed-{round_}" / "memory.db"
        for _ in range(4):
            process = sync(database)
            time.sleep(rng.uniform(0.3, 1.0) * whole)
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert compare(database, reference, complete=False) == []
        assert sync(database).wait() == 0
        assert compare(database, reference, complete=True) == []
