"""Reads what runs leave behind with the tools of others: `cargo xtask test formats`.

usage: formats.py FABSWARM FOLDER
"""

import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas
from mcap.exceptions import EndOfFile
from mcap.reader import make_reader
from mcap.stream_reader import StreamReader

FABSWARM, FOLDER = sys.argv[1], Path(sys.argv[2])


def run(name, *arguments):
    folder = FOLDER / name
    command = [FABSWARM, "run", *arguments, "--out", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def whole_run():
    """All messages of a complete log, by topic; they say what the other files say."""
    folder = run("whole", "--iid-loss", "0.2", "--crashes", "3@100+20")
    topics = {}
    with open(folder / "run.mcap", "rb") as file:
        reader = make_reader(file, validate_crcs=True)
        counts = reader.get_summary().statistics.channel_message_counts
        names = {number: channel.topic for number, channel in reader.get_summary().channels.items()}
        for schema, channel, message in reader.iter_messages():
            if channel.topic.startswith("/frames/"):
                assert schema is None and channel.message_encoding == "fabswarm.frame"
                topics.setdefault(channel.topic, []).append((message.sequence, message.data))
                continue
            assert schema.encoding == "jsonschema" and json.loads(schema.data)["title"] == schema.name
            topics.setdefault(channel.topic, []).append(json.loads(message.data))
    assert {names[number]: count for number, count in counts.items()} == {
        topic: len(messages) for topic, messages in topics.items()
    }
    summary = json.loads((folder / "summary.json").read_text())
    table = rows(folder / "metrics.csv")
    assert [row["round"] for row in topics["/metrics"]] == [int(row["round"]) for row in table]
    for logged, row in zip(topics["/metrics"], table):
        assert logged["distance_to_solution"] == float(row["distance_to_solution"]), (logged, row)
    last = topics["/metrics"][-1]
    assert last["round"] == summary["rounds"]
    assert last["frames"]["sent"] == summary["frames_sent"]
    lost = sum(count for name, count in last["frames"].items() if name.startswith("lost"))
    assert lost == summary["copies_lost"]
    assert [view["round"] for view in topics["/swarm"]] == [row["round"] for row in topics["/metrics"]]
    assert all(len(view["agents"]["digest"]) == summary["agents"] for view in topics["/swarm"])
    down = {view["round"] for view in topics["/swarm"] if view["agents"]["condition"][3] == "d"}
    assert down == set(range(101, 121)), down
    messages = [line["message"] for line in topics["/log"]]
    assert messages == ["is down", "takes part again"], messages
    assert topics["/end"][0]["summary"] == summary
    frames = {topic: sent for topic, sent in topics.items() if topic.startswith("/frames/")}
    assert sum(map(len, frames.values())) == summary["frames_sent"]
    rounds = {number for number, _ in frames["/frames/3"]}
    assert rounds == {*range(1, 101), *range(121, summary["rounds"] + 1)}, rounds
    assert all(len(scene["entities"][0]["spheres"]) == summary["agents"] for scene in topics["/scene"])
    assert topics["/run"][0]["scenario"] == (folder / "scenario.toml").read_text()
    print(f"run.mcap: {sum(counts.values())} messages, as in metrics.csv and summary.json")

    table = pandas.read_csv(folder / "metrics.csv")
    assert table.dtypes["round"].kind in "iu" and table.dtypes["distance_to_solution"].kind == "f", table.dtypes
    assert len(table) == len(topics["/metrics"])
    print(f"metrics.csv: {len(table)} rows of {', '.join(table.columns)}")


def killed_run():
    """A killed run can be read up to a second before its end."""
    folder = FOLDER / "killed"
    command = [FABSWARM, "run", "--rounds", "4000000000", "--error-below", "0", "--out", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    log, table = folder / "run.mcap.part", folder / "metrics.csv.part"
    # Until both were flushed several times; then what was written before the first of these is old. Frames fill the log sooner.
    sizes = set()
    deadline = time.monotonic() + 60
    while len(sizes) < 4:
        assert time.monotonic() < deadline, "the files do not grow"
        sizes.add(min(file.stat().st_size if file.exists() else 0 for file in (log, table)))
        time.sleep(0.05)
    killed = time.time()
    process.send_signal(signal.SIGKILL)
    process.wait()
    messages, topics = [], {}
    with open(log, "rb") as file:
        try:
            for record in StreamReader(file, validate_crcs=True).records:
                if type(record).__name__ == "Channel":
                    topics[record.id] = record.topic
                elif type(record).__name__ == "Message":
                    messages.append(record)
        except EndOfFile:
            pass
    assert messages, "nothing was left"
    gap = killed - messages[-1].log_time / 1e9
    # The last message may be a frame, which is not JSON.
    last = [json.loads(record.data)["round"] for record in messages if topics[record.channel_id] == "/metrics"][-1]
    assert rows(table)[-1]["round"], "a whole line"
    print(f"killed run: readable until {gap:.2f} s before the kill (round {last})")
    report = [FABSWARM, "report", str(folder)]
    subprocess.run(report, check=True, stdout=subprocess.DEVNULL)
    assert "has not ended" in (folder / "report.html").read_text()


whole_run()
killed_run()
