"""The command line: numbers out, and errors for people."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cli import layergeom
from layergeom import cli as commands
from layergeom.errors import UsageError
from layergeom.studies import Session
from reference import pga as reference

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, dict[str, np.ndarray]]:
    arrays = tmp_path_factory.mktemp("arrays") / "pga.npz"
    done = layergeom(
        *("pga", "--model", "smoke-pythia", "--tokens", "150", "--json"),
        *("--save-arrays", str(arrays)),
        cwd=ROOT,
    )
    assert done.status == 0, done.err
    with np.load(arrays) as file:
        return json.loads(done.out), dict(file)


def test_pga_prints_an_object_per_capture_point(report) -> None:
    printed, _ = report
    assert printed["model"] == "smoke-pythia"
    assert [row["layer"] for row in printed["layers"]] == [0, 1, 2, 3, 4, 5, 6, "out"]
    wanted = {"layer", "rho_readout", "null_mean", "null_std", "z", "p", "ci_low", "ci_high"}
    assert all(wanted <= set(row) for row in printed["layers"])
    assert printed["provenance"]["weights"]
    assert printed["provenance"]["versions"]["torch"]


def test_pga_is_of_exactly_the_tokens_asked_for_and_can_be_recomputed(report) -> None:
    printed, arrays = report
    assert arrays["states"].shape == (7, 150, 32)
    assert arrays["out"].shape == (150, 32)
    for row, states in zip(printed["layers"], [*arrays["states"], arrays["out"]], strict=True):
        rho = reference.subspace_pga(
            states, arrays["readout_basis"], arrays["null_subspaces"], count=1
        )
        assert row["rho_readout"] == pytest.approx(rho[0], abs=1e-6)
        assert row["null_mean"] == pytest.approx(np.mean(rho[1]), abs=1e-6)
        assert row["null_std"] == pytest.approx(np.std(rho[1], ddof=1), abs=1e-6)


def test_too_many_pairs_for_the_memory_are_sampled_and_said_to_be(tmp_path: Path) -> None:
    found, path = [], tmp_path / "pga.npz"
    for memory in ("8", "0.001"):
        command = ("pga", "--model", "smoke-pythia", "--tokens", "400", "--memory", memory)
        done = layergeom(*command, "--json", "--save-arrays", str(path), cwd=ROOT)
        assert done.status == 0, done.err
        found.append(json.loads(done.out))
    whole, part = found
    with np.load(path) as file:
        arrays = dict(file)
    groups = [np.flatnonzero(arrays["group"] == g) for g in np.unique(arrays["group"])]
    for row, states in zip(part["layers"], [*arrays["states"], arrays["out"]], strict=True):
        rho = reference.grouped_rho(states.astype(np.float64), arrays["readout_basis"], 1, groups)
        assert row["rho_readout"] == pytest.approx(np.mean(rho), abs=1e-6)
    assert "pairs within groups of tokens are ranked" in part["interval"]
    assert "pairs" not in whole["interval"]
    for row, every in zip(part["layers"], whole["layers"], strict=True):
        (sample,), (all_pairs,) = row["samples"], every["samples"]
        assert sample["pairs"] < all_pairs["pairs"] == 400 * 399 / 2
        assert sample["z_error"] > all_pairs["z_error"] == 0.0
        assert row["ci_high"] - row["ci_low"] > every["ci_high"] - every["ci_low"]


def test_half_precision_is_another_measurement_and_says_so(report) -> None:
    exact, _ = report
    command = ("pga", "--model", "smoke-pythia", "--tokens", "150", "--dtype", "bfloat16")
    done = layergeom(*command, "--device", "cpu", "--json", cwd=ROOT)
    assert done.status == 0, done.err
    half = json.loads(done.out)
    found = [printed["provenance"]["dtype"] for printed in (exact, half)]
    assert found == ["float32", "bfloat16"]
    assert half["provenance"]["device"] == "cpu"
    off = [
        abs(row["rho_readout"] - other["rho_readout"])
        for row, other in zip(half["layers"], exact["layers"], strict=True)
    ]
    assert 0.0 < max(off) < 0.05


def test_the_readout_basis_is_that_of_the_saved_unembedding(report) -> None:
    _, arrays = report
    w, basis = arrays["unembedding"].astype(np.float64), arrays["readout_basis"]
    _, _, right = np.linalg.svd(w, full_matrices=False)
    top = right[: basis.shape[1]]
    np.testing.assert_allclose(basis @ basis.T, top.T @ top, atol=1e-8)


def test_updates_can_be_recomputed_from_the_saved_arrays(tmp_path: Path) -> None:
    path = tmp_path / "updates.npz"
    done = layergeom(
        *("updates", "--model", "smoke-pythia", "--map", "orthogonal", "--tokens", "100"),
        *("--neighbours", "12", "--bank", "16", "--json", "--save-arrays", str(path)),
        cwd=ROOT,
    )
    assert done.status == 0, done.err
    printed = json.loads(done.out)
    with np.load(path) as file:
        arrays = dict(file)
    assert arrays["query_states"].shape == (7, 100, 32)
    assert arrays["neighbours"].shape == (6, 100, 12)
    assert arrays["kl"].shape == (6, 100)
    for block, row in enumerate(printed["layers"]):
        assert row["layer"] == block
        h, above = arrays["query_states"][block : block + 2].astype(np.float64)
        t = arrays["predicted"][block].astype(np.float64)
        r = above - t
        error = np.linalg.norm(r, axis=1) / np.linalg.norm(above, axis=1)
        assert row["rel_err_state"] == pytest.approx(np.median(error), abs=1e-6)
        update = np.linalg.norm(r, axis=1) / np.linalg.norm(above - h, axis=1)
        assert row["rel_err_update"] == pytest.approx(np.median(update), abs=1e-6)
        cosine = (above * t).sum(1) / np.linalg.norm(above, axis=1) / np.linalg.norm(t, axis=1)
        assert row["cos_full_tokenwise"] == pytest.approx(np.median(cosine), abs=1e-6)
        assert row["kl_median"] == pytest.approx(np.median(arrays["kl"][block]), abs=1e-9)
        from scipy.stats import spearmanr

        rho = spearmanr(error, arrays["kl"][block])[0]
        assert row["spearman_relerr_kl"] == pytest.approx(rho, abs=1e-6)


def test_without_json_a_table_is_printed() -> None:
    done = layergeom("pga", "--model", "smoke-pythia", "--tokens", "150", cwd=ROOT)
    assert done.status == 0
    assert "rho_readout" in done.out
    assert "regime at CCR-1" in done.out


USAGE = {
    "unknown model": (["pga", "--model", "smolm2-135m"], "Did you mean 'smollm2-135m'?"),
    "unknown map": (["updates", "--model", "smoke-pythia", "--map", "ortogonal"], "orthogonal"),
    "unknown notebook": (["run", "readout/pga", "--model", "smoke-pythia"], "readout/masking"),
    "misspelt parameter": (
        ["run", "readout/masking", "--model", "smoke-pythia", "-p", "sead=1"],
        "Did you mean 'seed'?",
    ),
    "parameter of another type": (
        ["run", "readout/masking", "--model", "smoke-pythia", "-p", "seed=one"],
        "seed of readout/masking is int",
    ),
    "parameter without a value": (
        ["run", "readout/masking", "--model", "smoke-pythia", "-p", "seed"],
        "name=value",
    ),
    "memory without end": (
        ["pga", "--model", "smoke-pythia", "--memory", "inf"],
        "--memory",
    ),
    "misspelt dtype": (
        ["run", "readout/masking", "--model", "smoke-pythia", "-p", "dtype=bfloat"],
        "Did you mean 'bfloat16'?",
    ),
    "seed below zero": (
        ["run", "readout/masking", "--model", "smoke-pythia", "-p", "seed=-1"],
        "a seed lies between 0 and 4294967295, got -1",
    ),
    "parameter that an option gives": (
        ["run", "readout/masking", "--model", "smoke-pythia", "-p", "model=smoke-mamba"],
        "model is given by --model",
    ),
    "a comparison of a model with itself": (
        ["run", "readout/convergence", "--model", "smoke-pythia", "--model", "smoke-pythia"],
        "smoke-pythia is named twice",
    ),
    "no name": (["pga", "--model", ""], "the model's name is empty"),
    "unknown sizes": (
        ["run", "readout/masking", "--model", "smoke-pythia", "-p", "sizes=tiny"],
        "default, smoke",
    ),
    "unknown profile": (["book", "--profile", "ofline"], "Did you mean 'offline'?"),
    "missing text": (
        ["pga", "--model", "smoke-pythia", "--text", "no-such.txt"],
        "there is no text file no-such.txt",
    ),
    "k as wide as the model": (
        ["pga", "--model", "smoke-pythia", "--readout-dim", "32"],
        "between 1 and 31",
    ),
    "more tokens than there are": (
        ["pga", "--model", "smoke-pythia", "--tokens", "3000", "--samples", "400"],
        "1200000 tokens",
    ),
    "more neighbours than the bank": (
        ["updates", "--model", "smoke-pythia", "--neighbours", "600", "--bank", "16"],
        "600 neighbours",
    ),
    "arrays that are not npz": (
        ["pga", "--model", "smoke-pythia", "--save-arrays", "x.json"],
        "ends in .npz",
    ),
    "too many components": (
        ["pga", "--model", "smoke-pythia", "--tokens", "150", "--ccr", "31"],
        "removing 31 components leaves nothing",
    ),
}


@pytest.mark.parametrize(("arguments", "wanted"), USAGE.values(), ids=list(USAGE))
def test_a_mistake_ends_in_a_short_message_and_status_2(arguments: list[str], wanted: str) -> None:
    done = layergeom(*arguments, cwd=ROOT)
    error = done.err[done.err.index("Error:") :] if "Error:" in done.err else done.err
    assert done.status == 2, done.err
    assert wanted in error
    assert "Traceback" not in done.err
    assert done.out == ""
    assert len(error.strip().splitlines()) <= 2


def test_an_empty_text_says_so(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("  \n")
    done = layergeom(
        *("pga", "--model", "smoke-pythia", "--text", str(tmp_path / "empty.txt")), cwd=ROOT
    )
    assert done.status == 2
    assert "is empty" in done.err


def test_a_short_text_names_both_numbers(tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("A short text of few words. " * 30)
    done = layergeom(
        *("pga", "--model", "smoke-pythia", "--text", str(tmp_path / "short.txt")), cwd=ROOT
    )
    assert done.status == 2
    assert "need 600 tokens" in done.err


@pytest.mark.parametrize("command", ["pga", "updates"])
def test_a_device_that_is_not_there_is_refused_before_stored_results_are_shown(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setattr(Session, "__init__", lambda *_: pytest.fail("a measurement was begun"))
    with pytest.raises(UsageError, match="there is no mps device here"):
        getattr(commands, command)("smoke-pythia", device="mps")


def test_outside_a_checkout_the_notebooks_are_asked_for(tmp_path: Path) -> None:
    done = layergeom("run", "readout/masking", "--model", "smoke-pythia", cwd=tmp_path)
    assert done.status == 2
    assert "not inside a checkout" in done.err


def test_help_shows_examples() -> None:
    for command in ("pga", "updates", "run", "book", "claims"):
        done = layergeom(command, "--help", cwd=ROOT)
        assert done.status == 0
        assert "Example: layergeom" in done.out


def test_a_text_that_cannot_be_read_is_said_before_a_model_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "binary.txt").write_bytes(bytes([0, 159, 146, 150]))
    done = layergeom(
        *("pga", "--model", "smoke-pythia", "--text", str(tmp_path / "binary.txt")), cwd=ROOT
    )
    assert done.status == 2
    assert "is not UTF-8 text (byte 1)" in done.err
    assert "Loading" not in done.err
    assert "Training" not in done.err


def test_numbers_out_of_range_are_refused_at_once() -> None:
    for option, value in (("--readout-dim", "-5"), ("--seed", str(10**22)), ("--tokens", "1")):
        done = layergeom("pga", "--model", "smoke-pythia", option, value, cwd=ROOT)
        assert done.status == 2
        assert option in done.err
        assert "Loading" not in done.err


def test_a_folder_that_cannot_be_written_is_said_before_anything_is_measured() -> None:
    arguments = ("run", "readout/masking", "--model", "smoke-pythia", "--output", "/proc/none")
    done = layergeom(*arguments, cwd=ROOT)
    assert done.status == 1
    assert "cannot create the folder /proc/none" in done.err
    assert "Training" not in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "readout/masking", "--model", "smoke-pythia", "--output", "{folder}"),
        ("pga", "--model", "smoke-pythia", "--save-arrays", "{folder}/readout/x.npz"),
    ],
    ids=["output", "arrays"],
)
def test_a_folder_that_takes_no_files_is_said_before_anything_is_measured(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    # There, and not to be written to by anyone: the administrator may write anywhere else.
    (tmp_path / "readout").symlink_to("/proc/self")
    done = layergeom(*(part.format(folder=tmp_path) for part in arguments), cwd=ROOT)
    assert done.status == 1
    assert "cannot write into the folder /" in done.err
    assert not any(word in done.err for word in ("Training", "PGA", "Traceback"))


def test_a_model_of_short_context_gives_as_many_tokens_as_are_asked_for() -> None:
    done = layergeom(
        *("updates", "--model", "smoke-pythia", "--tokens", "128", "--neighbours", "16", "--json"),
        cwd=ROOT,
    )
    assert done.status == 0, done.err
    assert json.loads(done.out)["tokens"] == 128


def test_too_few_tokens_to_tell_subspaces_apart_have_no_regime() -> None:
    done = layergeom("pga", "--model", "smoke-pythia", "--tokens", "3", "--json", cwd=ROOT)
    assert done.status == 0, done.err
    printed = json.loads(done.out)
    assert [row["z"] for row in printed["layers"]] == [None] * 8
    assert printed["regime"] is None


def test_ctrl_c_ends_with_a_sentence_and_leaves_nothing_half_made(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "layergeom", "pga", "--model", "smoke-pythia"]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "LAYERGEOM_HOME": str(tmp_path)},
        # As at a terminal: where the tests run in the background, the signal is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("Training"):
            break
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.strip().splitlines()[-1].startswith("Interrupted. What was complete is kept")
    assert "Traceback" not in said
    assert list(tmp_path.rglob(".partial-*")) == []
