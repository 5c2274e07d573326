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
#     order: 3
#     studies: [updates]
#     claims: [U1, U2, U7]
# ---

# %% [markdown]
# # How much of a layer's update is a map of the token alone?
#
# A block turns a token's state $h$ into $h'$. Suppose it could see nothing but that token: the
# best such *tokenwise* map $T(h)$, fitted on the token's nearest neighbours in a text of other
# articles, explains part of $h'$, and the *residual* $r = h' - T(h)$ is what is left. This page
# asks how the three point: is the full update nearly parallel to its tokenwise part, and where
# does the residual go?

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

from layergeom import report, studies

report.use_style()
studies.check_class(map_class)
session = studies.open_session(model, corpus, sizes, seed, dtype)
study = studies.UpdatesStudy(session)
summary = study.summary()
chosen = summary[summary["class"] == map_class]
name, depth = session.files.name, session.states.depth
report.show_notices(session.states.facts)
if map_class == "mlp":
    report.show_undertrained(study.fits.undertrained())

# %% [markdown]
# "Update" can be read in two ways. In the *state* reading the full update is $h'$ itself, which
# most of $h$ carries into, so that cosines near 1 come easily; in the *update* reading it is the
# change $h' - h$, and the tokenwise part is $T(h) - h$. Both are shown: which one is meant decides
# what the numbers say.

# %%
PAIRS = {
    "full_tokenwise": ("full, tokenwise", report.BLUE),
    "full_residual": ("full, residual", report.VERMILION),
    "tokenwise_residual": ("tokenwise, residual", report.GREEN),
}
figure, axes = plt.subplots(2, 2, sharex=True, sharey="row", figsize=(6.6, 5.4))
for column, reading in enumerate(("state", "update")):
    for row, measure in enumerate(("cos", "angle")):
        axis = axes[row, column]
        for pair, (label, colour) in PAIRS.items():
            rows = chosen[chosen["quantity"] == f"{measure}_{pair}_{reading}"]
            report.curve(axis, rows["block"], rows, colour, label if column else "")
        axis.axhline(0.0 if measure == "cos" else 90.0, color=report.GREY, linewidth=0.8)
        if column:
            report.spread_labels(axis, gap=0.07)
    axes[0, column].set_title(f"{reading} reading")
    report.block_axis(axes[1, column], depth)
axes[0, 0].set_ylabel("cosine (median)")
axes[1, 0].set_ylabel("angle (median, degrees)")


def at(quantity):
    return chosen[chosen["quantity"] == quantity].set_index("block")


parallel, across = at("cos_full_tokenwise_state"), at("angle_tokenwise_residual_state")
report.publish_figure(
    figure,
    chosen,
    name="alignment_by_layer",
    model=name,
    caption=(
        f"Median cosine and angle between full update, tokenwise part and residual by block of "
        f"{name}, map class {map_class}, with 95 % bootstrap intervals over sequences."
    ),
    alt=(
        f"Four panels against block for {name}: cosines above, angles below, state reading left, "
        f"update reading right. The state cosine of full and tokenwise lies between "
        f"{parallel['value'].min():.2f} and {parallel['value'].max():.2f}; the angle between "
        f"tokenwise part and residual between {across['value'].min():.0f} and "
        f"{across['value'].max():.0f} degrees."
    ),
    provenance=report.provenance(study.fits.fit_inputs(0), map=map_class, **session.states.facts),
    folder=folder,
)

# %% [markdown]
# ## What the paper reports, and what is measured here

# %%
inner = parallel.iloc[1:-1]
clear = (parallel["ci_low"] > at("cos_full_residual_state")["ci_high"]).sum()
error = at("rel_err_state")["value"]
third = range(depth // 3, depth - depth // 3)
middle, rest = error[error.index.isin(third)], error[~error.index.isin(third)]
report.show_table(
    report.comparison(
        {
            "U1": f"state cosine {inner['value'].min():.3f} to {inner['value'].max():.3f} between "
            f"the first and last block; lower bound above 0.95 in {(inner['ci_low'] > 0.95).sum()} "
            f"of {len(inner)}",
            "U2": f"less aligned by interval in {clear} of {depth} blocks; angle of T(h) and r "
            f"above 60° in {(across['value'] > 60).sum()} of {depth}",
            "U7": f"relative error (state), median over blocks: {middle.median():.2f} in the "
            f"middle third, {rest.median():.2f} elsewhere",
        }
    )
)
