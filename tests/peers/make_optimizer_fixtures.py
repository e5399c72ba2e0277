"""Writes tests/fixtures/optimizers/: what PyTorch's optimizers make of the model of fixtures/models/llama.

  NAME.safetensors  twenty steps on the model's own batch, with clipping: losses [20] before each step, and
                    param.<parameter> at the end; the settings are in its metadata

Matrices decay, vectors do not. Numbers are computed in float64 from the fp32 weights and rounded to fp32; the script
checks that PyTorch itself, in plain fp32, is within half of the tests' tolerance. Lion, which PyTorch does not have, is
written out from its paper. torch.optim.Muon rounds its iteration to bfloat16, which moves weights by about 1e-3 in
twenty steps: here the same iteration runs in the precision of the model.
"""
import json
import pathlib
import sys

import torch
import torch.optim._muon as torch_muon
from safetensors.torch import load_file
from torch import nn

from make_model_fixtures import FIXTURES, Float64Steps, float64_twin, write
from model_peer import TOLERANCE, deviations, forward_backward, load_model

OUT = FIXTURES.parent / "optimizers"
STEPS, CLIP, DECAY = 20, 1.0, 0.1


def newton_schulz(gradient, coefficients, steps, eps):
    """torch's iteration, step by step, in the gradient's own precision."""
    a, b, c = coefficients
    tall = gradient.size(0) > gradient.size(1)
    x = gradient.T if tall else gradient
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            (beta1, beta2), lr = group["betas"], group["lr"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                direction = (beta1 * m + (1 - beta1) * p.grad).sign()
                p.sub_(lr * (direction + group["weight_decay"] * p))
                m.mul_(beta2).add_(p.grad, alpha=1 - beta2)


def in_block(name):
    return ".layers." in name


def by_dims(make):
    """One optimizer, in which matrices decay."""
    def build(named):
        return [make([{"params": [p for _, p in named if p.dim() >= 2], "weight_decay": DECAY},
                      {"params": [p for _, p in named if p.dim() < 2], "weight_decay": 0.0}])]
    return build


def muon(lr, **settings):
    def build(named):
        matrices = [p for n, p in named if p.dim() >= 2 and in_block(n)]
        rest = [(n, p) for n, p in named if p.dim() < 2 or not in_block(n)]
        adamw = by_dims(lambda groups: torch.optim.AdamW(groups, lr=lr * 0.5, betas=(0.9, 0.95), eps=1e-3))(rest)
        return [torch.optim.Muon(matrices, lr=lr, weight_decay=DECAY, **settings), *adamw]
    return build


# Lion moves every element by its whole learning rate whichever way a gradient within rounding of 0 points: hence a small
# one.
# Name: how to build it, and the keys of [optimizer] that say the same.
CASES = {
    "adamw": (by_dims(lambda g: torch.optim.AdamW(g, lr=1e-2, betas=(0.9, 0.95), eps=1e-3)),
              dict(name="adamw", lr=1e-2, eps=1e-3)),
    "sgd": (by_dims(lambda g: torch.optim.SGD(g, lr=3e-2)), dict(name="sgd", lr=3e-2, momentum=0.0)),
    "sgd_momentum": (by_dims(lambda g: torch.optim.SGD(g, lr=3e-2, momentum=0.9)), dict(name="sgd", lr=3e-2)),
    "sgd_nesterov": (by_dims(lambda g: torch.optim.SGD(g, lr=3e-2, momentum=0.8, nesterov=True)),
                     dict(name="sgd", lr=3e-2, momentum=0.8, nesterov=True)),
    "lion": (by_dims(lambda g: Lion(g, lr=1e-5)), dict(name="lion", lr=1e-5)),
    "adafactor": (by_dims(lambda g: torch.optim.Adafactor(g, lr=1e-2)), dict(name="adafactor", lr=1e-2)),
    "muon": (muon(1e-2), dict(name="muon", lr=1e-2, eps=1e-3, adamw_lr_ratio=0.5)),
    "muon_match_rms": (muon(1e-2, adjust_lr_fn="match_rms_adamw", nesterov=False, momentum=0.9, ns_steps=4),
                       dict(name="muon", lr=1e-2, eps=1e-3, adamw_lr_ratio=0.5, adjust_lr="match_rms_adamw",
                            nesterov=False, momentum=0.9, ns_steps=4)),
}


def train(model, build, input_ids, targets):
    named = list(model.named_parameters())
    optimizers = build(named)
    losses = []
    for _ in range(STEPS):
        losses.append(forward_backward(model, input_ids, targets)["loss"])
        nn.utils.clip_grad_norm_([p for _, p in named], CLIP)
        for optimizer in optimizers:
            optimizer.step()
    return {"losses": torch.cat(losses), **{"param." + n: p.detach().clone() for n, p in named}}


def main():
    torch_muon._zeropower_via_newtonschulz = newton_schulz
    batch = load_file(FIXTURES / "llama" / "expected.safetensors")
    for name in sys.argv[1:] or CASES:
        build, settings = CASES[name]
        with Float64Steps():
            truth = train(float64_twin(load_model(FIXTURES / "llama")), build, batch["input_ids"], batch["targets"])
        found = deviations(train(load_model(FIXTURES / "llama"), build, batch["input_ids"], batch["targets"]), truth)
        worst = max(found.items(), key=lambda item: item[1])
        print(f"{name:15} losses {truth['losses'][0]:.4f} to {truth['losses'][-1]:.4f}  "
              f"plain fp32 is off by at most {worst[1]:.1e} ({worst[0]})")
        assert worst[1] < TOLERANCE / 2, worst
        settings = dict(weight_decay=DECAY, clip=CLIP, **settings)
        write(OUT / f"{name}.safetensors", truth, metadata={"optimizer": json.dumps(settings)})


if __name__ == "__main__":
    main()
