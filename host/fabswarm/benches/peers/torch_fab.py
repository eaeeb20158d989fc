#!/usr/bin/env python3
"""The batched engine beside PyTorch: the same FAB round, gradient pass and mixing, in turns, in one run.

    torch_fab.py ENGINE [--device cpu|cuda] [--jobs mlp,bert,minilm,mixing] [--turns 5]

ENGINE is the `fabswarm` binary, whose `bench large` prints `ms=`. Each turn runs it once and every PyTorch form once, so that
a busy machine slows all of them; the table shows medians over turns.

The round is hyper-cleaning on an MLP 784-256-10, batch 64, ring of agents, L2 of .002: pull y and z, gather the batch, one
gradient of y on validation and weighted training samples, one of z on the weighted training samples, step the samples'
logits, push the trackers.
"""
import argparse
import re
import statistics
import subprocess
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

INPUTS, HIDDEN, CLASSES, BATCH = 784, 256, 10, 64
LAYERS, WIDTH, HEADS, INNER, VOCABULARY, SEQUENCE, TEXTS = 12, 768, 12, 3072, 30522, 128, 4
PENALTY, STEP, STEP_X, REGULARISATION = 1.0, 0.03, 10.0, 0.002
BERT_LAYER = ["qkv", "bqkv", "o", "bo", "g1", "e1", "w1", "b1", "w2", "b2", "g2", "e2"]
SHAPES = [(INPUTS, HIDDEN), (1, HIDDEN), (HIDDEN, CLASSES), (1, CLASSES)]


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def milliseconds(device, work, warm_up=3, repeats=20, longest_s=8.0):
    for _ in range(warm_up):
        work()
    wait(device)
    start, done = time.perf_counter(), 0
    while done < repeats and time.perf_counter() - start < longest_s:
        work()
        done += 1
    wait(device)
    return (time.perf_counter() - start) / done * 1e3


def ring(agents, device):
    weights = torch.zeros(agents, agents, device=device)
    for i in range(agents):
        for j in (i - 1, i, i + 1):
            weights[i, j % agents] += 1 / 3
    return weights


def samples(agents, device):
    data = torch.rand(agents * 2 * BATCH, INPUTS, device=device)
    labels = torch.randint(0, CLASSES, (agents * 2 * BATCH,), device=device)
    rows = torch.arange(agents * 2 * BATCH, device=device).view(agents, 2 * BATCH)
    return data, labels, rows


def mlp_loop(agents, device):
    """One nn.Module an agent, one agent after the other: how most code is written."""
    make = lambda: nn.Sequential(nn.Linear(INPUTS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES)).to(device)
    y, z = [make() for _ in range(agents)], [make() for _ in range(agents)]
    data, labels, rows = samples(agents, device)
    psi = torch.zeros(len(data), device=device)
    zeros = lambda models: [[torch.zeros_like(p) for p in m.parameters()] for m in models]
    state = {"ty": zeros(y), "tz": zeros(z), "dy": zeros(y), "dz": zeros(z)}
    heard = [[i, (i + 1) % agents, (i - 1) % agents] for i in range(agents)]

    def pull(models, trackers):
        with torch.no_grad():
            old = [[p.detach().clone() for p in m.parameters()] for m in models]
            for i, model in enumerate(models):
                for k, p in enumerate(model.parameters()):
                    p.copy_(sum(old[j][k] / 3 for j in heard[i]) - STEP * trackers[i][k])

    def push(trackers, fresh, last):
        return [[sum(trackers[j][k] / 3 for j in heard[i]) + fresh[i][k] - last[i][k] for k in range(4)] for i in range(agents)]

    def work():
        pull(y, state["ty"])
        pull(z, state["tz"])
        dy, dz = [], []
        for i in range(agents):
            x, label, train = data[rows[i]], labels[rows[i]], rows[i, BATCH:]
            weight = torch.sigmoid(psi[train])
            py, pz = list(y[i].parameters()), list(z[i].parameters())
            ly = F.cross_entropy(y[i](x), label, reduction="none")
            lz = F.cross_entropy(z[i](x[BATCH:]), label[BATCH:], reduction="none")
            norm = lambda ps: 0.5 * REGULARISATION * sum((p * p).sum() for p in ps)
            fy = ly[:BATCH].mean() + PENALTY * ((weight * ly[BATCH:]).mean() + norm(py))
            fz = PENALTY * ((weight * lz).mean() + norm(pz))
            dy.append(torch.autograd.grad(fy, py))
            dz.append(torch.autograd.grad(fz, pz))
            with torch.no_grad():
                psi[train] -= STEP_X * PENALTY / BATCH * weight * (1 - weight) * (ly[BATCH:] - lz)
        state["ty"] = push(state["ty"], dy, state["dy"])
        state["tz"] = push(state["tz"], dz, state["dz"])
        state["dy"], state["dz"] = dy, dz

    return work


