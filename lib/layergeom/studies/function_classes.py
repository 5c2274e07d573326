"""The classes of tokenwise map side by side, and which fits each block best."""

import pandas as pd

from layergeom.studies.fits import BASELINES
from layergeom.studies.updates import UpdatesStudy

_QUANTITIES = (
    "rel_err_state",
    "rel_err_update",
    "cos_full_tokenwise_state",
    "angle_tokenwise_residual_state",
)


def function_classes(study: UpdatesStudy) -> pd.DataFrame:
    """Errors, cosines and angles by block and class.

    A class is *best* at a block where its median relative error is the lowest; baselines stand
    beside the classes and do not compete, and neither does an undertrained ``mlp``.

    Returns:
        Columns ``block``, ``class``, ``baseline``, ``undertrained``, ``best`` and, for each
        quantity, its name, ``NAME_low`` and ``NAME_high``.
    """
    summary = study.summary()
    chosen = summary[summary["quantity"].isin(_QUANTITIES)]
    wide = chosen.pivot(index=["block", "class"], columns="quantity")
    table = pd.DataFrame(index=wide.index)
    for quantity in _QUANTITIES:
        table[quantity] = wide["value", quantity]
        table[f"{quantity}_low"] = wide["ci_low", quantity]
        table[f"{quantity}_high"] = wide["ci_high", quantity]
    table = table.reset_index()
    undertrained = (table["class"] == "mlp") & table["block"].isin(study.fits.undertrained())
    table.insert(2, "baseline", table["class"].isin(BASELINES))
    table.insert(3, "undertrained", undertrained)
    competing = table[~table["baseline"] & ~table["undertrained"]]
    winners = competing.groupby("block")["rel_err_state"].idxmin()
    table.insert(4, "best", table.index.isin(winners))
    return table
