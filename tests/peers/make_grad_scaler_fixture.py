"""Writes tests/fixtures/grad_scaler/torch.csv: the scales of torch.amp.GradScaler over steps with planted overflows.

    build/peers/bin/python tests/peers/make_grad_scaler_fixture.py
"""

import pathlib
import random

import torch

OUT = pathlib.Path(__file__).parent.parent / "fixtures" / "grad_scaler" / "torch.csv"
# init_scale, growth_factor, backoff_factor, growth_interval
SETTINGS = [(65536.0, 2.0, 0.5, 4), (1024.0, 1.7, 0.3, 3), (2.0**126, 2.0, 0.5, 2)]


def main():
    random.seed(7)
    lines = [f"# torch {torch.__version__}", "setting,initial,growth_factor,backoff,growth_interval,overflow,used,next,good_steps"]
    for i, (initial, growth, backoff, interval) in enumerate(SETTINGS):
        scaler = torch.amp.GradScaler("cpu", init_scale=initial, growth_factor=growth, backoff_factor=backoff, growth_interval=interval)
        weight = torch.nn.Parameter(torch.ones(3))
        optimizer = torch.optim.SGD([weight], lr=0.0)
        for _ in range(40):
            overflow = random.random() < 0.2
            optimizer.zero_grad()
            used = scaler.scale(torch.ones(())).item()
            weight.grad = torch.full((3,), float("inf") if overflow else 1.0)
            scaler.step(optimizer)
            scaler.update()
            lines.append(f"{i},{initial!r},{growth!r},{backoff!r},{interval},{int(overflow)},{used!r},{scaler.get_scale()!r},"
                         f"{scaler._get_growth_tracker()}")
    OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
