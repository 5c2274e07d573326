"""Errors that a person reads: one or two lines, what is wrong and what to do next."""


class LayergeomError(Exception):
    """Something failed; the command line prints the message and exits with status 1."""

    exit_status = 1


class UsageError(LayergeomError):
    """The request itself is wrong; the command line exits with status 2."""

    exit_status = 2


class NotMeasurableError(UsageError):
    """A result that cannot exist for this model or text; a book marks its page as missing."""


def unknown(kind: str, name: str, known: list[str], hint: str = "") -> UsageError:
    """The error for a name that is not known, with those that are."""
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1)
    guess = f" Did you mean {close[0]!r}?" if close else ""
    return UsageError(f"unknown {kind} {name!r}.{guess} Known: {', '.join(known)}.{hint}")
