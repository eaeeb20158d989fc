#!/usr/bin/env python3
"""ResNet-18 with group norm on CIFAR-10 in PyTorch: one model, or a swarm that hears everybody.

    torch_resnet.py FOLDER [--width 32] [--step .03] [--agents 1] [--batch 320] [--epochs 6]

FOLDER holds the images and labels `fabswarm data fetch cifar10` keeps. A step takes 320 clean validation samples and as
many training samples, 40 % of them with wrong labels and all with the weight .5, as FAB's lower level does before it has learned any.
Prints the test accuracy after every epoch of 141 steps.
"""
import argparse
import json

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from PIL import Image
from torch.nn.utils import parameters_to_vector, vector_to_parameters

STEPS, REGULARISATION, GROUPS, RATE, WEIGHT = 141, 0.002, 8, 0.4, 0.5
MISTAKEN_FOR = [6, 3, 4, 1, 2, 7, 0, 5, 9, 8]
Image.MAX_IMAGE_PIXELS = None


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        norm = lambda: nn.GroupNorm(GROUPS, outputs)
        conv = lambda inputs, kernel, stride: nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        self.body = nn.Sequential(conv(inputs, 3, stride), norm(), nn.ReLU(), conv(outputs, 3, 1), norm())
        same = stride == 1 and inputs == outputs
        self.skip = nn.Identity() if same else nn.Sequential(conv(inputs, 1, stride), norm())

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


def network(width):
    layers, inputs = [nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.GroupNorm(GROUPS, width), nn.ReLU()], width
    for stage in range(4):
        for block in range(2):
            layers.append(Block(inputs, width << stage, 2 if stage and not block else 1))
            inputs = width << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder")
    arguments.add_argument("--width", type=int, default=32)
    arguments.add_argument("--step", type=float, default=0.03)
    arguments.add_argument("--epochs", type=int, default=6)
    arguments.add_argument("--agents", type=int, default=1, help="that share the samples, in push-pull on the complete graph")
    arguments.add_argument("--batch", type=int, default=320, help="validation samples, and training samples, a step")
    arguments.add_argument("--steps", type=int, default=STEPS, help="steps an epoch")
    given = arguments.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # One image a row of 1024 pixels.
    pixels = lambda name: np.array(Image.open(f"{given.folder}/{name}.png")).reshape(-1, 32, 32, 3)
    labels = lambda name: torch.tensor(json.load(open(f"{given.folder}/{name}_labels.json")), device=device)
    train, test = np.concatenate([pixels(f"data_batch_{i}") for i in range(1, 6)]), pixels("test_batch")
    mean, deviation = (torch.tensor(of((0, 1, 2)), device=device).float() / 255 for of in (train.mean, train.std))
    images = lambda part: ((torch.tensor(part, device=device).float() / 255 - mean) / deviation).permute(0, 3, 1, 2)
    x, x_test, y, y_test = images(train), images(test), labels("train"), labels("test")

    torch.manual_seed(0)
    model = network(given.width).to(device)
    order = torch.randperm(len(y), device=device)
    validation, training = order[: len(y) // 10], order[len(y) // 10 :]
    wrong = training[torch.rand(len(training), device=device) < RATE]
    y[wrong] = torch.tensor(MISTAKEN_FOR, device=device)[y[wrong]]
    shares = list(zip(validation.tensor_split(given.agents), training.tensor_split(given.agents)))

    def gradient(at, share):
        vector_to_parameters(at, model.parameters())
        rows = torch.cat([part[torch.randint(len(part), (given.batch,), device=device)] for part in share])
        with torch.autocast(device, dtype=torch.bfloat16):
            out = model(x[rows]).float()
        of = lambda part: F.cross_entropy(out[part], y[rows[part]])
        loss = of(slice(given.batch)) + WEIGHT * of(slice(given.batch, None))
        loss = loss + 0.5 * REGULARISATION * sum((p * p).sum() for p in model.parameters())
        return parameters_to_vector(torch.autograd.grad(loss, list(model.parameters())))

    # Push-pull where everybody hears everybody: pull and push are means. With one agent it is gradient descent.
    decisions = parameters_to_vector(model.parameters()).detach().repeat(given.agents, 1)
    gradients = torch.stack([gradient(*each) for each in zip(decisions, shares)])
    trackers = gradients.clone()
    for epoch in range(given.epochs):
        for _ in range(given.steps):
            decisions = decisions.mean(0) - given.step * trackers
            newest = torch.stack([gradient(*each) for each in zip(decisions, shares)])
            trackers, gradients = trackers.mean(0) + newest - gradients, newest
        vector_to_parameters(decisions.mean(0), model.parameters())
        with torch.no_grad(), torch.autocast(device, dtype=torch.bfloat16):
            found = torch.cat([model(part).argmax(1) for part in x_test.split(1000)])
        print(f"epoch {epoch + 1}: {(found == y_test).float().mean().item():.3f}", flush=True)


if __name__ == "__main__":
    main()
