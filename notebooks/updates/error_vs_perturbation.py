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
#     order: 6
#     studies: [updates]
#     claims: [U4]
# ---

# %% [markdown]
# # Does a larger residual change the output more?
#
# If the residual carries a block's work, then leaving it out should hurt where it is large. So the
# block's output is replaced by its tokenwise part $T(h)$ at every position, the model runs on, and
# the change of its prediction is measured as the divergence $\mathrm{KL}(p \,\|\, \tilde p)$ in
# nats. Each token has its own relative error $|r|/|h'|$: do tokens with a larger one see a larger
# change?

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
import seaborn as sns

from layergeom import report, studies

report.use_style()
studies.check_class(map_class)
session = studies.open_session(model, corpus, sizes, seed, dtype)
study = studies.UpdatesStudy(session)
chosen = study.summary().query("`class` == @map_class")
name, depth = session.files.name, session.states.depth
report.show_notices(session.states.facts)
if map_class == "mlp":
    report.show_undertrained(study.fits.undertrained())
rho = chosen[chosen["quantity"] == "spearman_relerr_kl"]
kl = chosen[chosen["quantity"] == "kl"]
singly = study.single.table() if map_class == studies.CONTROLLED else None

# %% [markdown]
# Above: tokens at an early, a middle and a late block, both axes logarithmic; blue where all
# positions are replaced at once, red crosses where one position is replaced and the others are
# left alone. Below: the rank correlation at every block, plain, given $|h'|$ and the position
# (partial), and for single positions. The line at 0.7 is the level that the paper calls common. A
# correlation over tokens says that errors and effects rise together; it does not say that the
# residual's *direction* matters, since longer errors of any kind do more.

# %%
picked = [depth // 6, depth // 2, depth - 1 - depth // 6]
figure, axes = plt.subplot_mosaic("abc;ddd", figsize=(6.6, 5.8), height_ratios=[1, 1.1])
for key, block in zip("abc", picked, strict=True):
    axis, effects = axes[key], study.fits.block(block).effects(map_class)
    shown = effects[(effects["kl"] > 0) & (effects["rel_err_state"] > 0)]
    sns.histplot(
        shown, x="rel_err_state", y="kl", log_scale=True, bins=24, cmap="Blues", vmin=-2, ax=axis
    )
    if singly is not None:
        alone = singly[(singly["block"] == block) & (singly["kl"] > 0)]
        axis.plot(alone["rel_err_state"], alone["kl"], "x", color=report.VERMILION, markersize=3.5)
    axis.set_title(rf"block {block}: $\rho$ = {rho.set_index('block')['value'][block]:.2f}")
    report.few_log_ticks(axis.xaxis)
    axis.set(xlabel="error |r| / |h'|", ylabel="KL (nats)" if key == "a" else "")
axes["d"].axhline(0.7, color=report.GREY, linestyle=":", linewidth=1)
axes["d"].text(depth - 1, 0.71, "0.7", color=report.GREY, va="bottom", ha="right")
axes["d"].axhline(0, color=report.GREY, linewidth=0.8)
CURVES = {
    "spearman_relerr_kl": ("all at once", report.BLUE),
    "partial_spearman_relerr_kl": ("partial", report.GREEN),
    "spearman_relerr_kl_single": ("one at a time", report.VERMILION),
}
for quantity, (label, colour) in CURVES.items():
    rows = chosen[chosen["quantity"] == quantity]
    if len(rows):
        report.curve(axes["d"], rows["block"], rows, colour, label)
report.spread_labels(axes["d"], gap=0.08)
report.block_axis(axes["d"], depth)
axes["d"].set_ylabel(r"Spearman $\rho$ of error and KL")
medians = chosen.groupby("quantity")["value"].median()
report.publish_figure(
    figure,
    chosen[chosen["quantity"].str.match("(partial_)?spearman|kl$|kl_single$|rel_err_state$")],
    name="error_vs_perturbation",
    model=name,
    caption=(
        f"Relative error against KL per token at three blocks of {name} (blue: all positions "
        f"replaced, darker for more tokens; red: single positions), and their Spearman correlation "
        f"by block with 95 % bootstrap intervals over sequences; map class {map_class}. "
        + (f"Single positions: {study.single.sampled} tokens." if singly is not None else "")
    ),
    alt=(
        f"Three densities of relative error against KL for {name}, and below the rank correlation "
        f"by block, which runs from {rho['value'].min():.2f} to {rho['value'].max():.2f} with a "
        f"median of {rho['value'].median():.2f}."
    ),
    provenance=report.provenance(study.fits.kl_inputs(0), map=map_class, **session.states.facts),
    folder=folder,
)

# %% [markdown]
# ## What the paper reports, and what is measured here

# %%
above = int((rho["value"] > 0.7).sum())
best = rho.loc[rho["value"].idxmax()]
best_rho = report.with_interval(best["value"], best["ci_low"], best["ci_high"])
report.show_table(
    report.comparison(
        {
            "U4": f"above 0.7 in {above} of {depth} blocks; median {rho['value'].median():.2f}, "
            f"highest {best_rho} at block {best['block']}; median of the partial correlation "
            f"{medians['partial_spearman_relerr_kl']:.2f}"
            + (
                f", of single positions {medians['spearman_relerr_kl_single']:.2f}"
                if singly is not None
                else ""
            )
            + f"; median KL {kl['value'].min():.1g} to {kl['value'].max():.1g} nats"
        }
    )
)
