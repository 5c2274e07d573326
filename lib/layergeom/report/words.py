"""Tokens as labels of a figure."""

from functools import cache

from matplotlib import font_manager

#: In place of what has no glyph of its own.
_SHOWN = {"\n": "⏎", "\t": "⇥", " ": "␣"}
_NO_GLYPH = "□"


@cache
def _has_glyph(character: str) -> bool:
    font = font_manager.get_font(font_manager.findfont("DejaVu Sans"))
    return font.get_char_index(ord(character)) != 0


def word_label(word: str, longest: int = 14) -> str:
    r"""A token as it can stand beside an axis.

    Spaces around it are left out, white space alone is made visible, characters without a glyph
    become a box, and a dollar sign is no formula.

    Args:
        word: the token's text.
        longest: characters after which it is cut.
    """
    text = word.strip(" ") or word
    shown = [_SHOWN.get(character, character) for character in text]
    plain = "".join(c if _has_glyph(c) else _NO_GLYPH for c in shown)
    if len(plain) > longest:
        plain = plain[: longest - 1] + "…"
    return plain.replace("$", r"\$")
