"""Progress: a bar at a terminal, a line now and then elsewhere, nothing inside a notebook."""

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

Item = TypeVar("Item")

#: Seconds between two lines.
_PAUSE = 30.0


def inside_notebook() -> bool:
    """Whether this process is a notebook kernel, whose output ends up on a page."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


def say(message: str) -> None:
    """One line on standard error."""
    if not inside_notebook():
        print(message, file=sys.stderr, flush=True)


def track(items: Iterable[Item], label: str, total: int | None = None) -> Iterator[Item]:
    """Yield the items, showing how far along they are and how long the rest will take."""
    if total is None:
        total = len(items) if isinstance(items, Sized) else None
    if inside_notebook():
        yield from items
        return
    if not sys.stderr.isatty() or os.environ.get("LAYERGEOM_LINES") == "1":
        yield from _lines(items, label, total)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        yield from bar.track(items, total=total, description=label)


def _lines(items: Iterable[Item], label: str, total: int | None) -> Iterator[Item]:
    say(f"{label} ...")
    start = said = time.monotonic()
    for done, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if total is not None and done < total and now - said >= _PAUSE:
            left = round((now - start) / done * (total - done))
            say(f"{label}: {done} of {total}, about {left // 60}:{left % 60:02d} left")
            said = now
