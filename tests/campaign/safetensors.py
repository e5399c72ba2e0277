"""Reads the tensors of a .safetensors file whose numbers are f32, without any library."""
import array
import json
import struct
import sys


def read_safetensors(path):
    """{name: array of floats}. A tensor of another type is an error."""
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    tensors = {}
    for name, told in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        if told["dtype"] != "F32":
            raise ValueError(f"{path}: {name} is {told['dtype']}, not F32")
        begin, end = told["data_offsets"]
        numbers = array.array("f", data[8 + size + begin:8 + size + end])
        if sys.byteorder == "big":
            numbers.byteswap()
        tensors[name] = numbers
    return tensors


def norm(numbers):
    return sum(x * x for x in numbers) ** 0.5


def distance(left, right):
    return sum((x - y) ** 2 for x, y in zip(left, right, strict=True)) ** 0.5
