"""Progress for people at a terminal, plain lines elsewhere, nothing inside a notebook."""

import sys
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

Item = TypeVar("Item")


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
    if not sys.stderr.isatty():
        say(f"{label} ...")
        yield from items
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