def mlp_batched(agents, device, compiles=False):
    """All agents in one tensor, torch.bmm, static buffers: can be captured in a CUDA graph."""
    make = lambda scale: [torch.randn(agents, *shape, device=device) * scale for shape in SHAPES]
    v = [p.requires_grad_() for p in make(0.03) + make(0.03)]
    t, d = make(0) + make(0), make(0) + make(0)
    data, labels, rows = samples(agents, device)
    psi, mixing = torch.zeros(len(data), device=device), ring(agents, device)
    forward = lambda p, x: torch.baddbmm(p[3], torch.relu(torch.baddbmm(p[1], x, p[0])), p[2])
    entropy = lambda out, label: F.cross_entropy(out.reshape(-1, CLASSES), label.reshape(-1), reduction="none").view(label.shape)
    train = rows[:, BATCH:]

    def losses(v, data, labels, psi):
        x, label, weight = data[rows.view(-1)].view(agents, 2 * BATCH, INPUTS), labels[rows], torch.sigmoid(psi[train])
        ly, lz = entropy(forward(v[:4], x), label), entropy(forward(v[4:], x[:, BATCH:]), label[:, BATCH:])
        total = ly[:, :BATCH].sum() / BATCH + PENALTY * (weight * (ly[:, BATCH:] + lz)).sum() / BATCH
        return total, STEP_X * PENALTY / BATCH * weight * (1 - weight) * (ly[:, BATCH:] - lz)

    pull, push = mixing_steps(agents)
    if compiles:
        losses, pull, push = (torch.compile(part, dynamic=False) for part in (losses, pull, push))

    def work():
        with torch.no_grad():
            torch._foreach_copy_(v, pull(mixing, v, t))
        total, change = losses(v, data, labels, psi)
        gradient = torch.autograd.grad(total, v)
        with torch.no_grad():
            trackers, gradient = push(mixing, v, t, gradient, d)
            torch._foreach_copy_(t, trackers)
            torch._foreach_copy_(d, gradient)
            psi[train] -= change

    return work


def mixing_steps(agents):
    """Pull and push of every tensor in a list, each a matrix product over agents."""
    def pull(weights, v, t):
        return [torch.addmm(b.view(agents, -1), weights, a.view(agents, -1), beta=-STEP).view_as(a) for a, b in zip(v, t)]

    def push(weights, v, t, gradient, last):
        fresh = [g.add(p, alpha=PENALTY * REGULARISATION) for g, p in zip(gradient, v)]
        return [(weights @ b.view(agents, -1)).view_as(b) + g - e for b, g, e in zip(t, fresh, last)], fresh

    return pull, push


