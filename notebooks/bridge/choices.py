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
#     scope: across
#     order: 2
#     studies: [pga, choices, neighbourhood, updates]
#     claims: []
# ---

# %% [markdown]
# # What changes if a choice is made the other way?
#
# A measure is a chain of decisions, and a paper rarely has room for all of them. How many readout
# directions count, whether the final norm belongs to the readout, how many neighbours make a
# neighbourhood: each was settled here before anything was measured, and each could have been
# settled otherwise. This page makes every one of them the other way, one at a time, and shows what
# moves.

# %% tags=["parameters"]
models: list = ["smollm2-135m"]  # catalogue names, hub ids or local folders
corpus: str = "wikipedia-sample"  # or the path of a text file
sizes: str = "default"  # "default" or "smoke"
seed: int = 0  # of every random choice
dtype: str = "float32"  # of the forward pass; or "bfloat16", "float16"
folder: str = "."  # where the table goes

# %%
from layergeom import report, studies

sessions = [studies.open_session(model, corpus, sizes, seed, dtype) for model in models]
table = studies.alternatives(sessions)

# %% [markdown]
# Each row compares two profiles over the layers (or blocks) of one model: the medians over layers,
# the largest difference at any one of them, and at how many the two 95 % intervals do not overlap.
# A choice with few layers apart hardly matters; where most are apart, a figure of one paper should
# not be held against that of another that chose differently. The default stands in brackets.

# %%
shown = report.rounded_alternatives(table)
report.publish_table(
    table,
    shown,
    name="choices",
    model=report.ACROSS,
    caption=(
        "Each choice made the other way: medians over layers under the default and under the "
        "alternative, the largest difference at one layer, and the layers whose 95 % intervals do "
        "not overlap."
    ),
    provenance=report.provenance(
        {"models": list(models), "corpus": corpus, "sizes": sizes, "seed": seed}
    ),
    folder=folder,
)

# %% [markdown]
# ## Settled and not varied here
#
# * **Position 0** is left out of every statistic: attention sinks and massive activations sit
#   there, and one such token can decide a correlation. The provenance of each page records the
#   share of variance that this removes.
# * **Rows of $W_U$** are those of real tokens; padding rows, which were never trained, would bend
#   the readout.
# * **The ridge** of the local fits is $10^{-3}$ of the neighbours' mean squared length: enough to
#   keep a fit defined, too little to be seen where there are neighbours enough.
# * **Ties**: distances closer than $2\cdot10^{-9}$ share a rank. They are mathematically equal, and
#   a rank statistic must not sort rounding errors.
# * **A rotation with fewer neighbours than dimensions** is not unique. Of all the minimisers, the
#   one nearest the identity is taken, so that the order of the neighbours cannot matter.
# * **Bank and query** come from different articles, and models trained here see held-out articles
#   only.
# * **The mean** is always removed before components are; the paper's variants differ in how many
#   components follow.
