"""Times a step of a Kolmogorov-Arnold layer in torch, without privacy and with the gradient of every row; one JSON line each.

Best of several, wall-clock, two threads, batches of 1024. The layer is d -> m with p cubic B-splines per input and a linear head.
"""
import json
import time

import torch
from torch import nn
from torch.func import functional_call, grad, vmap

BATCH, DEGREE = 1024, 3
SHAPES = [(30, 64, 8), (64, 128, 5)]


class Layer(nn.Module):
    def __init__(self, inputs, units, basis):
        super().__init__()
        width = 2.0 / (basis - DEGREE)
        self.register_buffer("knots", torch.arange(-DEGREE, basis + 1) * width - 1.0)
        self.weight = nn.Parameter(torch.randn(units, inputs * basis) / (inputs * basis) ** 0.5)
        self.head = nn.Linear(units, 2)

    def forward(self, x):
        knots, z = self.knots, x.clamp(-0.999, 0.999).unsqueeze(-1)
        b = ((z >= knots[:-1]) & (z < knots[1:])).to(x.dtype)
        for k in range(1, DEGREE + 1):
            up = (z - knots[: -(k + 1)]) / (knots[k:-1] - knots[: -(k + 1)])
            down = (knots[k + 1 :] - z) / (knots[k + 1 :] - knots[1:-k])
            b = up * b[..., :-1] + down * b[..., 1:]
        return self.head(torch.tanh(b.flatten(-2) @ self.weight.T))


def best(step, runs):
    step()
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def report(scheme, shape, seconds):
    print(json.dumps({"scheme": scheme, "parameters": shape, "seconds": seconds}), flush=True)


torch.set_num_threads(2)
for shape in SHAPES:
    torch.manual_seed(0)
    model = Layer(*shape)
    x, y = torch.rand(BATCH, shape[0]) * 2 - 1, torch.randint(0, 2, (BATCH,))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)

    def plain():
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimiser.step()

    report("torch plain kan", shape, best(plain, 20))
    weights = {name: value.detach() for name, value in model.named_parameters()}
    buffers = dict(model.named_buffers())

    def loss(weights, row, label):
        scores = functional_call(model, (weights, buffers), (row.unsqueeze(0),))
        return nn.functional.cross_entropy(scores, label.unsqueeze(0))

    every = vmap(grad(loss), in_dims=(None, 0, 0))

    def private():
        gradients = every(weights, x, y)
        norms = sum(g.flatten(1).pow(2).sum(1) for g in gradients.values()).sqrt()
        scale = (1.0 / norms).clamp(max=1.0)
        for name, g in gradients.items():
            noisy = torch.einsum("b,b...->...", scale, g) + torch.randn_like(weights[name])
            weights[name] -= 0.1 * noisy / BATCH

    report("torch vmap kan", shape, best(private, 5))