def captured(work):
    """`work` as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    # The graph holds addresses only: `work` must outlive it, or its tensors are given to somebody else.
    return lambda keep=work: graph.replay()


def bert_loop(agents, precision):
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(num_labels=2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    models = [BertForSequenceClassification(config).cuda().train() for _ in range(agents)]
    ids = torch.randint(0, VOCABULARY, (agents, TEXTS, SEQUENCE), device="cuda")
    labels = torch.randint(0, 2, (agents, TEXTS), device="cuda")
    mask = torch.ones(TEXTS, SEQUENCE, dtype=torch.long, device="cuda")

    def work():
        for i, model in enumerate(models):
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=precision == "bf16"):
                loss = model(input_ids=ids[i], attention_mask=mask, labels=labels[i]).loss
            torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)

    return work


def bert_weights(agents, device="cuda"):
    make = lambda *shape: (torch.randn(agents, *shape, device=device) * 0.02).requires_grad_()
    ones = lambda *shape: torch.ones(agents, *shape, device=device).requires_grad_()
    w = dict(words=make(VOCABULARY, WIDTH), positions=make(512, WIDTH), types=make(2, WIDTH), g=ones(1, WIDTH), b=make(1, WIDTH))
    w |= dict(pool=make(WIDTH, WIDTH), pool_b=make(1, WIDTH), head=make(WIDTH, 2), head_b=make(1, 2))
    for i in range(LAYERS):
        tensors = [make(WIDTH, 3 * WIDTH), make(1, 3 * WIDTH), make(WIDTH, WIDTH), make(1, WIDTH), ones(1, WIDTH), make(1, WIDTH)]
        tensors += [make(WIDTH, INNER), make(1, INNER), make(INNER, WIDTH), make(1, WIDTH), ones(1, WIDTH), make(1, WIDTH)]
        w |= {f"{i}.{name}": tensor for name, tensor in zip(BERT_LAYER, tensors)}
    return w


def bert_losses(agents, precision, compiles, device="cuda"):
    """The loss of every text of every agent: layers alone compiled, the whole, or nothing."""
    kind = torch.bfloat16 if precision == "bf16" else torch.float32
    offset = (torch.arange(agents, device=device) * VOCABULARY)[:, None]
    norm = lambda x, g, b: F.layer_norm(x.float(), (WIDTH,), eps=1e-12) * g + b
    linear = lambda x, m, b: torch.baddbmm(b.to(kind), x.to(kind), m.to(kind))

    def layer(x, qkv, bqkv, o, bo, g1, e1, w1, b1, w2, b2, g2, e2):
        q = linear(x, qkv, bqkv).view(-1, SEQUENCE, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q[0], q[1], q[2]).transpose(1, 2).reshape(x.shape)
        x = norm(x + linear(a, o, bo), g1, e1)
        return norm(x + linear(F.gelu(linear(x, w1, b1)), w2, b2), g2, e2)

    if compiles == "layers":
        layer = torch.compile(layer, dynamic=False)

    def losses(w, ids, labels):
        texts = labels.shape[1]
        x = F.embedding((ids + offset).reshape(-1), w["words"].view(agents * VOCABULARY, WIDTH)).view(agents, texts, SEQUENCE, WIDTH)
        x = x + w["positions"][:, None, :SEQUENCE] + w["types"][:, None, :1]
        x = norm(x.view(agents, texts * SEQUENCE, WIDTH), w["g"], w["b"])
        for i in range(LAYERS):
            x = layer(x, *[w[f"{i}.{name}"] for name in BERT_LAYER])
        p = torch.tanh(linear(x.view(agents, texts, SEQUENCE, WIDTH)[:, :, 0], w["pool"], w["pool_b"]))
        out = linear(p, w["head"], w["head_b"]).float()
        return F.cross_entropy(out.reshape(-1, 2), labels.reshape(-1), reduction="none").view(agents, texts)

    return torch.compile(losses, dynamic=False) if compiles == "whole" else losses


def bert_texts(agents, texts, device="cuda"):
    ids = torch.randint(0, VOCABULARY, (agents, texts * SEQUENCE), device=device)
    return ids, torch.randint(0, 2, (agents, texts), device=device)


def bert_batched(agents, precision, compiles, device="cuda"):
    """One gradient pass."""
    losses = bert_losses(agents, precision, compiles, device)
    w, texts = bert_weights(agents, device), bert_texts(agents, TEXTS, device)
    return lambda: torch.autograd.grad(losses(w, *texts).sum() / TEXTS, list(w.values()))


def bert_round(agents, precision):
    """A whole FAB round: pull, gradients of y on eight texts and of z on four, logits of samples, push."""
    y, z, losses = bert_weights(agents), bert_weights(agents), bert_losses(agents, precision, "whole")
    v = [*y.values(), *z.values()]
    t, d = ([torch.zeros_like(p) for p in v] for _ in range(2))
    (ids, labels), weights, psi = bert_texts(agents, 2 * TEXTS), ring(agents, "cuda"), torch.zeros(agents, TEXTS, device="cuda")
    pull, push = (torch.compile(part, dynamic=False) for part in mixing_steps(agents))
    half = TEXTS * SEQUENCE

    def work():
        with torch.no_grad():
            torch._foreach_copy_(v, pull(weights, v, t))
        weight = torch.sigmoid(psi)
        ly, lz = losses(y, ids, labels), losses(z, ids[:, half:], labels[:, TEXTS:])
        total = ly[:, :TEXTS].sum() / TEXTS + PENALTY * (weight * (ly[:, TEXTS:] + lz)).sum() / TEXTS
        gradient = torch.autograd.grad(total, v)
        with torch.no_grad():
            trackers, gradient = push(weights, v, t, gradient, d)
            torch._foreach_copy_(t, trackers)
            torch._foreach_copy_(d, gradient)
            psi.sub_(STEP_X * PENALTY / TEXTS * weight * (1 - weight) * (ly[:, TEXTS:] - lz))

    return work


def mixing(agents, words, compiles):
    weights = ring(agents, "cuda")
    v, t, d, last = (torch.rand(agents, words, device="cuda") for _ in range(4))
    pull, push = (lambda a, v, t: a @ v - STEP * t), (lambda a, t, d, last: a @ t + d - last)
    if compiles:
        pull, push = torch.compile(pull), torch.compile(push)
    return lambda: (pull(weights, v, t), push(weights, t, d, last))


def engine(program, job, device, precision, agents, rounds):
    """Milliseconds of the first number the batched engine prints: without choosing new samples, as PyTorch here."""
    flags = ["--device", device, "--agents", str(agents), "--rounds", str(rounds)] + (["--precision", precision] if device == "cuda" else [])
    out = subprocess.run([program, "bench", "large", job, *flags], capture_output=True, text=True, check=True).stdout
    print(out.strip(), flush=True)
    return float(re.search(r" ms=([0-9.]+)", out)[1])


def table(title, ours, theirs):
    print(f"\n{title}\n| who | ms, median of turns | times the batched engine |\n|---|---|---|")
    mine = statistics.median(ours)
    print(f"| fabswarm | {mine:.3f} | 1.00 |")
    for name, times in theirs.items():
        print(f"| PyTorch {torch.__version__}, {name} | {statistics.median(times):.3f} | {statistics.median(times) / mine:.2f} |", flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("engine")
    arguments.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    arguments.add_argument("--jobs", default="mlp")
    arguments.add_argument("--agents", type=int, default=10)
    arguments.add_argument("--turns", type=int, default=5)
    given = arguments.parse_args()
    agents, device = given.agents, given.device
    jobs = given.jobs.split(",")
    if "mlp" in jobs:
        for precision in ["cpu"] if device == "cpu" else ["tf32", "f32"]:
            torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
            forms = {"loop over agents": mlp_loop(agents, device), "batched": mlp_batched(agents, device)}
            if device == "cuda":
                forms = {"torch.compile, CUDA graph": captured(mlp_batched(agents, device, True)), "CUDA graph": captured(mlp_batched(agents, device))} | forms
            ours, theirs = [], {name: [] for name in forms}
            for _ in range(given.turns):
                ours.append(engine(given.engine, "mlp", device, precision, agents, 60 if device == "cpu" else 400))
                for name, work in forms.items():
                    theirs[name].append(milliseconds(device, work, repeats=20 if device == "cpu" or "loop" in name else 200))
            table(f"MLP round, {agents} agents, {precision}", ours, theirs)
    if "bert" in jobs:
        for precision in ["tf32", "bf16"]:
            torch.backends.cuda.matmul.allow_tf32 = True
            ours = [engine(given.engine, "bert", device, precision, agents, 10)]
            theirs = {}
            forms = {
                "torch.compile, CUDA graph": lambda: captured(bert_batched(agents, precision, "whole")),
                "torch.compile of layers": lambda: bert_batched(agents, precision, "layers"),
                "batched": lambda: bert_batched(agents, precision, None),
            }
            forms["loop over agents"] = lambda: bert_loop(agents, precision)
            for name, make in forms.items():
                theirs[name] = [milliseconds(device, make(), warm_up=3, repeats=8)]
                torch.cuda.empty_cache()
            ours.append(engine(given.engine, "bert", device, precision, agents, 10))
            table(f"BERT-base gradient pass, {agents} agents, batch {TEXTS}, {SEQUENCE} tokens, {precision}", ours, theirs)
            ms = milliseconds(device, captured(bert_round(agents, precision)), warm_up=3, repeats=8)
            print(f"BERT-base FAB round, {precision}: PyTorch, torch.compile, CUDA graph {ms:.3f} ms (fabswarm: its second line above)", flush=True)
            torch.cuda.empty_cache()
    if "minilm" in jobs:
        globals().update(LAYERS=6, WIDTH=384, INNER=1536)
        torch.backends.cuda.matmul.allow_tf32 = False
        one_by_one = [bert_batched(1, "f32", None, device) for _ in range(agents)]
        forms = {"batched": bert_batched(agents, "f32", None, device), "loop over agents": lambda: [work() for work in one_by_one]}
        ours, theirs = [], {name: [] for name in forms}
        for _ in range(given.turns):
            ours.append(engine(given.engine, "minilm", device, "f32", agents, 5))
            for name, work in forms.items():
                theirs[name].append(milliseconds(device, work, warm_up=1, repeats=5, longest_s=30.0))
        table(f"MiniLM-L6 gradient pass, {agents} agents, batch {TEXTS}, {SEQUENCE} tokens, f32", ours, theirs)
    if "mixing" in jobs:
        words = 109_489_152
        command = [given.engine, "bench", "large", "mixing", "--device", "cuda", "--agents", str(agents), "--words", str(words)]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        print(f"\nMixing {words} words per agent\n{out.strip()}")
        for name, compiles in [("PyTorch", False), ("torch.compile", True)]:
            ms = milliseconds(device, mixing(agents, words, compiles), repeats=10)
            print(f"{name}: {7 * agents * words * 4 / ms / 1e9:.2f} TB/s of the bytes a fused kernel moves")
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
