"""The map of two models' layers against each other."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from layergeom import report


def test_layers_of_the_first_model_run_to_the_right_and_of_the_second_upwards() -> None:
    first, second = ["H_0", "H_1", "H_2", "H_3", "H_4", "out"], ["H_0", "H_1", "H_2", "out"]
    rows = [
        {"first_point": a, "second_point": b, "space": space, "value": 0.1 * i + 0.01 * j + extra}
        for i, a in enumerate(first)
        for j, b in enumerate(second)
        for space, extra in (("full", 0.3), ("readout", 0.0))
    ]
    _, axis = plt.subplots()
    mesh = report.agreement_map(axis, pd.DataFrame(rows), "readout", ("one", "other"), (-0.1, 0.6))
    expected = 0.1 * np.arange(6) + 0.01 * np.arange(4)[:, None]
    np.testing.assert_allclose(mesh.get_array().reshape(4, 6), expected)
    assert (mesh.norm.vmin, mesh.norm.vmax) == (-0.1, 0.6)
    assert axis.get_xlabel() == "layer of one"
    assert axis.get_ylabel() == "layer of other"
    # Ticks stand in the middle of their cells; the last is the point after the norm.
    assert [text.get_text() for text in axis.get_xticklabels()] == ["0", "2", "out"]
    np.testing.assert_allclose(axis.get_yticks(), [0.5, 1.5, 3.5])
    plt.close()
