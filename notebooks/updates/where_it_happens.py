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
#     order: 8
#     studies: [updates, where]
#     claims: [U4]
# ---

# %% [markdown]
# # At which words, and in which blocks, does it happen?
#
# Medians and correlations hide the text. Here is a passage of it, one row a token: how much of each
# block's output the token alone cannot explain, and what it costs the prediction at that token when
# the block is cut down to what it can. Names, first halves of words and the ends of sentences
# behave differently, and one can see it.

# %% tags=["parameters"]
model: str = "smollm2-135m"  # catalogue name, hub id or local folder
corpus: str = "wikipedia-sample"  # or the path of a text file
sizes: str = "default"  # "default" or "smoke"
seed: int = 0  # of every random choice
dtype: str = "float32"  # of the forward pass; or "bfloat16", "float16"
tokens: int = 40  # tokens shown
folder: str = "."  # where figure and data go

# %%
import matplotlib.pyplot as plt
from matplotlib.colors import LogNorm

from layergeom import report, studies

report.use_style()
session = studies.open_session(model, corpus, sizes, seed, dtype)
study = studies.WhereStudy(session)
passage = study.passage(tokens)
summary = study.updates.summary()
name, depth = session.files.name, session.states.depth
report.show_notices(session.states.facts)
words = passage[passage["block"] == 0]["word"]
error, kl = (
    passage.pivot(index="place", columns="block", values=v) for v in ("rel_err_state", "kl")
)
strongest = passage.loc[passage["kl"].idxmax()]

# %% [markdown]
# On the left the relative error $|r|/|h'|$, on the right the divergence in nats, on a logarithmic
# scale; the map is a rotation fitted on each token's neighbours (class `orthogonal`), and all
# positions of the sequence are replaced at once. A row that is dark on the left alone has a long
# residual that does not matter; a row that is dark on the right alone is disturbed by what was
# left out elsewhere.

# %%
figure, axes = plt.subplots(1, 2, sharey=True, figsize=(6.0, 1.2 + 0.17 * len(words)))
floor = max(kl.to_numpy().max() * 1e-4, 1e-8)
for axis, values, label, norm, colours in (
    (axes[0], error, "relative error", None, "Blues"),
    (axes[1], kl.clip(lower=floor), "KL (nats)", LogNorm(), "Oranges"),
):
    shown = axis.imshow(values.to_numpy(), aspect="auto", cmap=colours, norm=norm)
    figure.colorbar(shown, ax=axis, location="top", label=label, aspect=15)
    report.block_axis(axis, depth)
axes[0].set_yticks(range(len(words)), [report.word_label(word) for word in words], fontsize=9)
axes[0].tick_params(axis="y", length=0)
axes[1].tick_params(axis="y", length=0)
report.publish_figure(
    figure,
    passage,
    name="where_it_happens",
    model=name,
    caption=(
        f"Relative error and KL by token and block of {name}, in the order of the text, which "
        "reads downwards; map class orthogonal, all positions replaced at once."
    ),
    alt=(
        f"Two heat maps of {len(words)} tokens against the {depth} blocks of {name}: relative "
        f"error left, KL right. The largest KL, {strongest['kl']:.2g} nats, is at block "
        f"{strongest['block']}."
    ),
    provenance=report.provenance(study.updates.fits.kl_inputs(0), **session.states.facts),
    folder=folder,
)

# %% [markdown]
# ## What the paper reports, and what is measured here

# %%
rho = summary[
    (summary["class"] == studies.CONTROLLED) & (summary["quantity"] == "spearman_relerr_kl")
]
report.show_table(
    report.comparison(
        {
            "U4": f"over all replaced tokens, the correlation of the two maps above lies between "
            f"{rho['value'].min():.2f} and {rho['value'].max():.2f} by block (median "
            f"{rho['value'].median():.2f})"
        }
    )
)
