"""Linear probes: planted classes, chance, the folds and the bad inputs."""

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from layergeom.geometry import GeometryError, probe_accuracy
from reference import probes as reference


def texts(per_class: int, width: int, apart: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three classes of texts, their means apart."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(["art", "law", "sea"], per_class))
    means = apart * rng.normal(size=(3, width))
    which = np.searchsorted(["art", "law", "sea"], labels)
    return means[which] + rng.normal(size=(len(labels), width)), labels


def test_classes_far_apart_are_told_apart() -> None:
    features, labels = texts(12, 6, apart=8.0, seed=0)
    np.testing.assert_array_equal(probe_accuracy(features, labels, 4, seed=0), np.ones(4))


def test_labels_that_mean_nothing_are_guessed_at_chance() -> None:
    features, labels = texts(200, 4, apart=0.0, seed=1)
    found = probe_accuracy(features, labels, 5, seed=1)
    assert found.shape == (5,)
    assert found.mean() == pytest.approx(1 / 3, abs=0.07)


@pytest.mark.parametrize("seed", range(4))
def test_every_fold_equals_a_general_minimiser_on_the_same_texts(seed: int) -> None:
    features, labels = texts(10, 3, apart=0.8, seed=seed)
    features[:, 0] *= 100.0
    folds = StratifiedKFold(3, shuffle=True, random_state=seed).split(features, labels)
    expected = [
        reference.fit_and_score(features[train], labels[train], features[test], labels[test])
        for train, test in folds
    ]
    np.testing.assert_allclose(probe_accuracy(features, labels, 3, seed), expected)


def test_the_scale_of_each_feature_does_not_matter() -> None:
    features, labels = texts(20, 5, apart=0.7, seed=2)
    scaled = features * np.array([1e-4, 1.0, 10.0, 1e3, 1e5]) + 7.0
    expected = probe_accuracy(features, labels, 4, seed=2)
    assert expected.mean() < 1.0
    np.testing.assert_array_equal(probe_accuracy(scaled, labels, 4, seed=2), expected)


def test_a_feature_that_never_changes_does_no_harm() -> None:
    features, labels = texts(12, 6, apart=8.0, seed=3)
    features[:, 2] = 5.0
    assert probe_accuracy(features, labels, 3, seed=3).min() == 1.0


def test_a_seed_fixes_the_folds_and_another_draws_others() -> None:
    features, labels = texts(30, 3, apart=0.6, seed=4)
    once = probe_accuracy(features, labels, 5, seed=4)
    np.testing.assert_array_equal(once, probe_accuracy(features, labels, 5, seed=4))
    assert (once != probe_accuracy(features, labels, 5, seed=5)).any()


def test_numbers_are_classes_as_well_as_names() -> None:
    features, labels = texts(15, 4, apart=1.0, seed=6)
    numbers = np.unique(labels, return_inverse=True)[1]
    np.testing.assert_array_equal(
        probe_accuracy(features, numbers, 3, seed=6), probe_accuracy(features, labels, 3, seed=6)
    )


def test_one_class_only_is_refused_by_its_name() -> None:
    with pytest.raises(GeometryError, match="all 9 texts are of class sport"):
        probe_accuracy(np.eye(9), np.array(["sport"] * 9), 3, seed=0)


def test_fewer_texts_than_folds_are_refused_with_both_numbers() -> None:
    with pytest.raises(GeometryError, match="4 texts for 5 folds"):
        probe_accuracy(np.eye(4), np.array([0, 1, 0, 1]), 5, seed=0)


def test_a_class_smaller_than_the_folds_is_refused_by_its_name() -> None:
    labels = np.array(["a"] * 6 + ["rare"] * 2)
    with pytest.raises(GeometryError, match="class rare has 2 texts for 3 folds"):
        probe_accuracy(np.eye(8), labels, 3, seed=0)


def test_other_bad_input_is_refused() -> None:
    features, labels = texts(4, 3, apart=1.0, seed=7)
    with pytest.raises(GeometryError, match="12 texts against 11 labels"):
        probe_accuracy(features, labels[:-1], 3, seed=0)
    with pytest.raises(GeometryError, match="2 folds or more, got 1"):
        probe_accuracy(features, labels, 1, seed=0)
    features[1, 1] = np.nan
    with pytest.raises(GeometryError, match="not finite"):
        probe_accuracy(features, labels, 3, seed=0)
