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
#     order: 10
#     studies: [sub_blocks]
#     claims: []
# ---

# %% [markdown]
# # Is the residual what crosses tokens?
#
# A tokenwise map sees one token, so what it cannot explain is said to be what comes from the
# others. A block offers a direct test: its attention (or mixer) brings in other tokens, its MLP
# sees one token alone, and both add their outputs to the same stream. How much of the residual, and
# how much of the tokenwise update, lies along each of the two?

# %% tags=["parameters"]
model: str = "smollm2-135m"  # catalogue name, hub id or local folder
corpus: str = "wikipedia-sample"  # or the path of a text file
sizes: str = "default"  # "default" or "smoke"
seed: int = 0  # of every random choice
dtype: str = "float32"  # of the forward pass; or "bfloat16", "float16"
folder: str = "."  # where figure and data go

# %%
import matplotlib.pyplot as plt

from layergeom import report, studies

report.use_style()
session = studies.open_session(model, corpus, sizes, seed, dtype)
study = studies.SubBlocksStudy(session)
table = study.table()
name, depth = session.files.name, session.states.depth
report.show_notices(session.states.facts)

# %% [markdown]
# Each share is a squared cosine: the part of a vector's squared length that lies along what the
# attention or the MLP of the same block adds at the same token. The two outputs may point alike, so
# the shares need not add up to one. The dotted line is the share along a random direction.

# %%
PARTS = {"mixer": ("attention or mixer", report.VERMILION), "mlp": ("MLP", report.BLUE)}
TITLES = {"residual": "of the residual r", "update": "of the tokenwise update T(h) - h"}
figure, axes = plt.subplots(2, 1, sharex=True, sharey=True, figsize=(6.0, 5.4))
for axis, (of, title) in zip(axes, TITLES.items(), strict=True):
    for part, (label, colour) in PARTS.items():
        rows = table[(table["part"] == part) & (table["of"] == of)]
        if len(rows):
            report.curve(axis, rows["block"], rows, colour, label)
    axis.axhline(study.chance, color=report.GREY, linestyle=":", linewidth=1)
    axis.set_title(title)
    axis.set_ylabel("share along (median)")
    report.spread_labels(axis, gap=0.08)
axes[0].set_ylim(bottom=0)
report.block_axis(axes[1], depth)
medians = table.groupby(["of", "part"])["value"].median()
report.publish_figure(
    figure,
    table,
    name="sub_blocks",
    model=name,
    caption=(
        f"Share of the squared length of residual and tokenwise update along the outputs of each "
        f"block's own parts, by block of {name}, map class orthogonal: medians over tokens with "
        "95 % bootstrap intervals over sequences. Dotted: along a random direction."
    ),
    alt=(
        f"Two panels against block for {name}. Medians over blocks: "
        + "; ".join(f"{of} along {part} {value:.2f}" for (of, part), value in medians.items())
        + "."
    ),
    provenance=report.provenance(study.inputs(), **session.states.facts),
    folder=folder,
)

# %% [markdown]
# ## What the paper reports, and what is measured here
#
# The paper takes the residual for what crosses tokens and reports no figure for it; no claim is
# decided here.

# %%
wide = table.pivot(index="block", columns=["of", "part"], values="value")
shown = medians.unstack().rename(index=TITLES).reset_index(names="share")
if "mlp" in shown:
    more = {of: int((wide[of]["mixer"] > wide[of]["mlp"]).sum()) for of in TITLES}
    shown["blocks with more along attention"] = [
        f"{more[of]} of {depth}" for of in medians.unstack().index
    ]
report.show_table(shown)
