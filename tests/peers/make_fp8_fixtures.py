"""Writes tests/fixtures/fp8/torch.csv: numbers and what PyTorch's float8 types round them to, as bits.

Usage: build/peers/bin/python tests/peers/make_fp8_fixtures.py
"""
import pathlib

import torch

FORMATS = [(torch.float8_e4m3fn, 448.0), (torch.float8_e5m2, 57344.0)]


def interesting():
    """Every number of both formats, the middles between neighbours and what stands beside them, and some at random."""
    numbers = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 448.0, 464.0, 480.0, 57344.0, 61440.0, 1e30, 1e-30]
    for dtype, _ in FORMATS:
        codes = torch.arange(0, 127, dtype=torch.uint8).view(dtype).float()
        codes = codes[torch.isfinite(codes)].sort().values
        middles = (codes[1:] + codes[:-1]) / 2
        for x in [codes, middles, torch.nextafter(middles, codes[1:]), torch.nextafter(middles, codes[:-1])]:
            numbers += x.tolist()
    generator = torch.Generator().manual_seed(1)
    spread = torch.randn(200, generator=generator) * torch.exp2(torch.randint(-18, 18, (200,), generator=generator).float())
    numbers += spread.tolist()
    return torch.tensor(numbers, dtype=torch.float32)


def main():
    x = interesting()
    columns = [x.view(torch.int32).tolist()]
    for dtype, largest in FORMATS:
        columns.append(x.clamp(-largest, largest).to(dtype).view(torch.uint8).tolist())
    out = pathlib.Path(__file__).parents[1] / "fixtures" / "fp8" / "torch.csv"
    out.parent.mkdir(parents=True, exist_ok=True)
    lines = ["f32,e4m3,e5m2"] + [f"{bits & 0xFFFFFFFF:08x},{a:02x},{b:02x}" for bits, a, b in zip(*columns)]
    out.write_text("\n".join(lines) + "\n")


main()
