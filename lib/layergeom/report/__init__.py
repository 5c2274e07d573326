"""How results are shown: style, figures, tables, provenance and the documents' own figures."""

from layergeom.report.provenance import provenance
from layergeom.report.publish import (
    ACROSS,
    publish_figure,
    publish_table,
    show_notice,
    show_notices,
    show_table,
    slug,
    with_interval,
)
from layergeom.report.published import comparison
from layergeom.report.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    VERMILION,
    curve,
    few_log_ticks,
    label_end,
    layer_axis,
    point,
    spread_labels,
    use_style,
)

__all__ = [
    "ACROSS",
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "VERMILION",
    "comparison",
    "curve",
    "few_log_ticks",
    "label_end",
    "layer_axis",
    "point",
    "provenance",
    "publish_figure",
    "publish_table",
    "show_notice",
    "show_notices",
    "show_table",
    "slug",
    "spread_labels",
    "use_style",
    "with_interval",
]
