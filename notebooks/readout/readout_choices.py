# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   layergeom:
#     scope: per model
#     order: 11
#     studies: [pga, choices]
#     claims: []
# ---

# %% [markdown]
# # Does the picture hang on a choice that somebody had to make?
#
# Subspace PGA has knobs: how many directions make the readout, whether the final norm's gain
# belongs to it, which random subspaces it has to beat, on how many tokens, from which seed. A
# conclusion worth keeping survives when one of them is turned. This page turns them one at a time.

# %% tags=["parameters"]
model: str = "smollm2-135m"  # catalogue name, hub id or local folder
corpus: str = "wikipedia-sample"  # or the path of a text file
sizes: str = "default"  # "default" or "smoke"
seed: int = 0  # of every random choice
dtype: str = "float32"  # of the forward pass; or "bfloat16", "float16"
readout_dim: int = 0  # readout dimension k; 0 for the default rule
folder: str = "."  # where figure and data go

# %%
from layergeom import report, studies

report.use_style()
session = studies.open_session(model, corpus, sizes, seed, dtype, readout_dim)
study = studies.ChoicesStudy(session)
table = study.table()
name = session.files.name
report.show_notices(session.states.facts)

# %% [markdown]
# Each cell is $z$ at CCR-1 with its 95 % interval, on three disjoint samples of tokens (fewer than
# on the other pages, so the intervals are wider). The first row is the default. † marks another
# sign than the default's; ‡ an interval that lies elsewhere than the default's: wholly below -2,
# wholly above +2, or neither. A dash is a gap, whose reason is given below the table. A smaller
# $k$ meets the same random subspaces, cut short; a larger one needs its own. Subspaces *with the
# readout's variance* hold, on average, as much of the states' variance as the readout does: the
# hardest test, since it takes away all that comes from pointing where states vary.


# %%
def cell(row):
    if row["reason"]:
        return "—"
    marks = "†" * row["sign_changes"] + "‡" * row["verdict_changes"]
    # Adding zero turns a minus zero into a plain one.
    rounded = row[["z", "ci_low", "ci_high"]].astype(float).round(1) + 0.0
    return report.with_interval(*rounded, 1) + marks


shown = table.assign(cell=table.apply(cell, axis=1)).pivot_table(
    index=["choice", "alternative"], columns="point", values="cell", aggfunc="first", sort=False
)
report.publish_table(
    table,
    shown.reset_index().rename(columns={"choice": "choice (default)"}),
    name="readout_choices",
    model=name,
    caption=(
        f"z of {name} at CCR-1 under other choices, with 95 % intervals over {study.samples} "
        f"samples; default k = {study.pga.readout_dim}. † other sign, ‡ other verdict than the "
        "default."
    ),
    provenance=report.provenance(study.inputs, **session.states.facts),
    folder=folder,
)

# %%
gaps = table[table["reason"] != ""].groupby(["choice", "alternative", "reason"], sort=False)
if len(gaps):
    report.show_table(
        gaps["point"].agg(", ".join).reset_index()[["alternative", "point", "reason"]]
    )

# %% [markdown]
# ## What hangs on a choice, and what does not

# %%
default = table[table["default"]].set_index("point")["z"]
others = table[~table["default"]].assign(change=lambda t: t["z"] - t["point"].map(default))
measured = others[others["reason"] == ""]
report.show_table(
    measured.groupby(["choice", "alternative"], sort=False)
    .agg(
        lowest_change=("change", "min"),
        highest_change=("change", "max"),
        other_sign=("sign_changes", "sum"),
        other_verdict=("verdict_changes", "sum"),
        points=("point", "count"),
    )
    .reset_index()
    .round(2)
    .rename(columns=lambda column: column.replace("_", " "))
)
