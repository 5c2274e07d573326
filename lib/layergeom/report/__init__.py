"""How results are shown: style, figures, tables, provenance and the documents' own figures."""

from layergeom.naming import ACROSS, slug
from layergeom.report.agreement import agreement_map
from layergeom.report.alternatives import rounded_alternatives
from layergeom.report.benchmarks import read_benchmarks, rounded_benchmarks
from layergeom.report.provenance import provenance
from layergeom.report.publish import (
    publish_figure,
    publish_table,
    show_notice,
    show_notices,
    show_table,
    show_undertrained,
    with_interval,
)
from layergeom.report.published import comparison
from layergeom.report.scale import rounded_scale, width_colours
from layergeom.report.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    VERMILION,
    block_axis,
    curve,
    few_log_ticks,
    label_end,
    layer_axis,
    point,
    spread_labels,
    symmetric_log,
    use_style,
)
from layergeom.report.training import mark_uncertain, step_axis, step_place, z_heat_map
from layergeom.report.updates_tables import rounded_classes, rounded_correlations
from layergeom.report.words import word_label

__all__ = [
    "ACROSS",
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "VERMILION",
    "agreement_map",
    "block_axis",
    "comparison",
    "curve",
    "few_log_ticks",
    "label_end",
    "layer_axis",
    "mark_uncertain",
    "point",
    "provenance",
    "publish_figure",
    "publish_table",
    "read_benchmarks",
    "rounded_alternatives",
    "rounded_benchmarks",
    "rounded_classes",
    "rounded_correlations",
    "rounded_scale",
    "show_notice",
    "show_notices",
    "show_table",
    "show_undertrained",
    "slug",
    "spread_labels",
    "step_axis",
    "step_place",
    "symmetric_log",
    "use_style",
    "width_colours",
    "with_interval",
    "word_label",
    "z_heat_map",
]
