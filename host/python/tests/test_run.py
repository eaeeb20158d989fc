"""Runs in Python are those of the command: the same numbers, the same words."""

import csv
import os
import signal
import subprocess
import threading
import time
import warnings

import numpy
import pandas
import pyarrow
import pytest

import fabswarm


def command(*arguments):
    program = os.environ["FABSWARM"]
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "scenario.toml"
    path.write_text("version = 1\nseed = 7\n[swarm]\nagents = 6\nrounds = 60\n[stop]\nerror_below = 0.0\n")
    return path


def test_a_run_has_the_numbers_of_the_command(scenario, tmp_path):
    run = fabswarm.run(scenario, iid_loss=0.3, agents=8)
    folder = tmp_path / "by-command"
    assert command("run", scenario, "--iid-loss", "0.3", "--agents", "8", "--out", folder).returncode == 0
    with open(folder / "metrics.csv") as table:
        rows = list(csv.DictReader(table))
    assert list(run.metrics) == list(rows[0])
    for name, column in run.metrics.items():
        assert column.tolist() == [float(row[name]) for row in rows], name
    answer = numpy.load(folder / "answer.npz")
    for name in "xyz":
        assert run.answer[name].dtype == numpy.float32 and (run.answer[name] == answer[name]).all()
    assert run.summary["agents"] == 8 and run.summary["copies_lost"] > 0
    assert run.complaint is None and run.check() is run and run.folder is None


def test_metrics_go_to_pandas_and_arrow_without_a_copy(scenario):
    metrics = fabswarm.run(scenario).metrics
    frame = metrics.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and frame["distance_to_solution"].dtype == numpy.float64 and len(frame) == 61
    assert frame["round"].tolist() == list(range(61))
    table = metrics.to_arrow()
    address = metrics["distance_to_solution"].__array_interface__["data"][0]
    assert table["distance_to_solution"].chunk(0).buffers()[1].address == address, "the same memory"
    assert pyarrow.table(metrics).equals(table), "by the Arrow stream that other libraries read too"


def test_a_run_leaves_the_folder_of_the_command(scenario, tmp_path):
    run = fabswarm.run(scenario, out=tmp_path / "out")
    assert run.folder == tmp_path / "out"
    names = {path.name for path in run.folder.iterdir()}
    assert {"scenario.toml", "metrics.csv", "answer.npz", "summary.json", "run.mcap", "report.html"} <= names
    with pytest.raises(fabswarm.ScenarioError, match="is not empty\nhelp: "):
        fabswarm.run(scenario, out=tmp_path / "out")


def test_errors_have_the_words_of_the_command(scenario, tmp_path):
    for keys, flags in [
        ({"agents": 0}, ["--agents", "0"]),
        ({"topology": "rign"}, ["--topology", "rign"]),
        ({"eta_x": "fast"}, ["--eta-x", "fast"]),
        ({"algorithm": "ledger", "precision": "f64"}, ["--algorithm", "ledger", "--precision", "f64"]),
    ]:
        with pytest.raises(fabswarm.ScenarioError) as refused:
            fabswarm.run(scenario, **keys)
        # Where the command names a flag, Python names its argument.
        said = command("run", scenario, *flags).stderr.replace(f"error: {flags[0]}:", f"error: {next(iter(keys))}:")
        assert f"error: {refused.value}\n" == said
    scenario.write_text("version = 1\n[swarm]\nagnets = 6\n")
    with pytest.raises(fabswarm.ScenarioError, match=r"scenario.toml:3: there is no key `swarm.agnets`\nhelp: did you mean"):
        fabswarm.run(scenario)
    with pytest.raises(fabswarm.ScenarioError, match="agnets: there is no such argument\nhelp: did you mean `agents`?"):
        fabswarm.run(agnets=3)
    with pytest.raises(fabswarm.ScenarioError, match="cannot read the scenario .*\nhelp: "):
        fabswarm.run(tmp_path / "missing.toml")
    with pytest.raises(fabswarm.ScenarioError, match="in Python all agents run in this process\nhelp: .*fabswarm.load"):
        fabswarm.run(boards="native")
    with pytest.raises(TypeError, match="agents = .* is no number"):
        fabswarm.run(agents=[1, 2])


def test_a_run_that_misses_its_goal_is_returned_with_the_reason():
    keys = {"rounds": 5, "error_below": 1e-9}
    run = fabswarm.run(**keys)
    assert len(run.metrics["round"]) == 6 and run.summary["stopped_because"] == "max-rounds"
    with pytest.raises(fabswarm.RunError, match="after all 5 rounds.*\nhelp: "):
        run.check()
    diverged = fabswarm.run(eta_x=50, eta_y=50, eta_z=50)
    assert diverged.summary["stopped_because"] == "diverged" and "begin with the default" in diverged.complaint


