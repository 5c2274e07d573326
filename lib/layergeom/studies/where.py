"""Where in a text the residual is large and what it does there: token by token."""

import numpy as np
import pandas as pd

from layergeom.studies.code_version import code_version
from layergeom.studies.fits import CONTROLLED
from layergeom.studies.states import Session
from layergeom.studies.store import Results, compute_or_load
from layergeom.studies.updates import UpdatesStudy

#: What a sentence ends with.
_ENDS = (".", "!", "?")


class WhereStudy:
    """The words of a replaced sequence with each block's error and effect at each of them."""

    def __init__(self, session: Session) -> None:
        """Bind the study to a model and text."""
        self.session = session
        self.updates = UpdatesStudy(session)

    def words(self) -> pd.DataFrame:
        """The tokens of the replaced sequences as text.

        Stored by themselves, so that a page needs no tokenizer. Columns: ``sequence``,
        ``position``, ``word``.
        """
        fits = self.updates.fits
        inputs = {
            "states": dict(fits.states.inputs),
            "sequences": self.session.settings.sizes.replaced_sequences,
            "code": code_version(__name__),
        }
        return compute_or_load("words", inputs, self._decode).table("words")

    def passage(self, tokens: int = 40, sequence: int = 0) -> pd.DataFrame:
        """A passage of running text, from the beginning of a sentence where there is one.

        Args:
            tokens: how many tokens; fewer where the sequence is shorter.
            sequence: index of the replaced sequence.

        Returns:
            Columns ``place`` (from 0), ``position``, ``word``, ``block``, ``rel_err_state`` and
            ``kl``, nats.
        """
        table = self.table()
        table = table[table["sequence"] == sequence]
        words = table[table["block"] == 0]["word"].tolist()
        first = sentence_start(words, len(words) - min(tokens, len(words)))
        position = np.sort(table["position"].unique())[first : first + tokens]
        chosen = table[table["position"].isin(position)].drop(columns="sequence")
        chosen.insert(0, "place", np.searchsorted(position, chosen["position"]))
        return chosen.reset_index(drop=True)

    def table(self) -> pd.DataFrame:
        """One row per replaced token and block.

        Columns: ``sequence``, ``position``, ``word``, ``block``, ``rel_err_state``, ``kl``.
        """
        words = self.words()
        tables = [
            update.effects(CONTROLLED).assign(block=update.block)
            for update in self.updates.fits.blocks()
        ]
        merged = pd.concat(tables, ignore_index=True).merge(words, on=["sequence", "position"])
        columns = ["sequence", "position", "word", "block", "rel_err_state", "kl"]
        return merged[columns].sort_values([*columns[:2], "block"], ignore_index=True)

    def _decode(self) -> Results:
        fits = self.updates.fits
        tokens = fits.states.tokens[fits.replaced_rows]
        decode = self.session.model.tokenizer.decode
        words = {token: decode([token]) for token in np.unique(tokens).tolist()}
        rows = [
            {"sequence": sequence, "position": position, "word": words[token]}
            for sequence, row in enumerate(tokens.tolist())
            for position, token in enumerate(row)
        ]
        return Results(tables={"words": pd.DataFrame(rows)})


def sentence_start(words: list[str], latest: int) -> int:
    """Index of the first word behind a sentence's end, not behind ``latest``; else 0."""
    for index, word in enumerate(words[:latest]):
        if word.strip().endswith(_ENDS):
            return index + 1
    return 0
