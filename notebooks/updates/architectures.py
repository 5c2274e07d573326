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
#     studies: [updates]
#     claims: [U6]
# ---

# %% [markdown]
# # Do state-space models update their tokens as transformers do?
#
# Attention looks back at every earlier token; a state-space model carries a summary forward. If
# the split into a tokenwise part and a small, consequential residual belongs to language rather
# than to attention, both kinds should show it. All models stand on one axis of depth here, the
# first block left and the last right.

# %% tags=["parameters"]
models: list = ["smollm2-135m"]  # catalogue names, hub ids or local folders
corpus: str = "wikipedia-sample"  # or the path of a text file
sizes: str = "default"  # "default" or "smoke"
seed: int = 0  # of every random choice
dtype: str = "float32"  # of the forward pass; or "bfloat16", "float16"
folder: str = "."  # where figure and data go

# %%
import matplotlib.pyplot as plt

from layergeom import report, studies

report.use_style()
sessions = [studies.open_session(model, corpus, sizes, seed, dtype) for model in models]
table = studies.updates_profiles(sessions)

# %% [markdown]
# Blue curves are transformers, red ones with squares state-space models. Larger models are better
# trained as well, so that a difference between two curves need not come from the architecture;
# models of one width and one text are the fair pairs.

# %%
KINDS = {"transformer": (report.BLUE, "o"), "state space": (report.VERMILION, "s")}
PANELS = {
    "cos_full_tokenwise_state": "cosine of h' and T(h)",
    "rel_err_state": "relative error |r| / |h'|",
    "spearman_relerr_kl": r"Spearman $\rho$ of error, KL",
}
figure, axes = plt.subplots(3, 1, sharex=True, figsize=(6.0, 8.4))
for axis, (quantity, label) in zip(axes, PANELS.items(), strict=True):
    for (model, kind), rows in table[table["quantity"] == quantity].groupby(
        ["model", "kind"], sort=False
    ):
        colour, marker = KINDS[kind]
        report.curve(axis, rows["relative_depth"], rows, colour, model, marker=marker)
    axis.set_ylabel(label)
    report.spread_labels(axis, gap=0.07)
axes[1].set_ylim(bottom=0)
axes[2].axhline(0, color=report.GREY, linewidth=0.8)
axes[2].set_xlim(0, 1)
axes[2].set_xlabel("relative depth of the block")
shown = table[table["quantity"].isin(list(PANELS))]
report.publish_figure(
    figure,
    shown,
    name="architectures",
    model=report.ACROSS,
    caption=(
        "Alignment, relative error and correlation of error and KL against relative depth, map "
        "class orthogonal; blue: transformers, red: state-space models. Medians over tokens with "
        "95 % bootstrap intervals over sequences."
    ),
    alt=(
        f"Three panels against relative depth with one curve for each of {len(models)} models: "
        "cosine of full and tokenwise, relative error, and rank correlation of error and KL."
    ),
    provenance=report.provenance(
        {"models": list(models), "corpus": corpus, "sizes": sizes, "seed": seed}
    ),
    folder=folder,
)

# %% [markdown]
# ## What the paper reports, and what is measured here

# %%
spans = shown.groupby(["kind", "quantity"])["value"].median()
kinds = list(shown["kind"].unique())
if "state space" not in kinds:
    report.show_notice("There is no state-space model among these: nothing is compared.")
report.show_table(
    report.comparison(
        {
            "U6": "; ".join(
                f"{kind}, medians over models and blocks: cosine "
                f"{spans[kind, 'cos_full_tokenwise_state']:.3f}, relative error "
                f"{spans[kind, 'rel_err_state']:.2f}, Spearman "
                f"{spans[kind, 'spearman_relerr_kl']:.2f}"
                for kind in kinds
            )
        }
    )
)
