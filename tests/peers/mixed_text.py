"""Documents on which tokenizers are compared: the sample of tests/fixtures/tokenizer (prose in many languages), source
code, and made up ones of what split patterns, normalizers, merges and added tokens care about. Over 2 MB together.
"""

import gzip
import random
import struct
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests/fixtures/tokenizer"

# Added tokens of the files that tokenizer_kinds.py makes, and others that look like them.
MARKS = ["<s>", "</s>", "<unk>", "<|endoftext|>", "<|pad|>", "<|wide|>", "<0x0A>", "▁", "▁▁", "keepword", "Kapitän", "THE", "ing"]
TRICKY = list("aeinrst AB'’.,!-_\n\r\t\v 0123456789()|/") + [
    "'s", "'LL", "'ſ", "  ", "\r\n", "the", " and", "ing", "é", "中文", "한국", "ελ", "дом", "\u00a0", "\u0085", "\u2028",
    "\u3000", "\u180e", "\u200d", "\u0301", "½", "Ⅷ", "٣", "😀", "👍🏽", "\U0002ebf0", "\U0001e030", "==", "->", "    ",
    "HTTPServer", "camelCase", "ǅ", "ʰ", "あア", "。", "…", "।", "１２３", "ﬁ", "Å", "e\u0301\u0323", "\u1100\u1161\u11a8", "\u0915\u094d\u0937",
]
# Valid UTF-8 that looks broken, or that nobody types: the ends of ranges, noncharacters, marks of byte order, private use.
STRANGE = [chr(c) for c in [*range(0x20), *range(0x7F, 0xA1), 0xAD, 0x378, 0x61C, 0xD7FF, 0xE000, 0xF8FF, 0xFDD0, 0xFEFF, 0xFFF9,
                            0xFFFD, 0xFFFE, 0xFFFF, 0x1FFFE, 0xE0001, 0xE0100, 0xF0000, 0x10FFFD, 0x10FFFF]]


def sample_documents():
    data, at, out = gzip.decompress((FIXTURES / "sample.gz").read_bytes()), 0, []
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at)
        out.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return out


def made_up_documents(rng, marks):
    """Mostly what is tricky, some characters of all planes, added tokens with and without space around, broken bytes."""
    for _ in range(9000):
        parts = []
        for _ in range(rng.randint(0, 40)):
            kind = rng.random()
            if kind < 0.7:
                parts.append(rng.choice(TRICKY).encode())
            elif kind < 0.8:
                parts.append((rng.choice(["", " ", "  ", "\n", "a"]) + rng.choice(marks) + rng.choice(["", " ", "\t ", "b"])).encode())
            elif kind < 0.85:
                parts.append(rng.choice(STRANGE).encode())
            elif kind < 0.98:
                code = rng.choice([rng.randrange(0x3000), rng.randrange(0x10000), rng.randrange(0x110000)])
                parts.append(chr(code).encode("utf-8", "surrogatepass"))
            else:
                parts.append(bytes([rng.randrange(256)]))
        yield b"".join(parts)


def long_documents(rng):
    """Runs that no pattern cuts, white space without end, and every strange character beside every kind."""
    for c in "a .1é中😀'\n\t▁":
        yield (c * 5000).encode()
    for _ in range(20):
        runs = [rng.choice(" \t\n\r\u00a0\u3000") * rng.randint(1, 3000) + rng.choice(["x", "é", "1", "."]) for _ in range(8)]
        yield "".join(runs).encode()
    yield "".join(f"{left}{c}{right}" for c in STRANGE for left in ["", "a", " ", "1", "."] for right in ["", "b", " "]).encode()


def source_code():
    for path in sorted((ROOT / "src/text").rglob("*.cpp")) + sorted((ROOT / "tests/peers").glob("*.py")):
        yield path.read_bytes()


def mixed_documents(seed, marks=()):
    rng = random.Random(seed)
    return [*sample_documents(), *made_up_documents(rng, MARKS + list(marks)), *long_documents(rng), *source_code()]
