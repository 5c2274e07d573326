"""The mathematics of both documents: arrays in, arrays out.

No model, no file, no plot. Every measure can be called on plain NumPy arrays.
"""

from layergeom.geometry.bootstrap import (
    Estimate,
    median_estimate,
    partial_spearman,
    sequence_draws,
    spearman_estimates,
)
from layergeom.geometry.components import (
    ComponentShares,
    component_shares,
    leading_components,
    remove_common_components,
)
from layergeom.geometry.controls import along_tokenwise, other_tokens, random_direction
from layergeom.geometry.convergence import (
    ConvergenceSample,
    LayersAgreement,
    ModelLayers,
    convergence,
    layers_agreement,
)
from layergeom.geometry.decomposition import (
    EnergyShares,
    alignment,
    dominant_subspace_energy,
    share_along,
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
from layergeom.geometry.means import sample_mean_estimate
from layergeom.geometry.neighbours import nearest_neighbours
from layergeom.geometry.nulls import orthogonal_subspaces, variance_matched_subspaces
from layergeom.geometry.over_layers import spearman_over_layers
from layergeom.geometry.pga import (
    PGAEstimate,
    PGASample,
    estimate_z,
    subspace_pga,
    subspace_pga_levels,
)
from layergeom.geometry.probes import probe_accuracy
from layergeom.geometry.ranks import ReferenceRanks, reference_ranks, snap, spearman_to_reference
from layergeom.geometry.regimes import RegimeVerdict, classify_regime
from layergeom.geometry.spectral import (
    alpha_req,
    condition_number,
    isoscore,
    mean_cosine,
    participation_ratio,
    partition_isotropy,
    rankme,
    rankme_centred,
    spectral_metrics,
)
from layergeom.geometry.subspaces import (
    captured_share,
    centre_vocabulary,
    default_readout_dim,
    fold_norm,
    random_subspaces,
    readout_basis,
)

__all__ = [
    "ComponentShares",
    "ConvergenceSample",
    "EnergyShares",
    "Estimate",
    "GeometryError",
    "LayersAgreement",
    "ModelLayers",
    "PGAEstimate",
    "PGASample",
    "ReferenceRanks",
    "RegimeVerdict",
    "UndefinedCorrelationWarning",
    "alignment",
    "along_tokenwise",
    "alpha_req",
    "captured_share",
    "centre_vocabulary",
    "classify_regime",
    "component_shares",
    "condition_number",
    "convergence",
    "cosine_distances",
    "default_readout_dim",
    "diagonal_map",
    "dominant_subspace_energy",
    "estimate_z",
    "fit_local_maps",
    "fold_norm",
    "global_linear_map",
    "identity_low_rank_map",
    "isoscore",
    "layers_agreement",
    "leading_components",
    "mean_cosine",
    "mean_update_map",
    "median_estimate",
    "nearest_neighbours",
    "orthogonal_map",
    "orthogonal_subspaces",
    "other_tokens",
    "partial_spearman",
    "participation_ratio",
    "partition_isotropy",
    "probe_accuracy",
    "random_direction",
    "random_subspaces",
    "rankme",
    "rankme_centred",
    "readout_basis",
    "reduced_rank_ridge",
    "reference_ranks",
    "remove_common_components",
    "sample_mean_estimate",
    "sequence_draws",
    "share_along",
    "snap",
    "spearman_estimates",
    "spearman_over_layers",
    "spearman_to_reference",
    "spectral_metrics",
    "split_update",
    "subspace_pga",
    "subspace_pga_levels",
    "variance_matched_subspaces",
]
