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
#     studies: [pga]
#     claims: [R1, R2, R3, R13]
# ---

# %% [markdown]
# # Do a layer's distances follow the readout?
#
# A language model reads its prediction off the last layer through the unembedding. If a layer
# already arranges its tokens for that purpose, two tokens that are far apart should also be far
# apart when only the unembedding's strongest directions are looked at, and more so than through
# a random window of the same size. *Subspace PGA* measures just that: $\rho$ is the rank
# correlation between distances in full and distances in the subspace, and $z$ says how many
# standard deviations the readout's $\rho$ lies above that of random subspaces.

# %% tags=["parameters"]
model: str = "smollm2-135m"  # catalogue name, hub id or local folder
corpus: str = "wikipedia-sample"  # or the path of a text file
sizes: str = "default"  # "default" or "smoke"
seed: int = 0  # of every random choice
dtype: str = "float32"  # of the forward pass; or "bfloat16", "float16"
readout_dim: int = 0  # readout dimension k; 0 for the default rule
folder: str = "."  # where figure and data go

# %%
import matplotlib.pyplot as plt

from layergeom import report, studies

report.use_style()
session = studies.open_session(model, corpus, sizes, seed, dtype, readout_dim)
profile = studies.PGAStudy(session).profile()
table = profile.by_layer(level=1)
hidden, out = table[table["point"] != "out"], table[table["point"] == "out"]
inner = hidden.iloc[1:-1]
verdict = profile.regime()
name, last = session.files.name, profile.depth
report.show_notices(session.states.facts)

# %% [markdown]
# The upper panel below shows $z$ after removing the mean and the leading principal component
# (CCR-1), with its 95 % interval over disjoint samples of tokens and over the draw of the random
# subspaces. Between the dotted lines at $\pm 2$ the readout is no different from chance. The
# lower panel shows what $z$ is made of.

# %%
figure, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(6, 5.4), height_ratios=[3, 2])
for level in (-2, 2):
    top.axhline(level, color=report.GREY, linestyle=":", linewidth=1)
top.axhline(0, color=report.GREY, linewidth=0.8)
if verdict.collapse_zone:
    first, final = verdict.collapse_zone
    top.axvspan(first - 0.5, final + 0.5, color=report.VERMILION, alpha=0.08, linewidth=0)
    top.text(first - 0.4, 1.0, "collapse zone", transform=top.get_xaxis_transform(), va="bottom")
z = hidden.rename(columns={"z": "value"})
report.curve(top, hidden["depth"], z, report.BLUE, "")
report.point(top, last + 1, out.iloc[0], report.BLUE, "z")
top.set_ylabel("z (standard deviations)")
bottom.fill_between(
    hidden["depth"],
    hidden["null_low"],
    hidden["null_high"],
    color=report.GREY,
    alpha=0.3,
    linewidth=0,
)
bottom.plot(hidden["depth"], hidden["null_mean"], color=report.GREY)
bottom.plot(hidden["depth"], hidden["rho_readout"], color=report.BLUE, marker="o")
bottom.plot([last + 1], out["rho_readout"], color=report.BLUE, marker="D")
bottom.errorbar(
    [last + 1],
    out["null_mean"],
    yerr=abs(out[["null_low", "null_high"]].to_numpy() - out[["null_mean"]].to_numpy()).T,
    color=report.GREY,
    marker="s",
)
report.label_end(bottom, last, hidden["rho_readout"].iloc[-1], "readout", report.BLUE)
report.label_end(bottom, last, hidden["null_mean"].iloc[-1], "random", report.GREY)
report.spread_labels(bottom, gap=0.12)
bottom.set_ylabel(r"$\rho$ (Spearman)")
report.layer_axis(bottom, last)
report.publish_figure(
    figure,
    table,
    name="pga_by_layer",
    model=name,
    caption=(
        f"Subspace PGA of {name} by layer at CCR-1, k = {profile.readout_dim}. Above: z with its "
        "95 % interval; the diamond is the point after the final norm. Below: the readout's rho "
        "(mean over samples) inside the band that holds 95 % of the random subspaces' rho."
    ),
    alt=(
        f"Two panels against layer for {name}. z runs from {hidden['z'].min():.1f} to "
        f"{hidden['z'].max():.1f} over the layers and is {out['z'].iloc[0]:.1f} after the final "
        "norm; below, the readout's correlation against the band of random subspaces."
    ),
    provenance=report.provenance(profile.inputs, **session.states.facts),
    folder=folder,
)

# %% [markdown]
# ## What the paper reports, and what is measured here

# %%
peak, low, final = inner.loc[inner["z"].idxmax()], inner.loc[inner["z"].idxmin()], hidden.iloc[-1]
below = int((inner["null_mean"] >= inner["rho_readout"]).sum())


def z_of(row):
    return f"{report.with_interval(row['z'], row['ci_low'], row['ci_high'], 1)} ({row['point']})"


width = session.states.width
report.show_table(
    report.comparison(
        {
            "R1": f"d = {width}: intermediate z peaks at {z_of(peak)}; lowest {z_of(low)}",
            "R2": f"regime *{verdict.regime}*; lowest intermediate z {z_of(low)}",
            "R3": f"{z_of(final)} before the final norm, {z_of(out.iloc[0])} after it",
            "R13": f"the random mean is at or above the readout in {below} of {len(inner)} layers",
        }
    )
)
