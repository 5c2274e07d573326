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
#     order: 7
#     studies: [updates]
#     claims: [U7, U10]
# ---

# %% [markdown]
# # Do the middle blocks work differently from the ends?
#
# The paper sees three regimes along the depth: early and late blocks whose updates are nearly maps
# of the token alone, and intermediate blocks with larger residuals that point elsewhere. Four
# measures of the same tokens stand side by side here, so that a regime would have to show in all
# of them at the same blocks.

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
summary, overall = study.summary(), study.overall()
chosen = summary[summary["class"] == map_class]
name, depth = session.files.name, session.states.depth
third = studies.middle_third(depth)
report.show_notices(session.states.facts)
if map_class == "mlp":
    report.show_undertrained(study.fits.undertrained())

# %% [markdown]
# The relative error $|r|/|h'|$ and the cosine of $h'$ and $T(h)$ describe the residual; the
# divergence says what leaving it out does to the output, and the correlation whether it does more
# where it is longer. The shaded band is the middle third of the blocks, which the claim compares
# with the rest.

# %%
PANELS = {
    "rel_err_state": ("relative error |r| / |h'|", report.BLUE),
    "cos_full_tokenwise_state": ("cosine of h' and T(h)", report.GREEN),
    "kl": ("KL (nats)", report.VERMILION),
    "spearman_relerr_kl": (r"Spearman $\rho$ of error, KL", report.ORANGE),
}
figure, axes = plt.subplots(2, 2, sharex=True, figsize=(6.6, 5.0))
for axis, (quantity, (label, colour)) in zip(axes.flat, PANELS.items(), strict=True):
    rows = chosen[chosen["quantity"] == quantity]
    if len(third):
        axis.axvspan(
            third[0] - 0.5, third[-1] + 0.5, color=report.GREY, alpha=0.12, linewidth=0, zorder=0
        )
    report.curve(axis, rows["block"], rows, colour, "")
    axis.set_title(label)
axes[0, 0].set_ylim(bottom=0)
axes[1, 0].set_yscale("log")
report.few_log_ticks(axes[1, 0].yaxis)
axes[1, 1].axhline(0, color=report.GREY, linewidth=0.8)
report.block_axis(axes[1, 0], depth)
report.block_axis(axes[1, 1], depth)


def at(quantity):
    return chosen[chosen["quantity"] == quantity].set_index("block")


def over_blocks(quantity):
    found = overall[(overall["class"] == map_class) & (overall["quantity"] == quantity)].iloc[0]
    return report.with_interval(found["value"], found["ci_low"], found["ci_high"], 3)


error = at("rel_err_state")
report.publish_figure(
    figure,
    chosen[chosen["quantity"].isin(list(PANELS))],
    name="layer_regimes",
    model=name,
    caption=(
        f"Four measures by block of {name}, map class {map_class}, medians over tokens with 95 % "
        "bootstrap intervals over sequences; the middle third of the blocks is shaded."
    ),
    alt=(
        f"Four small panels against block for {name}: relative error from "
        f"{error['value'].min():.2f} to {error['value'].max():.2f}, cosine of full and tokenwise, "
        "KL on a logarithmic axis, and the rank correlation of error and KL."
    ),
    provenance=report.provenance(study.fits.kl_inputs(0), map=map_class, **session.states.facts),
    folder=folder,
)

# %% [markdown]
# ## What the paper reports, and what is measured here

# %%
worst = error.loc[error["value"].idxmax()]
report.show_table(
    report.comparison(
        {
            "U7": f"middle third minus the rest, medians over blocks: relative error "
            f"{over_blocks('middle_minus_rest_rel_err_state')}, cosine of full and tokenwise "
            f"{over_blocks('middle_minus_rest_cos_full_tokenwise_state')}",
            "U10": f"relative error below 0.5 by interval in {(error['ci_high'] < 0.5).sum()} of "
            f"{depth} blocks; largest "
            f"{report.with_interval(worst['value'], worst['ci_low'], worst['ci_high'])} "
            f"(block {error['value'].idxmax()}); median over blocks "
            f"{over_blocks('median_rel_err_state')}",
        }
    )
)
