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
#     studies: [pga, spectral]
#     claims: [R7]
# ---

# %% [markdown]
# # Would the spectrum have told us?
#
# Layers are often judged by the spectrum of their states: how many directions they use, how fast
# the variance decays, how evenly the cloud fills its space. None of these looks at the
# unembedding. If they moved with $z$, the readout's geometry would be old news in new clothes; if
# they stay flat where $z$ swings, they miss it.

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
study = studies.SpectralStudy(session)
table = study.table()
rho = study.correlations().set_index("metric")
profile = studies.PGAStudy(session).profile()
z = profile.by_layer(level=1).rename(columns={"z": "value"})
layers = z[z["point"] != "out"]
name, last = session.files.name, profile.depth
report.show_notices(session.states.facts)

# %% [markdown]
# The first panel is $z$ at CCR-1; the others are the metrics on the same tokens, each in its own
# units, with 95 % intervals over disjoint samples. The grey line behind each repeats $z$,
# stretched to the panel's height, so that shapes can be compared. Each panel's $\rho$ is the rank
# correlation with $z$ over the layers; its interval counts the error of the measurement and that
# of having these few layers, neighbours of which resemble each other. IsoScore and the
# participation ratio are rescalings of each other and must agree.

# %%
METRICS = {
    "rankme": ("RankMe", "dimensions"),
    "rankme_centred": ("RankMe, centred", "dimensions"),
    "participation_ratio": ("participation ratio", "dimensions"),
    "alpha_req": ("alpha-ReQ", "exponent"),
    "isoscore": ("IsoScore", "score, 0 to 1"),
    "partition_isotropy": ("partition isotropy", "ratio, 0 to 1"),
    "mean_cosine": ("mean cosine", "cosine"),
    "condition_number": ("condition number", "ratio"),
}
figure, axes = plt.subplot_mosaic(
    "zz;ab;cd;ef;gh", figsize=(6, 9.4), height_ratios=[1.3, 1, 1, 1, 1]
)
axes["z"].axhline(0, color=report.GREY, linewidth=0.8)
report.curve(axes["z"], layers["depth"], layers, report.VERMILION, "")
axes["z"].set_title("z at CCR-1")
axes["z"].set_ylabel("z (std. dev.)")
axes["z"].set_xlabel("layer")
for key, (metric, (title, unit)) in zip("abcdefgh", METRICS.items(), strict=True):
    axis = axes[key]
    behind = axis.twinx()
    behind.plot(layers["depth"], layers["value"], color=report.GREY, alpha=0.5, linewidth=1)
    behind.axis("off")
    rows = table[(table["metric"] == metric) & (table["point"] != "out")]
    report.curve(axis, rows["depth"], rows, report.BLUE, "", marker="")
    found = rho.loc[metric]
    against = report.with_interval(found["value"], found["ci_low"], found["ci_high"])
    axis.set_title(f"{title}\n" + rf"$\rho$ = {against}")
    axis.set_ylabel(unit)
axes["h"].set_yscale("log")
report.few_log_ticks(axes["h"].yaxis)
for key in "gh":
    axes[key].set_xlabel("layer")
strongest = rho["value"].abs().idxmax()
report.publish_figure(
    figure,
    table,
    name="spectral_metrics",
    model=name,
    caption=(
        f"z of {name} by layer, and eight spectral metrics of the same tokens (blue, with 95 % "
        "intervals); grey, z again, stretched to each panel. Titles: Spearman correlation with z "
        f"over layers 0 to {last}, with its 95 % bootstrap interval over token samples and runs "
        "of neighbouring layers."
    ),
    alt=(
        f"Nine small panels against layer for {name}: z, and eight spectral metrics. The strongest "
        f"rank correlation with z is that of {METRICS[strongest][0]}, "
        f"{rho.loc[strongest, 'value']:.2f}."
    ),
    provenance=report.provenance(study.artefact.inputs, **session.states.facts),
    folder=folder,
)

# %% [markdown]
# ## What the paper reports, and what is measured here

# %%
inner = table[(table["point"] != "out") & (table["depth"] > 0)]
swing = layers["value"].iloc[1:]
spans = inner.groupby("metric", sort=False)["value"].agg(["min", "max"])
apart = rho[(rho["ci_low"] > 0) | (rho["ci_high"] < 0)].index
report.show_table(
    report.comparison(
        {
            "R7": f"layers 1 to {last}: z from {swing.min():.1f} to {swing.max():.1f}; meanwhile "
            + ", ".join(
                f"{METRICS[metric][0]} {row['min']:.3g} to {row['max']:.3g}"
                for metric, row in spans.iterrows()
            )
            + ". Correlated with z by interval: "
            + (", ".join(METRICS[metric][0] for metric in apart) or "none")
        }
    )
)
