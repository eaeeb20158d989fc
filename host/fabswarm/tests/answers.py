"""Reads the answers of runs as a user would: a sweep and sample weights in pandas, a trained model in NumPy and PyTorch.

Usage: answers.py FABSWARM FOLDER [PYTHON]

PYTHON is an interpreter that has PyTorch. Without it the lines for PyTorch are not run, and the output says so.
"""

import gzip
import json
import pathlib
import re
import subprocess
import sys

import numpy
import pandas
import safetensors.numpy

program, folder, *torch_python = sys.argv[1], pathlib.Path(sys.argv[2]), *sys.argv[3:]
here = pathlib.Path(__file__).resolve().parent


def fabswarm(*arguments):
    subprocess.run([program, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def idx(name):
    """An array of the bundled sample."""
    raw = gzip.decompress((here / "../../data/src/sample" / f"{name}-ubyte.gz").read_bytes())
    dimensions = raw[3]
    shape = numpy.frombuffer(raw, ">u4", dimensions, 4)
    return numpy.frombuffer(raw, numpy.uint8, offset=4 + 4 * dimensions).reshape(shape)


def sweep():
    fabswarm("sweep", "run", "--seed", "1..3", "--iid-loss", "0,0.5", "--rounds", "40", "--error-below", "0", "--out", "sweep")
    table = pandas.read_csv(folder / "sweep/metrics.csv")
    assert set(table.groupby(["seed", "faults_iid_loss"]).size()) == {41}, "every round of every run"
    medians = table[table["round"] == 40].groupby("faults_iid_loss")["distance_to_solution"].median()
    assert len(medians) == 2 and (medians < 1).all(), medians
    runs = pandas.read_csv(folder / "sweep/runs.csv")
    assert runs["distance_to_solution"].tolist() == table[table["round"] == 40]["distance_to_solution"].tolist()
    print(f"sweep: {len(runs)} runs, {len(table)} rows")


def weights_and_model():
    fabswarm("train", "--device", "cpu", "--data", "sample", "--model", "mlp", "--model-width", "16", "--agents", "3",
             "--batch", "16", "--epochs", "5", "--out", "train")
    summary = json.loads((folder / "train/summary.json").read_text())
    weights = pandas.read_csv(folder / "train/weights.csv")
    is_wrong = weights["given_label"] != weights["true_label"]
    ranks = weights["weight"].rank()
    wrong, right = is_wrong.sum(), (~is_wrong).sum()
    auc = 1 - (ranks[is_wrong].sum() - wrong * (wrong + 1) / 2) / (wrong * right)
    assert abs(auc - summary["cleaning_auc"]) < 1e-9, (auc, summary["cleaning_auc"])

    page = (here / "../../../docs/files.md").read_text()
    with_numpy, with_torch = re.findall(r"```python\n(.*?)```", page, re.S)
    model, images, labels = folder / "train/model.safetensors", idx("t10k-images-idx3")[..., None], idx("t10k-labels-idx1")
    names = {}
    exec(with_numpy, names)
    accuracy = names["accuracy"](model, images, labels)
    assert abs(accuracy - summary["test_accuracy"]) < 1e-9, (accuracy, summary["test_accuracy"])
    print(f"train: AUC {auc:.3f} from weights.csv, accuracy {accuracy:.3f} from model.safetensors")
    if not torch_python:
        print("train: there is no PyTorch here, so its lines were NOT run")
        return
    numpy.savez(folder / "test.npz", images=images, labels=labels)
    lines = f"""{with_torch}
import numpy
test = numpy.load({str(folder / "test.npz")!r})
print(torch.__version__, accuracy({str(model)!r}, test["images"], test["labels"]))
"""
    version, found = subprocess.run([*torch_python, "-c", lines], check=True, capture_output=True, text=True).stdout.split()
    assert abs(float(found) - summary["test_accuracy"]) < 1e-6, (found, summary["test_accuracy"])
    print(f"train: accuracy {float(found):.3f} from model.safetensors in PyTorch {version}")


def small_agents(table, x, labels):
    """The same samples, in every format, give the same run to the last bit."""
    arrays = {"x_train": x[:240], "y_train": labels[:240], "x_test": x[240:], "y_test": labels[240:]}
    safetensors.numpy.save_file({name: numpy.ascontiguousarray(array) for name, array in arrays.items()}, folder / "own.safetensors")
    for problem in ["hyper-tuning", "hyper-cleaning"]:
        runs = set()
        for kind in ["csv", "npz", "safetensors"]:
            out = f"{problem}-{kind}"
            fabswarm("run", "--problem", problem, f"--{problem}-file", f"own.{kind}", "--agents", "4", "--rounds", "30",
                     "--error-below", "0", "--quiet", "--out", out,
                     *(["--hyper-cleaning-trust-labels", "true"] if problem == "hyper-cleaning" else []))
            runs.add((folder / out / "metrics.csv").read_text())
        assert len(runs) == 1, problem
    # Readings of sensors, one of which is wrong.
    random = numpy.random.default_rng(2)
    place, number = random.uniform(-1, 1, (240, 2)), numpy.arange(240)
    readings = {"one": 1.0, "p": place[:, 0], "q": place[:, 1], "agent": number % 3, "sensor": number // 3 % 4}
    readings = pandas.DataFrame(readings).assign(calibrated=number % 5 == 0, split=numpy.where(number < 200, "train", "test"))
    wrong = (readings["agent"] == 1) & (readings["sensor"] == 2) & ~readings["calibrated"] & (readings["split"] == "train")
    readings["value"] = 1 + place @ [2, -1] + 3 * wrong + 0.05 * random.normal(size=240)
    readings["faulty"] = wrong
    readings.astype({"calibrated": int, "faulty": int}).to_csv(folder / "readings.csv", index=False)
    fabswarm("run", "--problem", "sensor-trust", "--sensor-trust-file", "readings.csv", "--agents", "3", "--rounds", "300",
             "--error-below", "0", "--quiet", "--out", "readings")
    task = json.loads((folder / "readings/summary.json").read_text())["task"]
    assert task["auc_of_finding_faulty_sensors"] == 1 and task["test_rms_error"] < 0.2, task
    print("own data: small agents run the same from CSV, npz and safetensors")


def own_data():
    random = numpy.random.default_rng(1)
    labels = random.integers(0, 3, 300)
    x = random.normal(labels[:, None], 0.3, (300, 4))
    table = pandas.DataFrame(x, columns=list("abcd")).assign(label=labels)
    table.to_csv(folder / "own.csv", index=False)
    numpy.savez(folder / "own.npz", x_train=x[:240], y_train=labels[:240], x_test=x[240:], y_test=labels[240:])
    accuracies = []
    for name in ["own.csv", "own.npz"]:
        out = name.replace(".", "-")
        fabswarm("train", "--device", "cpu", "--data", name, "--model", "softmax", "--agents", "3", "--batch", "16", "--quiet",
                 "--epochs", "20", "--corruption-rate", "0.2", "--out", out)
        accuracies.append(json.loads((folder / out / "summary.json").read_text())["test_accuracy"])
    assert min(accuracies) > 0.7 and len(set(accuracies)) == 1, accuracies
    small_agents(table, x, labels)

    chain = random.random((3, 3))
    numpy.savez(folder / "chain.npz", P=chain / chain.sum(1, keepdims=True), phi=random.random((3, 2)), r=random.random((4, 3)))
    fabswarm("run", "--policy-evaluation-file", "chain.npz", "--agents", "4", "--out", "chain")
    x = numpy.load(folder / "chain/answer.npz")["x"]
    assert x.shape == (4, 2), x.shape
    print(f"own data: test accuracies {accuracies}, x of a problem from npz {x.mean(0)}")


sweep()
weights_and_model()
own_data()
