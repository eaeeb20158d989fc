"""Reads the answers of runs as a user would: a sweep and sample weights in pandas, a trained model in NumPy.

Usage: answers.py FABSWARM FOLDER
"""

import gzip
import json
import pathlib
import re
import subprocess
import sys

import numpy
import pandas

program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
here = pathlib.Path(__file__).resolve().parent


def fabswarm(*arguments):
    subprocess.run([program, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def idx(name):
    """An array of the bundled sample."""
    raw = gzip.decompress((here / "../../large/src/data/sample" / f"{name}-ubyte.gz").read_bytes())
    dimensions = raw[3]
    shape = numpy.frombuffer(raw, ">u4", dimensions, 4)
    return numpy.frombuffer(raw, numpy.uint8, offset=4 + 4 * dimensions).reshape(shape)


def sweep():
    fabswarm("sweep", "run", "--seed", "1..3", "--iid-loss", "0,0.5", "--rounds", "40", "--error-below", "0", "--out", "sweep")
    table = pandas.read_parquet(folder / "sweep/metrics.parquet")
    assert set(table.groupby(["seed", "faults_iid_loss"]).size()) == {41}, "every round of every run"
    medians = table[table["round"] == 40].groupby("faults_iid_loss")["error"].median()
    assert len(medians) == 2 and (medians < 1).all(), medians
    runs = pandas.read_parquet(folder / "sweep/runs.parquet")
    assert runs["final_relative_error"].tolist() == table[table["round"] == 40]["error"].tolist()
    print(f"sweep: {len(runs)} runs, {len(table)} rows")


def weights_and_model():
    fabswarm("train", "--device", "cpu", "--data", "sample", "--model", "mlp", "--model-width", "16", "--agents", "3",
             "--batch", "16", "--epochs", "5", "--out", "train")
    summary = json.loads((folder / "train/summary.json").read_text())
    weights = pandas.read_parquet(folder / "train/weights.parquet")
    is_wrong = weights["given_label"] != weights["true_label"]
    ranks = weights["weight"].rank()
    wrong, right = is_wrong.sum(), (~is_wrong).sum()
    auc = 1 - (ranks[is_wrong].sum() - wrong * (wrong + 1) / 2) / (wrong * right)
    assert abs(auc - summary["cleaning_auc"]) < 1e-9, (auc, summary["cleaning_auc"])

    page = (here / "../../../docs/files.md").read_text()
    loader = re.search(r"```python\n(.*?)```", page, re.S).group(1)
    names = {}
    exec(loader, names)
    images, labels = idx("t10k-images-idx3"), idx("t10k-labels-idx1")
    accuracy = names["accuracy"](folder / "train/model.safetensors", images[..., None], labels)
    assert abs(accuracy - summary["test_accuracy"]) < 1e-9, (accuracy, summary["test_accuracy"])
    print(f"train: AUC {auc:.3f} from weights.parquet, accuracy {accuracy:.3f} from model.safetensors")


def own_data():
    random = numpy.random.default_rng(1)
    labels = random.integers(0, 3, 300)
    x = random.normal(labels[:, None], 0.3, (300, 4))
    table = pandas.DataFrame(x, columns=list("abcd")).assign(label=labels)
    table.to_parquet(folder / "own.parquet")
    table.to_csv(folder / "own.csv", index=False)
    numpy.savez(folder / "own.npz", x_train=x[:240], y_train=labels[:240], x_test=x[240:], y_test=labels[240:])
    accuracies = []
    for name in ["own.parquet", "own.csv", "own.npz"]:
        out = name.replace(".", "-")
        fabswarm("train", "--device", "cpu", "--data", name, "--model", "softmax", "--agents", "3", "--batch", "16", "--quiet",
                 "--epochs", "20", "--corruption-rate", "0.2", "--out", out)
        accuracies.append(json.loads((folder / out / "summary.json").read_text())["test_accuracy"])
    assert min(accuracies) > 0.7 and len(set(accuracies)) == 1, accuracies

    chain = random.random((3, 3))
    numpy.savez(folder / "chain.npz", P=chain / chain.sum(1, keepdims=True), phi=random.random((3, 2)), r=random.random((4, 3)))
    fabswarm("run", "--policy-evaluation-file", "chain.npz", "--agents", "4", "--policy-evaluation-states", "3",
             "--policy-evaluation-features", "2", "--out", "chain")
    x = numpy.load(folder / "chain/answer.npz")["x"]
    assert x.shape == (4, 2), x.shape
    print(f"own data: test accuracies {accuracies}, x of a problem from npz {x.mean(0)}")


sweep()
weights_and_model()
own_data()
