"""Ours stays many times faster than the plain way: ratios of one run, never seconds.

The bounds are far below what the benchmarks measure, for machines differ and others use them.
"""

from pathlib import Path

import pandas as pd
import pytest

from benchmarks import local_maps, rank_statistics, replacement
from benchmarks.timing import once
from layergeom import geometry
from layergeom.errors import NotMeasurableError
from layergeom.report import read_benchmarks, rounded_benchmarks
from tiny_models import tiny_tokenizer


def test_rank_statistics() -> None:
    row = rank_statistics.pga(tokens=600, width=192, k=48, subspaces=24)
    assert row.ratio > 8
    assert row.difference < 1e-6


def test_rank_statistics_of_many_tokens_cost_no_more_than_their_pairs() -> None:
    seconds = []
    for tokens in (500, 2000):
        made = rank_statistics.case(tokens, 192, 48, 8)
        run = [
            once(lambda made=made: geometry.subspace_pga(made.states, made.readout, made.null))
            for _ in range(3)
        ]
        seconds.append(min(run))
    # 16 times the pairs; a sort would add a factor of 1.2.
    assert seconds[1] < 40 * seconds[0]


def test_local_maps() -> None:
    rows = {
        row.measure.split()[2].rstrip(","): row
        for row in local_maps.local_maps(tokens=64, bank=512, width=384)
    }
    assert rows["orthogonal"].ratio > 6
    assert rows["low_rank"].ratio > 3
    assert max(row.difference for row in rows.values()) < 1e-6


def test_replacement(tmp_path: Path) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    config = AutoConfig.for_model(
        "llama",
        vocab_size=512,
        hidden_size=256,
        num_hidden_layers=12,
        num_attention_heads=4,
        num_key_value_heads=4,
        intermediate_size=1024,
        pad_token_id=None,
    )
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    row = replacement.replacement(str(tmp_path), sequences=1, blocks=4)
    assert row.ratio > 1.2
    assert row.difference < 1e-5


def test_the_page_says_how_to_measure_where_nothing_is_measured(tmp_path: Path) -> None:
    with pytest.raises(NotMeasurableError, match="make bench"):
        read_benchmarks(tmp_path)


def test_what_was_measured_is_read_back_and_rounded(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {
            "measure": ["one", "other"],
            "threads": [2, 1],
            "seconds": [0.12345, 3.0],
            "plain_seconds": [12.0, float("nan")],
            "asked": ["40 x", ""],
            "difference": [3e-8, float("nan")],
            "note": ["", "a note"],
            "peak_gib": [0.5, 1.25],
            "ratio": [97.2, float("nan")],
        }
    )
    table.to_csv(tmp_path / "table.csv", index=False)
    pd.DataFrame({"size": ["k"], "value": [5], "seconds": [1.0]}).to_csv(tmp_path / "scaling.csv")
    (tmp_path / "machine.json").write_text('{"cores": 2, "processor": "one"}')
    found = read_benchmarks(tmp_path)
    assert found.where == "2 cores of one"
    assert rounded_benchmarks(found.table).to_dict("records") == [
        {
            "measure": "one",
            "threads": 2,
            "ours (s)": "0.123",
            "plain way (s)": "12",
            "ratio": "97.2",
            "asked": "40 x",
            "largest difference": "3e-08",
            "memory (GiB)": "0.50",
        },
        {
            "measure": "other",
            "threads": 1,
            "ours (s)": "3",
            "plain way (s)": "",
            "ratio": "",
            "asked": "",
            "largest difference": "",
            "memory (GiB)": "1.25",
        },
    ]
