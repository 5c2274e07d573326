"""A notebook's figure and data, written to files and shown on its page."""

import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from IPython.display import Markdown, display

from layergeom.files import make_folder, whole_file, write_text
from layergeom.naming import METADATA, slug


def publish_figure(
    figure: Any,
    data: pd.DataFrame,
    *,
    name: str,
    model: str,
    caption: str,
    alt: str,
    provenance: Mapping[str, Any],
    folder: str,
) -> None:
    """Write a figure as SVG, PNG and PDF, its data as CSV and its provenance, and show it.

    Args:
        figure: a matplotlib figure.
        data: every number that the figure shows.
        name: the notebook's name.
        model: the model's name.
        caption: printed under the figure.
        alt: what the figure shows, for people who cannot see it.
        provenance: from ``provenance``.
        folder: where the files go.
    """
    import matplotlib.pyplot as plt

    target = make_folder(Path(folder)) / f"{name}--{slug(model)}"
    # Laid out once: each format would do it again.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    # Dates would differ between two builds of the same figure, and so would an SVG's element ids
    # without a salt.
    for suffix, metadata in (
        ("svg", {"Date": None, "Title": f"{name} {model}"}),
        ("png", {"Software": None}),
        ("pdf", {"CreationDate": None, "ModDate": None}),
    ):
        with (
            plt.rc_context({"svg.hashsalt": "layergeom"}),
            whole_file(target.with_name(f"{target.name}.{suffix}")) as partial,
        ):
            figure.savefig(partial, format=suffix, dpi=200, metadata=metadata)
    plt.close(figure)
    _write_data(target, data, provenance)
    svg = target.with_name(f"{target.name}.svg").read_text(encoding="utf-8")
    page = {"kind": "figure", "caption": caption, "alt": alt}
    display(
        {"image/svg+xml": svg, "text/plain": alt},
        raw=True,
        metadata={METADATA: page, "image/svg+xml": {"alt": alt}},
    )


def publish_table(
    data: pd.DataFrame,
    shown: pd.DataFrame,
    *,
    name: str,
    model: str,
    caption: str,
    provenance: Mapping[str, Any],
    folder: str,
) -> None:
    """Write a table's data as CSV and its provenance, and show a rounded form of it.

    Args:
        data: every number behind the table, in full.
        shown: what the page shows; text cells stay as they are.
        name: the notebook's name.
        model: the model's name, or ``ACROSS``.
        caption: printed above the table.
        provenance: from ``provenance``.
        folder: where the files go.
    """
    target = make_folder(Path(folder)) / f"{name}--{slug(model)}"
    _write_data(target, data, provenance)
    display(
        {"text/markdown": _markdown(shown), "text/plain": caption},
        raw=True,
        metadata={METADATA: {"kind": "table", "caption": caption}},
    )


def _write_data(target: Path, data: pd.DataFrame, provenance: Mapping[str, Any]) -> None:
    buffer = io.StringIO()
    data.to_csv(buffer, index=False, float_format="%.10g")
    write_text(target.with_name(f"{target.name}.csv"), buffer.getvalue())
    record = json.dumps(provenance, indent=1, sort_keys=True, ensure_ascii=False)
    write_text(target.with_name(f"{target.name}.json"), record + "\n")


def show_table(table: pd.DataFrame) -> None:
    """Show a table as Markdown, so that the page renders it in its own style."""
    display(Markdown(_markdown(table)))


def _markdown(table: pd.DataFrame) -> str:
    header = "| " + " | ".join(map(str, table.columns)) + " |"
    rule = "| " + " | ".join("---" for _ in table.columns) + " |"
    rows = ["| " + " | ".join(_cell(value) for value in row) + " |" for row in table.to_numpy()]
    return "\n".join([header, rule, *rows])


def _cell(value: object) -> str:
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")


def show_undertrained(blocks: Sequence[int]) -> None:
    """Warn of the blocks whose ``mlp`` does no better than one linear map, where there are any."""
    if blocks:
        show_notice(
            f"The mlp of blocks {', '.join(map(str, blocks))} ends above one linear map on its "
            "held-out part: it decides nothing there."
        )


def show_notices(facts: Mapping[str, Any]) -> None:
    """Warn on the page where a model does worse on the text than a uniform guess.

    It then reads the text wrongly, most often because a BOS token is missing or there twice, and
    nothing on the page means what it says.

    Args:
        facts: ``loss`` in nats a token and ``vocabulary``, from the captured states.
    """
    chance = math.log(facts["vocabulary"])
    if facts["loss"] > chance:
        show_notice(
            f"This model's loss on the text is {facts['loss']:.2f} nats a token, above the "
            f"{chance:.2f} of a uniform guess: it does not read this text as it was trained to. "
            "Look at the BOS token first."
        )


def show_notice(text: str) -> None:
    """A warning that the reader cannot miss."""
    display(Markdown(f":::{{warning}}\n{text}\n:::"))


def with_interval(value: float, low: float, high: float, digits: int = 2) -> str:
    """A figure with its 95 % interval, such as ``0.85 [0.81, 0.88]``."""
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"
