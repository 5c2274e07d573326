"""The command that prints the ledger, on a profile of one's own."""

import json
from pathlib import Path

import numpy as np
import pytest

from cli import layergeom
from layergeom.claims import CLAIMS
from tiny_models import save_tiny

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with a profile for a model and a text of the user's."""
    root = tmp_path_factory.mktemp("checkout")
    for name in ("profiles", "notebooks"):
        (root / name).mkdir()
    (root / "_toc.yml").write_text((ROOT / "_toc.yml").read_text())
    rng = np.random.default_rng(0)
    words = ["layer", "norm", "state", "block", "token", "head", "rank", "angle", "tells"]
    stretches = [" ".join(rng.choice(words, 70)) + "." for _ in range(80)]
    (root / "text.txt").write_text("\n\n".join(stretches))
    save_tiny(root / "tiny-neox")
    (root / "profiles" / "mine.yml").write_text(
        "sizes: smoke\nmodels: [./tiny-neox]\ncorpus: text.txt\n"
    )
    return root


def test_the_ledger_is_measured_and_printed_as_json_and_as_text(checkout: Path) -> None:
    done = layergeom("claims", "--profile", "mine", "--json", cwd=checkout)
    assert done.status == 0, done.err
    printed = json.loads(done.out)
    assert printed["profile"] == "mine"
    assert [row["claim"] for row in printed["claims"]] == [claim.id for claim in CLAIMS]
    assert printed["models"][0]["model"] == "tiny-neox"
    assert sum(printed["counts"].values()) == len(CLAIMS)
    u10 = next(row for row in printed["claims"] if row["claim"] == "U10")
    (judged,) = u10["models"]
    assert judged["ci_low"] <= judged["value"] <= judged["ci_high"]
    again = layergeom("claims", "--profile", "mine", cwd=checkout)
    assert again.status == 0, again.err
    assert f"U10 {u10['verdict'].upper()}  Updates: " in again.out
    assert f"tiny-neox: {judged['verdict']}; {judged['measured']}" in again.out
    assert "24 claims: " in again.out
    assert "Capturing" not in again.err


def test_an_unknown_profile_is_refused_with_the_nearest(checkout: Path) -> None:
    done = layergeom("claims", "--profile", "mien", cwd=checkout)
    assert done.status == 2
    assert "Did you mean 'mine'?" in done.err
    assert "Traceback" not in done.err
