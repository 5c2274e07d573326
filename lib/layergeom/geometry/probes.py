"""Linear probes: can a label be read off one vector a text?

Source: Readout (arXiv 2605.17084), section 6.
"""

import numpy as np
from jaxtyping import Float, Int, Shaped

from layergeom.geometry.errors import GeometryError
from layergeom.geometry.threads import map_threads

#: Steps of the solver; on standardised features it needs a tenth of them.
_STEPS = 5000


def probe_accuracy(
    features: Float[np.ndarray, "texts width"],
    labels: Shaped[np.ndarray, " texts"],
    folds: int,
    seed: int,
) -> Float[np.ndarray, " folds"]:
    """Accuracy of a multinomial logistic regression on the held-out texts of each fold.

    Stratified k-fold, shuffled by the seed; the features are standardised with the mean and the
    standard deviation of each fold's training texts; ridge penalty of strength 1.

    Args:
        features: one vector a text.
        labels: one class a text, numbers or strings.
        folds: number of folds, 2 or more.
        seed: order of the texts; the same folds for every layer.

    Returns:
        Share of held-out texts classified rightly, by fold.

    Raises:
        GeometryError: features that are not finite or do not match the labels, a single class,
            or fewer texts than folds, in all or in a class.
    """
    # Imported here: it takes a second that no other measure needs.
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if len(features) != len(labels):
        raise GeometryError(f"{len(features)} texts against {len(labels)} labels")
    if not np.isfinite(features).all():
        raise GeometryError("the features hold values that are not finite")
    if folds < 2:
        raise GeometryError(f"a probe needs 2 folds or more, got {folds}")
    if len(labels) < folds:
        raise GeometryError(
            f"{len(labels)} texts for {folds} folds: give more texts, or ask for fewer folds"
        )
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) < 2:
        raise GeometryError(
            f"all {len(labels)} texts are of class {classes[0]!s}: a probe needs two classes"
        )
    if counts.min() < folds:
        raise GeometryError(
            f"class {classes[counts.argmin()]!s} has {counts.min()} texts for {folds} folds: "
            "leave it out, or ask for fewer folds"
        )
    features = features.astype(np.float64)

    def accuracy(split: tuple[Int[np.ndarray, " train"], Int[np.ndarray, " held_out"]]) -> float:
        train, held_out = split
        probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=_STEPS))
        probe.fit(features[train], labels[train])
        return float(probe.score(features[held_out], labels[held_out]))

    splits = StratifiedKFold(folds, shuffle=True, random_state=seed).split(features, labels)
    return np.array(map_threads(accuracy, splits))
