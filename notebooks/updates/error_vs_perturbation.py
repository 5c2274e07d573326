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
map_class: str = "orthogonal"  # diagonal, orthogonal, low_rank, identity_low_rank or mlp
folder: str = "."  # where figure and data go

# %%
import matplotlib.pyplot as plt
import seaborn as sns

from layergeom import report, studies

report.use_style()
studies.check_class(map_class)
session = studies.Session(studies.Settings(model, corpus, studies.named_sizes(sizes), seed))
study = studies.UpdatesStudy(session)
summary = study.summary()
chosen = summary[summary["class"] == map_class]
name, depth = session.files.name, session.states.depth
report.show_notices(session.states.facts)
if map_class == "mlp" and (blocks := study.fits.undertrained()):
    report.show_notice(f"The mlp of blocks {blocks} ends above one linear map: it decides nothing.")
rho = chosen[chosen["quantity"] == "spearman_relerr_kl"]
kl = chosen[chosen["quantity"] == "kl"]

# %% [markdown]
# Above: tokens at an early, a middle and a late block, both axes logarithmic, each panel with its
# own rank correlation. Below: that correlation at every block. The line at 0.7 is the level that
# the paper calls common. A correlation over tokens says that errors and effects rise together; it
# does not say that the residual's *direction* matters, since longer errors of any kind do more.

# %%
picked = [depth // 6, depth // 2, depth - 1 - depth // 6]
figure, axes = plt.subplot_mosaic("abc;ddd", figsize=(6.6, 5.6), height_ratios=[1, 1])
for key, block in zip("abc", picked, strict=True):
    update, axis = study.fits.block(block), axes[key]
    tokens = update.tokens[update.tokens["class"] == map_class]
    effect = update.kl.loc[update.kl["class"] == map_class, "kl"].to_numpy()
    error = tokens["rel_err_state"].to_numpy()[: len(effect)]
    shown = (effect > 0) & (error > 0)
    sns.histplot(
        x=error[shown], y=effect[shown], log_scale=True, bins=24, cmap="Blues", vmin=-2, ax=axis
    )
    row = rho[rho["block"] == block].iloc[0]
    axis.set_title(rf"block {block}: $\rho$ = {row['value']:.2f}")
    report.few_log_ticks(axis.xaxis)
    axis.set_xlabel("relative error |r| / |h'|")
axes["a"].set_ylabel("KL (nats)")
axes["d"].axhline(0.7, color=report.GREY, linestyle=":", linewidth=1)
axes["d"].text(0, 0.71, "0.7", color=report.GREY, va="bottom")
axes["d"].axhline(0, color=report.GREY, linewidth=0.8)
report.curve(axes["d"], rho["block"], rho, report.BLUE, map_class)
axes["d"].set_xlabel("block")
axes["d"].set_ylabel(r"Spearman $\rho$ of error and KL")
report.publish_figure(
    figure,
    chosen[chosen["quantity"].isin(["spearman_relerr_kl", "kl", "rel_err_state"])],
    name="error_vs_perturbation",
    model=name,
    caption=(
        f"Relative error against KL per token at three blocks of {name} (darker: more tokens), and "
        f"their Spearman correlation by block with 95 % bootstrap intervals over sequences; map "
        f"class {map_class}, all positions replaced at once."
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
            f"highest {best_rho} at block {best['block']}; median KL "
            f"{kl['value'].min():.3f} to {kl['value'].max():.3f} nats"
        }
    )
)
