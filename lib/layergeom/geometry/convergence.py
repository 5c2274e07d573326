"""Do two models agree on which points of a text are close?

Source: Readout (arXiv 2605.17084), section 5. Points are matched by their end position in the
text; the distances of each layer are ranked once in each space and compared with those of every
layer of the other model.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from layergeom.geometry.components import remove_common_components
from layergeom.geometry.distances import snapped_cosine_distances
from layergeom.geometry.errors import GeometryError, UndefinedCorrelationWarning
from layergeom.geometry.ranks import reference_ranks
from layergeom.geometry.threads import map_threads


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


@dataclass(frozen=True)
class LayersAgreement:
    """Agreement of every layer of one model with every layer of another.

    Attributes:
        full: as in ``ConvergenceSample``, by layer of the first and of the second.
        readout: likewise.
        random: likewise, for each pair of random subspaces.
    """

    full: Float[np.ndarray, "first second"]
    readout: Float[np.ndarray, "first second"]
    random: Float[np.ndarray, "subspaces first second"]

    def at(self, first: int, second: int) -> ConvergenceSample:
        """Agreement of one layer of each."""
        return ConvergenceSample(
            float(self.full[first, second]),
            float(self.readout[first, second]),
            self.random[:, first, second],
        )


@dataclass(frozen=True)
class ModelLayers:
    """What is compared of one model.

    Attributes:
        states: states of each layer at the matched points.
        readout: orthonormal basis of the model's readout subspace.
        nulls: orthonormal bases of its random subspaces.
    """

    states: Sequence[Float[np.ndarray, "points width"]]
    readout: Float[np.ndarray, "width k"]
    nulls: Float[np.ndarray, "count width k"]

    def columns(self, ccr: int) -> list[Float[np.ndarray, "width points"]]:
        """The layers after the removal of common components, transposed.

        Raises:
            GeometryError: fewer than three points, bases of another width, or states that are
                not finite.
        """
        for states in self.states:
            points, width = states.shape
            if points < 3:
                raise GeometryError(f"agreement needs 3 matched points or more, got {points}")
            if self.readout.shape[0] != width or self.nulls.shape[1:2] != (width,):
                raise GeometryError(
                    f"states of width {width}, a readout basis of shape {self.readout.shape} and "
                    f"random bases of shape {self.nulls.shape} do not match"
                )
        return map_threads(
            lambda states: np.ascontiguousarray(remove_common_components(states, ccr).T),
            self.states,
        )


def _ranks(
    columns: Sequence[Float[np.ndarray, "width points"]], basis: Float[np.ndarray, "width k"] | None
) -> tuple[Float[np.ndarray, "layers pairs"], Float[np.ndarray, " layers"]]:
    """Doubled ranks of each layer's distances less their mean, and their length."""
    found = [
        reference_ranks(snapped_cosine_distances(c if basis is None else basis.T @ c))
        for c in columns
    ]
    # Whole numbers: their products are exact in float64 up to 300,000 pairs.
    centred = np.stack([r.doubled - (r.doubled.size + 1.0) for r in found])
    lengths = 2.0 * np.sqrt([r.sum_squares for r in found])
    return centred, np.where(lengths > 0.0, lengths, np.nan)


def layers_agreement(first: ModelLayers, second: ModelLayers, ccr: int = 1) -> LayersAgreement:
    """Agreement of all layers of two models on matched points, in three kinds of space.

    Spearman between the two models' condensed cosine distances after CCR in each: in full
    space, in each one's readout subspace, and in the i-th random subspace of one and the i-th of
    the other. 1 for a rotated and scaled copy. The widths and dimensions may differ.

    Args:
        first: one model.
        second: the other, at the same points and with as many random subspaces.
        ccr: leading principal components removed after centring.

    Returns:
        The agreements; NaN with an ``UndefinedCorrelationWarning`` where a layer's distances
        are all equal.

    Raises:
        GeometryError: as ``ModelLayers.columns``, points that become zero vectors, or different
            numbers of points or of random subspaces.
    """
    columns, other_columns = first.columns(ccr), second.columns(ccr)
    points = [len(layer) for layer in (*first.states, *second.states)]
    if len(set(points)) > 1:
        raise GeometryError(
            f"{points[0]} points against {points[-1]}: the points of the two models are not matched"
        )
    if len(first.nulls) != len(second.nulls):
        raise GeometryError(
            f"{len(first.nulls)} random subspaces against {len(second.nulls)}: they are "
            "compared in pairs"
        )

    def agreement(bases: tuple[Any, Any]) -> Float[np.ndarray, "first second"]:
        ranks, lengths = _ranks(columns, bases[0])
        other_ranks, other_lengths = _ranks(other_columns, bases[1])
        return (ranks @ other_ranks.T) / np.outer(lengths, other_lengths)

    nulls = zip(first.nulls, second.nulls, strict=True)
    spaces = [(None, None), (first.readout, second.readout), *nulls]
    full, readout, *random = map_threads(agreement, spaces)
    if any(np.isnan(values).any() for values in (full, readout, *random)):
        warnings.warn(
            "all distances of a layer are equal: the rank correlation is undefined",
            UndefinedCorrelationWarning,
            stacklevel=2,
        )
    return LayersAgreement(full, readout, np.array(random).reshape(-1, *full.shape))


def convergence(
    first: Float[np.ndarray, "points first_width"],
    second: Float[np.ndarray, "points second_width"],
    first_readout: Float[np.ndarray, "first_width first_k"],
    second_readout: Float[np.ndarray, "second_width second_k"],
    first_nulls: Float[np.ndarray, "count first_width first_k"],
    second_nulls: Float[np.ndarray, "count second_width second_k"],
    ccr: int = 1,
) -> ConvergenceSample:
    """Agreement of one layer of each of two models, as ``layers_agreement`` of two lists of one.

    Raises:
        GeometryError: as ``layers_agreement``.
    """
    return layers_agreement(
        ModelLayers([first], first_readout, first_nulls),
        ModelLayers([second], second_readout, second_nulls),
        ccr,
    ).at(0, 0)
