"""The axis of training steps and the heat map above it."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from layergeom import report

STEPS = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 400, 600, 800, 1000]


def heat(steps: list[int]) -> pd.DataFrame:
    values = np.linspace(-3.0, 5.0, 3 * len(steps)).reshape(3, -1)
    return pd.DataFrame(values, index=["H_1", "H_2", "out"], columns=steps)


def test_steps_are_spaced_by_their_logarithm_with_room_for_the_first() -> None:
    places = report.step_place([0, 1, 3, 7])
    np.testing.assert_allclose(places, [0, 1, 2, 3])


def test_ticks_are_measured_steps_that_leave_each_other_room() -> None:
    _, axis = plt.subplots()
    report.step_axis(axis, pd.Series(STEPS))
    labels = [text.get_text() for text in axis.get_xticklabels()]
    assert labels[0] == "0"
    assert labels[-1] == "1,000"
    assert "800" not in labels
    steps = [int(label.replace(",", "")) for label in labels]
    assert set(steps) <= set(STEPS)
    np.testing.assert_allclose(axis.get_xticks(), report.step_place(steps))
    plt.close()


def test_a_cell_reaches_half_way_to_its_neighbours_and_white_is_zero() -> None:
    _, axis = plt.subplots()
    mesh = report.z_heat_map(axis, heat([0, 1, 3]))
    np.testing.assert_allclose(mesh.get_coordinates()[0, :, 0], [-0.5, 0.5, 1.5, 2.5])
    assert mesh.norm(0.0) == pytest.approx(0.5)
    assert mesh.norm.vmax == 5.0
    assert [text.get_text() for text in axis.get_yticklabels()] == ["1", "2", "out"]
    red, _, blue, _ = mesh.cmap(mesh.norm(-4.0))
    assert red > blue
    plt.close()


def test_a_gap_is_drawn_as_a_gap_and_one_step_is_enough() -> None:
    _, axis = plt.subplots()
    table = heat([8])
    table.iloc[1, 0] = np.nan
    mesh = report.z_heat_map(axis, table)
    assert np.ma.getmaskarray(mesh.get_array()).ravel().tolist() == [False, True, False]
    plt.close()


def test_a_dot_marks_each_uncertain_cell() -> None:
    _, axis = plt.subplots()
    report.mark_uncertain(axis, heat([0, 1, 3]) < -2.5)
    np.testing.assert_allclose(axis.lines[0].get_xdata(), [0])
    np.testing.assert_allclose(axis.lines[0].get_ydata(), [0])
    plt.close()
