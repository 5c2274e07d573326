"""The command line as a person uses it: arguments in, status and two streams out."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str


def layergeom(*arguments: str, cwd: Path, timeout: float = 300) -> Outcome:
    command = [sys.executable, "-m", "layergeom", *arguments]
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False
    )
    return Outcome(done.returncode, done.stdout, done.stderr)
