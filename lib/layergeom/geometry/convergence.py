"""Do two models agree on which points of a text are close?

Source: Readout (arXiv 2605.17084), section 5. Points are matched by their end position in the
text; the distances of one layer are ranked once and compared with as many layers as wanted.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from layergeom.geometry.components import remove_common_components
from layergeom.geometry.distances import snapped_cosine_distances
from layergeom.geometry.errors import GeometryError, UndefinedCorrelationWarning
from layergeom.geometry.ranks import ReferenceRanks, reference_ranks
from layergeom.geometry.threads import map_threads


@dataclass(frozen=True)
class RankedDistances:
    """Ranks of one layer's cosine distances, in each space.

    Attributes:
        full: in full space, after the removal of common components.
        readout: after projection on the model's own readout subspace.
        random: after projection on each of its random subspaces. With 600 points a subspace
            takes 0.7 MB; where many layers are held at once, rank some subspaces at a time.
    """

    full: ReferenceRanks
    readout: ReferenceRanks
    random: tuple[ReferenceRanks, ...]


@dataclass(frozen=True)
class ConvergenceSample:
    """Agreement of two layers of two models.

    Attributes:
        full: Spearman between the two models' condensed distances in full space.
        readout: the same, each model in its own readout subspace.
        random: the same for the i-th random subspace of one and the i-th of the other.
    """

    full: float
    readout: float
    random: Float[np.ndarray, " subspaces"]


def _ranks(columns: Float[np.ndarray, "width points"]) -> ReferenceRanks:
    ranks = reference_ranks(snapped_cosine_distances(columns))
    # Twice the number of pairs fits 32 bits up to 40,000 points.
    return ReferenceRanks(ranks.doubled.astype(np.int32), ranks.sum_squares)


def ranked_distances(
    states: Float[np.ndarray, "points width"],
    readout: Float[np.ndarray, "width k"],
    nulls: Float[np.ndarray, "count width k"],
    ccr: int = 1,
) -> RankedDistances:
    """Rank the cosine distances of one layer in full, readout and random space.

    The part whose cost is shared by all the layers that this one is compared with.

    Args:
        states: states at the matched points.
        readout: orthonormal basis of the model's readout subspace.
        nulls: orthonormal bases of its random subspaces.
        ccr: leading principal components removed after centring.

    Raises:
        GeometryError: fewer than three points, bases of another width, states that are not
            finite, or points that become zero vectors.
    """
    points, width = states.shape
    if points < 3:
        raise GeometryError(f"agreement needs 3 matched points or more, got {points}")
    if readout.shape[0] != width or nulls.ndim != 3 or nulls.shape[1] != width:
        raise GeometryError(
            f"states of width {width}, a readout basis of shape {readout.shape} and random bases "
            f"of shape {nulls.shape} do not match"
        )
    columns = np.ascontiguousarray(remove_common_components(states, ccr).T)
    inside, *random = map_threads(lambda basis: _ranks(basis.T @ columns), [readout, *nulls])
    return RankedDistances(_ranks(columns), inside, tuple(random))


def _spearman(first: ReferenceRanks, second: ReferenceRanks) -> float:
    """Spearman between two ranked vectors; NaN with a warning where one is constant."""
    from layergeom.geometry.compiled import rank_product

    scale = first.sum_squares * second.sum_squares
    if scale <= 0.0:
        warnings.warn(
            "all distances are equal: the rank correlation is undefined",
            UndefinedCorrelationWarning,
            stacklevel=3,
        )
        return float("nan")
    return 0.25 * rank_product(first.doubled, second.doubled) / float(np.sqrt(scale))


def distance_agreement(first: RankedDistances, second: RankedDistances) -> ConvergenceSample:
    """Agreement of two layers whose distances are ranked: one product a space, no sorting.

    Raises:
        GeometryError: different numbers of points, or of random subspaces.
    """
    if first.full.doubled.size != second.full.doubled.size:
        raise GeometryError(
            f"{first.full.doubled.size} pairs of points against {second.full.doubled.size}: the "
            "points of the two models are not matched"
        )
    if len(first.random) != len(second.random):
        raise GeometryError(
            f"{len(first.random)} random subspaces against {len(second.random)}: they are "
            "compared in pairs"
        )
    random = [_spearman(*pair) for pair in zip(first.random, second.random, strict=True)]
    return ConvergenceSample(
        _spearman(first.full, second.full),
        _spearman(first.readout, second.readout),
        np.array(random),
    )


def convergence(
    first: Float[np.ndarray, "points first_width"],
    second: Float[np.ndarray, "points second_width"],
    first_readout: Float[np.ndarray, "first_width first_k"],
    second_readout: Float[np.ndarray, "second_width second_k"],
    first_nulls: Float[np.ndarray, "count first_width first_k"],
    second_nulls: Float[np.ndarray, "count second_width second_k"],
    ccr: int = 1,
) -> ConvergenceSample:
    """Agreement of two models' layers on matched points, in three kinds of space.

    Spearman between the two models' condensed cosine distances after CCR in each: in full
    space, in each one's readout subspace, and in the i-th random subspace of one and the i-th of
    the other. 1 for a rotated and scaled copy. The widths and dimensions may differ.

    Raises:
        GeometryError: as ``ranked_distances`` and ``distance_agreement``.
    """
    return distance_agreement(
        ranked_distances(first, first_readout, first_nulls, ccr),
        ranked_distances(second, second_readout, second_nulls, ccr),
    )