def test_notes_are_warnings(scenario):
    with pytest.warns(UserWarning, match="without effect in this run: network.edge_probability") as notes:
        fabswarm.run(scenario, topology="complete", edge_probability=0.7)
    assert notes[0].filename == __file__


def test_numbers_of_numpy_are_numbers():
    assert fabswarm.run(agents=numpy.int64(5), rounds=numpy.int32(3), iid_loss=numpy.float32(0.5)).summary["agents"] == 5


def test_rounds_come_one_by_one(scenario):
    rounds = fabswarm.rounds(scenario, answers=True)
    seen = []
    for row in rounds:
        seen.append(row["round"])
        assert row["answer"]["x"].shape[0] == 6
        if row["round"] == 9:
            break
    assert seen == list(range(10))
    run = rounds.finish()
    assert run.summary["stopped_because"] == "interrupted" and run.summary["rounds"] == 9
    assert run.metrics["round"].tolist() == list(range(run.summary["rounds"] + 1))
    assert rounds.finish() is run and list(rounds) == []


def test_all_rounds_are_those_of_a_whole_run(scenario):
    rounds = fabswarm.rounds(scenario)
    errors = [row["distance_to_solution"] for row in rounds]
    assert errors == fabswarm.run(scenario).metrics["distance_to_solution"].tolist()
    assert rounds.finish().summary["stopped_because"] == "max-rounds"


def test_ctrl_c_ends_a_run_and_completes_its_folder(tmp_path):
    def press():
        while not (tmp_path / "out/metrics.csv.part").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        fabswarm.run(agents=20, rounds=10**9, error_below=0.0, out=tmp_path / "out")
    thread.join()
    assert '"interrupted"' in (tmp_path / "out/summary.json").read_text()


def test_other_threads_go_on_during_a_run():
    count, done = 0, threading.Event()

    def work():
        nonlocal count
        while not done.is_set():
            count += 1

    thread = threading.Thread(target=work)
    thread.start()
    begun = count
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fabswarm.run(agents=20, rounds=60, error_below=0.0)
    done.set()
    thread.join()
    assert count > begun + 100


def test_a_folder_is_loaded_as_the_run_it_holds(scenario, tmp_path):
    run = fabswarm.run(scenario, out=tmp_path / "out", iid_loss=0.2)
    loaded = fabswarm.load(tmp_path / "out")
    assert list(loaded.metrics) == list(run.metrics) and loaded.metrics["round"].dtype == numpy.int64
    for name, column in run.metrics.items():
        assert (loaded.metrics[name] == column).all(), name
    assert all((loaded.answer[name] == run.answer[name]).all() for name in "xyz")
    assert loaded.summary == run.summary and loaded.scenario == run.scenario
    # What a killed run leaves.
    (tmp_path / "out/summary.json").unlink()
    os.rename(tmp_path / "out/metrics.csv", tmp_path / "out/metrics.csv.part")
    killed = fabswarm.load(tmp_path / "out")
    assert killed.summary is None and (killed.metrics["distance_to_solution"] == run.metrics["distance_to_solution"]).all()
    with pytest.raises(fabswarm.ScenarioError, match="is no run folder.*\nhelp: "):
        fabswarm.load(tmp_path / "elsewhere")


def test_lists_are_swept(scenario):
    runs = fabswarm.sweep(scenario, seed=range(1, 3), iid_loss=[0, 0.5], rounds=5)
    assert [keys for keys, _ in runs] == [{"seed": seed, "iid_loss": loss} for seed in (1, 2) for loss in (0, 0.5)]
    assert [run.summary["seed"] for _, run in runs] == [1, 1, 2, 2]
    assert runs[1][1].summary["copies_lost"] > runs[0][1].summary["copies_lost"] == 0


def test_arrays_take_the_place_of_files(scenario, tmp_path):
    ring = numpy.roll(numpy.eye(6), 1, axis=1)
    run = fabswarm.run(scenario, topology="recorded", graphs=ring)
    file = tmp_path / "ring.csv"
    file.write_text("sender,receiver\n" + "".join(f"{(agent + 1) % 6},{agent}\n" for agent in range(6)))
    same = fabswarm.run(scenario, topology="recorded", graphs=file)
    assert (run.answer["x"] == same.answer["x"]).all()
    in_turn = fabswarm.run(scenario, topology="recorded", graphs=numpy.stack([ring, ring.T]))
    assert (in_turn.answer["x"] != run.answer["x"]).any()
    chain = {"P": numpy.full((4, 4), 0.25), "phi": numpy.eye(4)[:, :2], "r": numpy.arange(24.0).reshape(6, 4)}
    assert fabswarm.run(scenario, policy_evaluation_file=chain).answer["y"].shape == (6, 4)
