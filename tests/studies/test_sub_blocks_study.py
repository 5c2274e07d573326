"""Shares along what the parts add, token by token, against plain hooks and cosines."""

from typing import Any

import numpy as np
import pytest
import torch

from layergeom.studies import Session, SubBlocksStudy
from reference import bootstrap
from tiny_models import DEPTH, WIDTH

BANK = 9


@pytest.fixture(scope="module")
def study(tiny_settings: Any) -> SubBlocksStudy:
    return SubBlocksStudy(Session(tiny_settings))


def plain_outputs(study: SubBlocksStudy, block: int) -> dict[str, np.ndarray]:
    """What attention and MLP of a block put out for the query sequences."""
    layer = study.session.model.network.gpt_neox.layers[block]
    found = {}

    def keep(part: str) -> Any:
        def hook(_m: Any, _a: Any, out: Any) -> None:
            found[part] = (out[0] if isinstance(out, tuple) else out).numpy().astype(np.float64)

        return hook

    handles = [
        layer.attention.register_forward_hook(keep("mixer")),
        layer.mlp.register_forward_hook(keep("mlp")),
    ]
    ids = torch.from_numpy(study.updates.fits.states.tokens[BANK:])
    with torch.no_grad():
        study.session.model.network(ids, use_cache=False)
    for handle in handles:
        handle.remove()
    return found


def test_shares_are_medians_of_squared_cosines(study: SubBlocksStudy) -> None:
    table, fits = study.table(), study.updates.fits
    sequences, positions = fits.query_places
    assert len(table) == DEPTH * 4
    for block in range(DEPTH):
        outputs = plain_outputs(study, block)
        h, full = (
            fits.states.at(f"H_{layer}")[BANK:][sequences, positions].astype(np.float64)
            for layer in (block, block + 1)
        )
        t = fits.predicted(block, "orthogonal").astype(np.float64)
        for of, vectors in (("residual", full - t), ("update", t - h)):
            for part, output in outputs.items():
                along = output[sequences, positions]
                cosines = np.sum(vectors * along, axis=1) / (
                    np.linalg.norm(vectors, axis=1) * np.linalg.norm(along, axis=1)
                )
                rows = table[
                    (table["block"] == block) & (table["part"] == part) & (table["of"] == of)
                ]
                assert rows["value"].item() == pytest.approx(np.median(cosines**2), rel=1e-4)
                drawn = bootstrap.medians(cosines**2, sequences, study.updates.decomposed_draws)
                ends = np.percentile(drawn, [2.5, 97.5])
                found = [rows["ci_low"].item(), rows["ci_high"].item()]
                np.testing.assert_allclose(found, ends, rtol=1e-4)


def test_chance_is_one_direction_of_the_width(study: SubBlocksStudy) -> None:
    assert study.chance == 1 / WIDTH
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 20_000, WIDTH))
    cosines = np.sum(a * b, axis=1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
    assert np.mean(cosines**2) == pytest.approx(study.chance, rel=0.05)


def test_stored_shares_need_no_model(
    study: SubBlocksStudy, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    study.table()
    monkeypatch.setattr(SubBlocksStudy, "_measure", None)
    again = SubBlocksStudy(session)
    assert again.table().equals(study.table())
    assert "model" not in session.__dict__
