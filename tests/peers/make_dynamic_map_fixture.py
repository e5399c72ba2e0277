"""Writes tests/fixtures/dynamic_maps/bitsandbytes.csv: the numbers of bitsandbytes' dynamic 8-bit types, as bits of f32.

    build/peers/bin/python -m pip install --no-deps bitsandbytes
    build/peers/bin/python tests/peers/make_dynamic_map_fixture.py
"""

import pathlib
import struct

import bitsandbytes
from bitsandbytes.functional import create_dynamic_map

OUT = pathlib.Path(__file__).parent.parent / "fixtures" / "dynamic_maps" / "bitsandbytes.csv"


def bits(number):
    return struct.unpack("<I", struct.pack("<f", number))[0]


def main():
    columns = [create_dynamic_map(signed=signed).tolist() for signed in (True, False)]
    lines = [f"# bitsandbytes {bitsandbytes.__version__}", "signed,positive"]
    lines += [f"{bits(a):08x},{bits(b):08x}" for a, b in zip(*columns, strict=True)]
    OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
