#!/usr/bin/env python3
"""Draws docs/images/intervals.svg from bench/results/held_out.txt, what `sextant validate --hold-out` printed:
the share of measurements that each interval should hold, and the share that it held."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTH, HEIGHT, LEFT, TOP, SIDE = 420, 420, 60, 30, 320


def main():
    text = (ROOT / "bench/results/held_out.txt").read_text()
    points = [(float(a) / 100, float(b) / 100)
              for a, b in re.findall(r"(\d+) % interval: \d+ of \d+ rows inside \(([\d.]+) %\)", text)]
    if not points:
        raise SystemExit("bench/results/held_out.txt: no line '… % interval: … rows inside'")

    def x(share):
        return LEFT + SIDE * share

    def y(share):
        return TOP + SIDE * (1 - share)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<rect x="{LEFT}" y="{TOP}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#999"/>',
           f'<line x1="{x(0)}" y1="{y(0)}" x2="{x(1)}" y2="{y(1)}" stroke="#999" stroke-dasharray="4 4"/>']
    for tick in (0, 0.2, 0.4, 0.6, 0.8, 1):
        out.append(f'<text x="{x(tick)}" y="{y(0) + 18}" text-anchor="middle">{tick:.0%}</text>')
        out.append(f'<text x="{x(0) - 8}" y="{y(tick) + 4}" text-anchor="end">{tick:.0%}</text>')
    out.append('<polyline fill="none" stroke="#1f5fa8" stroke-width="2" points="' +
               " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points) + '"/>')
    out += [f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="4" fill="#1f5fa8"/>' for a, b in points]
    out.append(f'<text x="{x(0.5)}" y="{y(0) + 38}" text-anchor="middle">share that the interval should hold</text>')
    out.append(f'<text x="16" y="{y(0.5)}" text-anchor="middle" transform="rotate(-90 16 {y(0.5)})">'
               'share of held-out runs inside</text></svg>')
    (ROOT / "docs/images/intervals.svg").write_text("\n".join(out) + "\n")


main()
