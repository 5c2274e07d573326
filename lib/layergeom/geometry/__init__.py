"""The mathematics of both documents: arrays in, arrays out.

No model, no file, no plot. Every measure can be called on plain NumPy arrays.
"""

from layergeom.geometry.bootstrap import (
    Estimate,
    median_estimate,
    sequence_draws,
    spearman_estimate,
)
from layergeom.geometry.components import leading_components, remove_common_components
from layergeom.geometry.decomposition import (
    EnergyShares,
    alignment,
    dominant_subspace_energy,
    split_update,
)
from layergeom.geometry.distances import cosine_distances
from layergeom.geometry.errors import GeometryError, UndefinedCorrelationWarning
from layergeom.geometry.local_maps import (
    diagonal_map,
    fit_local_maps,
    global_linear_map,
    identity_low_rank_map,
    mean_update_map,
    orthogonal_map,
    reduced_rank_ridge,
)
from layergeom.geometry.neighbours import nearest_neighbours
from layergeom.geometry.pga import (
    PGAEstimate,
    PGASample,
    estimate_z,
    subspace_pga,
    subspace_pga_levels,
)
from layergeom.geometry.ranks import ReferenceRanks, reference_ranks, snap, spearman_to_reference
from layergeom.geometry.regimes import RegimeVerdict, classify_regime
from layergeom.geometry.subspaces import (
    captured_share,
    default_readout_dim,
    random_subspaces,
    readout_basis,
)

__all__ = [
    "EnergyShares",
    "Estimate",
    "GeometryError",
    "PGAEstimate",
    "PGASample",
    "ReferenceRanks",
    "RegimeVerdict",
    "UndefinedCorrelationWarning",
    "alignment",
    "captured_share",
    "classify_regime",
    "cosine_distances",
    "default_readout_dim",
    "diagonal_map",
    "dominant_subspace_energy",
    "estimate_z",
    "fit_local_maps",
    "global_linear_map",
    "identity_low_rank_map",
    "leading_components",
    "mean_update_map",
    "median_estimate",
    "nearest_neighbours",
    "orthogonal_map",
    "random_subspaces",
    "readout_basis",
    "reduced_rank_ridge",
    "reference_ranks",
    "remove_common_components",
    "sequence_draws",
    "snap",
    "spearman_estimate",
    "spearman_to_reference",
    "split_update",
    "subspace_pga",
    "subspace_pga_levels",
]
