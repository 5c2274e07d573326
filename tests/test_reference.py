"""The references are independent of the package, and right where a hand can follow."""

import ast
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from reference import kl, maps

REFERENCES = sorted((Path(__file__).parent / "reference").glob("*.py"))


def imported_packages(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add("." if node.level else (node.module or "").split(".")[0])
    return names - set(sys.stdlib_module_names)


def test_the_scan_finds_the_references() -> None:
    assert {"pga.py", "maps.py", "neighbours.py"} <= {path.name for path in REFERENCES}
    assert imported_packages(Path(__file__)) == {"numpy", "pytest", "reference"}


@pytest.mark.parametrize("path", REFERENCES, ids=lambda path: path.stem)
def test_a_reference_imports_numpy_and_scipy_only(path: Path) -> None:
    assert imported_packages(path) <= {"numpy", "scipy"}


def test_divergence_of_a_fair_coin_from_a_biased_one() -> None:
    fair = np.log([0.5, 0.5])
    biased = np.log([0.25, 0.75])
    assert kl.divergence(fair, biased) == pytest.approx(0.5 * math.log(4.0 / 3.0))
    expected = 0.75 * math.log(3.0) - math.log(2.0)
    assert kl.divergence(biased, fair) == pytest.approx(expected)


def test_divergence_ignores_a_shift_of_the_logits() -> None:
    logits, other = np.random.default_rng(0).normal(size=(2, 7))
    assert kl.divergence(logits + 3.0, other - 50.0) == pytest.approx(kl.divergence(logits, other))


def test_procrustes_finds_a_planted_rotation() -> None:
    rng = np.random.default_rng(1)
    rotation = np.linalg.qr(rng.normal(size=(5, 5))).Q
    x = rng.normal(size=(9, 5))
    np.testing.assert_allclose(maps.procrustes(x, x @ rotation.T), rotation, atol=1e-12)


@pytest.mark.parametrize("neighbours", [2, 5, 9], ids=lambda count: f"{count} neighbours")
def test_procrustes_is_the_limit_of_a_small_ridge(neighbours: int) -> None:
    """A sanity check only: a small ridge is not exact, which is why it is not the reference."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(neighbours, 12))
    y = x + 0.3 * rng.normal(size=x.shape)
    limit = maps.procrustes(x, y)
    errors = [
        np.abs(maps.procrustes_with_ridge(x, y, eps) - limit).max() for eps in (1e-1, 1e-3, 1e-7)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-5
