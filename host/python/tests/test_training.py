"""Large agents are trained as the command trains them."""

import csv
import os
import subprocess

import numpy
import pytest

import fabswarm

KEYS = {"data": "sample", "model": "softmax", "agents": 3, "batch": 16, "epochs": 2}


def test_a_training_has_the_numbers_of_the_command(tmp_path):
    rows = []
    run = fabswarm.train(device="cpu", out=tmp_path / "out", progress=rows.append, **KEYS)
    assert [row["round"] for row in rows] == list(run.metrics["round"])
    flags = [word for name, value in KEYS.items() for word in (f"--{name}", str(value))]
    command = [os.environ["FABSWARM"], "train", "--device", "cpu", "--out", tmp_path / "by-command", *flags]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with open(tmp_path / "by-command/metrics.csv") as table:
        rows = list(csv.DictReader(table))
    for name in rows[0]:
        expected = [float(row[name] or "nan") for row in rows]
        numpy.testing.assert_array_equal(run.metrics[name], expected, err_msg=name)
    assert run.summary["test_accuracy"] == run.metrics["test_accuracy"][-1] and run.complaint is None
    assert (run.folder / "model.safetensors").read_bytes() == (tmp_path / "by-command/model.safetensors").read_bytes()
    assert fabswarm.load(run.folder).summary == run.summary
    assert run.model.keys() == {"head.weight", "head.bias"} and all(tensor.dtype == "float32" for tensor in run.model.values())
    weights = run.weights
    assert list(weights) == ["sample", "agent", "given_label", "true_label", "weight"] and (weights["weight"] > 0).all()


def test_arrays_are_data(tmp_path):
    draw = numpy.random.default_rng(1)
    labels = draw.integers(0, 3, 300)
    inputs = draw.normal(size=(300, 4)) + labels[:, None]
    validation = numpy.arange(300) % 10 == 0
    data = {"x_train": inputs[:200], "y_train": labels[:200], "x_test": inputs[200:], "y_test": labels[200:], "validation": validation[:200]}
    run = fabswarm.train(device="cpu", out=tmp_path / "out", **{**KEYS, "data": data, "agents": 2})
    assert len(run.weights["weight"]) == 180


def test_evaluations_come_one_by_one(tmp_path):
    evaluations = fabswarm.evaluations(device="cpu", out=tmp_path / "out", **{**KEYS, "epochs": 50})
    first, second = next(evaluations), next(evaluations)
    assert first["round"] == 0 and second["round"] > 0 and second["seconds"] > 0
    run = evaluations.finish()
    assert run.summary["stopped_because"] == "interrupted" and run.summary["rounds"] == second["round"]


def test_what_cannot_be_trained_is_refused(tmp_path):
    for keys, message in [
        ({"device": "tpu"}, 'device = "tpu" is not a valid choice\nhelp: choose auto, cpu or cuda'),
        ({"data": "missing"}, "missing"),
        ({"rounds": 5}, "rounds: there is no such argument\nhelp: did you mean `epochs`?"),
    ]:
        with pytest.raises(fabswarm.ScenarioError, match=message):
            fabswarm.train(**{"device": "cpu", **KEYS, "out": tmp_path / "out", **keys})
