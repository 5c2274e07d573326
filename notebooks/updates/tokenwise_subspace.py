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
#     order: 4
#     studies: [updates]
#     claims: [U3]
# ---

# %% [markdown]
# # Does the residual keep to the directions of the tokenwise part?
#
# The tokenwise parts of many tokens may share a few strong directions. Those are found on one half
# of the query sequences, as the leading singular vectors of $T(h)$, and the other half is measured
# in them: how much of the squared length of the full update, of its tokenwise part and of the
# residual lies in the same small subspace? A residual that is merely a scaled-down copy of the
# tokenwise part would lie in it just as much.

# %% tags=["parameters"]
model: str = "smollm2-135m"  # catalogue name, hub id or local folder
corpus: str = "wikipedia-sample"  # or the path of a text file
sizes: str = "default"  # "default" or "smoke"
seed: int = 0  # of every random choice
dtype: str = "float32"  # of the forward pass; or "bfloat16", "float16"
map_class: str = "orthogonal"  # diagonal, orthogonal, low_rank, identity_low_rank or mlp
folder: str = "."  # where figure and data go

# %%
import matplotlib.pyplot as plt
import pandas as pd

from layergeom import report, studies

report.use_style()
studies.check_class(map_class)
session = studies.open_session(model, corpus, sizes, seed, dtype)
study = studies.UpdatesStudy(session)
summary = study.summary()
chosen = summary[summary["class"] == map_class]
name, depth = session.files.name, session.states.depth
dimension = min(study.settings.sizes.subspace_dim, session.states.width - 1)
report.show_notices(session.states.facts)
middle = depth // 2
curves = {
    reading: study.energy_by_dimension(middle, map_class, reading)
    for reading in ("state", "update")
}

# %% [markdown]
# Above, the middle block with subspaces of growing dimension; below, every block at one dimension.
# In the *state* reading most of the length is that of $h$ itself, which a handful of directions
# hold in many models; in the *update* reading $h$ is taken away and the comparison is harder.

# %%
PARTS = {"full": report.GREY, "tokenwise": report.BLUE, "residual": report.VERMILION}
figure, axes = plt.subplots(2, 2, sharey=True, figsize=(6.6, 5.6))
for column, (reading, table) in enumerate(curves.items()):
    for part, colour in PARTS.items():
        growing = table[table["part"] == part]
        by_block = chosen[chosen["quantity"] == f"energy_{part}_{reading}"]
        report.curve(axes[0, column], growing["dimension"], growing, colour, "", marker="")
        report.curve(axes[1, column], by_block["block"], by_block, colour, part if column else "")
    axes[0, column].set_xscale("log", base=2)
    axes[0, column].xaxis.set_major_formatter("{x:g}")
    axes[0, column].set_xlabel("dimension of the subspace")
    axes[0, column].set_title(f"{reading} reading, block {middle}")
    report.block_axis(axes[1, column], depth)
    axes[1, column].set_title(f"{reading} reading, dimension {dimension}")
    axes[column, 0].set_ylabel("share of squared length")
axes[0, 0].set_ylim(0, 1.05)
report.spread_labels(axes[1, 1], gap=0.08)
difference = chosen[chosen["quantity"] == "energy_tokenwise_minus_residual_state"]
report.publish_figure(
    figure,
    pd.concat(
        [
            *(table.assign(reading=reading) for reading, table in curves.items()),
            chosen[chosen["quantity"].str.startswith("energy")],
        ]
    ),
    name="tokenwise_subspace",
    model=name,
    caption=(
        f"Share of squared length in the dominant tokenwise subspace of {name}, fitted on one half "
        f"of the query sequences and measured on the other, map class {map_class}. Above: block "
        f"{middle} by dimension; below: dimension {dimension} by block. Bands: 95 % bootstrap "
        "intervals over sequences."
    ),
    alt=(
        f"Four panels for {name}: energy shares of full update, tokenwise part and residual "
        f"against the subspace's dimension and against block. At dimension {dimension}, state "
        f"reading, the tokenwise share exceeds the residual's by {difference['value'].min():.2f} "
        f"to {difference['value'].max():.2f}."
    ),
    provenance=report.provenance(study.fits.fit_inputs(0), map=map_class, **session.states.facts),
    folder=folder,
)

# %% [markdown]
# ## What the paper reports, and what is measured here

# %%
lower = int((difference["ci_low"] > 0).sum())
least = difference.loc[difference["value"].idxmin()]
report.show_table(
    report.comparison(
        {
            "U3": f"the residual's share lies below the tokenwise part's by interval in {lower} of "
            f"{depth} blocks; smallest difference "
            f"{report.with_interval(least['value'], least['ci_low'], least['ci_high'])} "
            f"(block {least['block']})"
        }
    )
)
