#!/usr/bin/env python3
"""Compares our ids with those of Hugging Face `tokenizers`, on the sample and on fresh random text.

    tests/peers/tokenizer_peer.py [--bench build/release/bench/bench_tokenizer] [--seed N] [TOKENIZER_JSON ...]

Without tokenizer files it takes those of tests/fixtures/tokenizer. Exit 0: equal; 1: different; 77: `tokenizers` or the
bench program is not there.
"""

import argparse
import gzip
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests/fixtures/tokenizer"


def sample_documents():
    data, at, out = gzip.decompress((FIXTURES / "sample.gz").read_bytes()), 0, []
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at)
        out.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return out


def random_documents(rng, special_tokens):
    """Characters of all planes, mostly those that split patterns and merges care about, and some broken bytes."""
    tricky = list("aeinrst AB'’.,!-_\n\r\t\v 0123456789") + [
        "'s", "'LL", "'ſ", "  ", "\r\n", "the", " and", "ing", "é", "中文", "한국", "ελ", "дом", "\u00a0", "\u0085", "\u2028",
        "\u3000", "\u180e", "\u200d", "\u0301", "½", "Ⅷ", "٣", "😀", "👍🏽", "\U0002ebf0", "\U0001e030", "==", "->", "    ",
    ] + special_tokens
    for _ in range(20000):
        parts = []
        for _ in range(rng.randint(0, 40)):
            kind = rng.random()
            if kind < 0.8:
                parts.append(rng.choice(tricky).encode())
            elif kind < 0.97:
                code = rng.choice([rng.randrange(0x3000), rng.randrange(0x10000), rng.randrange(0x110000)])
                parts.append(chr(code).encode("utf-8", "surrogatepass"))
            else:
                parts.append(bytes([rng.randrange(256)]))
        yield b"".join(parts)
    for c in "a .1é中😀'":
        yield (c * 5000).encode()


def our_ids(bench, tokenizer, documents):
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"".join(struct.pack("=I", len(d)) + d for d in documents))
        file.flush()
        out = subprocess.run([bench, "--ids", tokenizer, file.name], stdout=subprocess.PIPE, check=True).stdout
    numbers, at, ids = memoryview(out).cast("I"), 0, []
    while at < len(numbers):
        count = numbers[at]
        ids.append(numbers[at + 1 : at + 1 + count].tolist())
        at += 1 + count
    return ids


def compare(Tokenizer, bench, path, documents):
    theirs = Tokenizer.from_file(str(path))
    texts = [d.decode("utf-8", errors="replace") for d in documents]
    expected = [e.ids for e in theirs.encode_batch(texts, add_special_tokens=False)]
    got = our_ids(bench, path, documents)
    different = [i for i in range(len(documents)) if i >= len(got) or got[i] != expected[i]]
    size = sum(map(len, documents))
    print(f"{path}: {len(documents)} documents, {size} bytes, {sum(map(len, expected))} ids, {len(different)} documents differ")
    for i in different[:3]:
        print(f"  text {texts[i]!r}\n  HF   {expected[i]}\n  ours {got[i] if i < len(got) else None}")
    return not different


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", default=str(ROOT / "build/release/bench/bench_tokenizer"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("tokenizers", nargs="*", type=Path)
    args = parser.parse_args()
    try:
        from tokenizers import Tokenizer
    except ImportError:
        print("tokenizers is not installed")
        return 77
    if not Path(args.bench).exists():
        print(f"{args.bench} is not built")
        return 77
    equal = True
    for path in args.tokenizers or [FIXTURES / "gpt2_style.json", FIXTURES / "llama3_style.json"]:
        special = [t.content for t in Tokenizer.from_file(str(path)).get_added_tokens_decoder().values()][:20]
        documents = sample_documents() + list(random_documents(random.Random(args.seed), special))
        equal &= compare(Tokenizer, args.bench, path, documents)
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
