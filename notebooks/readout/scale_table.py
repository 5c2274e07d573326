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
#     order: 1
#     studies: [pga]
#     claims: [R1, R2, R3, R12]
# ---

# %% [markdown]
# # Does width decide how a model organises its layers?
#
# The paper's title says that scale determines it: wide models keep their distances in line with
# the readout all the way, narrow ones take a detour. Here each model is one row, with its size,
# how well it predicts, and what its profile of $z$ amounts to.

# %% tags=["parameters"]
models: list = ["smollm2-135m", "mini-pythia-d64"]  # catalogue names, hub ids or local folders
corpus: str = "wikipedia-sample"  # or the path of a text file
sizes: str = "default"  # "default" or "smoke"
seed: int = 0  # of every random choice
dtype: str = "float32"  # of the forward pass; or "bfloat16", "float16"
folder: str = "."  # where the table goes

# %%
from layergeom import report, studies

sessions = [studies.open_session(model, corpus, sizes, seed, dtype) for model in models]
table = studies.scale_table(sessions)

# %% [markdown]
# $z$ is at CCR-1. *Highest* and *lowest* are over the intermediate layers, with the layer behind;
# a *detour* has a layer beyond two thirds of the depth wholly below -2, and the *collapse zone* is
# its longest run of such layers. Losses are in nats a token, and tokenizers differ: compare them
# within a family only. A star marks a model that predicts no better than pairs of neighbouring
# tokens do; it decides no claim.

# %%
report.publish_table(
    table,
    report.rounded_scale(table),
    name="scale_table",
    model=report.ACROSS,
    caption=(
        "Models by size: loss (held-out, beside that of a bigram model, for those trained here; "
        "on the measured text for others), extremes of z with 95 % intervals, collapse zone, "
        "regime, and z at the last layer before and after the final norm."
    ),
    provenance=report.provenance(
        {"models": list(models), "corpus": corpus, "sizes": sizes, "seed": seed}
    ),
    folder=folder,
)

# %% [markdown]
# ## What the paper reports, and what is measured here

# %%
wide, narrow = table[table["width"] >= 2048], table[table["width"] <= 1024]
recovered = ((narrow["final_ci_low"] > 0) & (narrow["out_ci_low"] > 0)).sum()
detours = (narrow["regime"] == "detour").sum()
regimes = "; ".join(
    f"d = {width}: " + ", ".join(rows["model"] + " " + rows["regime"])
    for width, rows in table.groupby("width")
)
above = f"{(wide['lowest_ci_low'] > 2).sum()} of {len(wide)} models stay above 2"
report.show_table(
    report.comparison(
        {
            "R1": above if len(wide) else "no model of such a width here",
            "R2": f"{detours} of {len(narrow)} models take the detour",
            "R3": f"z is above 0 by interval before and after the final norm in {recovered} of "
            f"{len(narrow)}",
            "R12": regimes,
        }
    )
)
