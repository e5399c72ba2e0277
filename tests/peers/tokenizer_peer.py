#!/usr/bin/env python3
"""Compares ids and decoded text with Hugging Face `tokenizers`, on over 2 MB of mixed text.

    tests/peers/tokenizer_peer.py [--bench build/release/bench/bench_tokenizer] [--seed N] [TOKENIZER_JSON ...]

Without tokenizer files it takes those of tests/fixtures/tokenizer. Exit 0: equal; 1: different; 77: `tokenizers` or the
bench program is not there.
"""

import argparse
import json
import re
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from mixed_text import FIXTURES, ROOT, mixed_documents

BENCH = ROOT / "build/release/bench/bench_tokenizer"


@dataclass
class Ours:
    """What `bench_tokenizer --encoded` gives."""

    prefix: list = field(default_factory=list)  # of ids, as the post-processor adds them
    suffix: list = field(default_factory=list)
    ids: list = field(default_factory=list)  # by document
    texts: list = field(default_factory=list)  # these decoded, with special tokens
    plain: list = field(default_factory=list)  # and without


def our_encodings(bench, tokenizer, documents):
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"".join(struct.pack("=I", len(d)) + d for d in documents))
        file.flush()
        out = subprocess.run([bench, "--encoded", tokenizer, file.name], stdout=subprocess.PIPE, check=True).stdout
    at = 0

    def take(item_size):
        nonlocal at
        (count,) = struct.unpack_from("=I", out, at)
        data = out[at + 4 : at + 4 + count * item_size]
        at += 4 + count * item_size
        return data

    def take_ids():
        return memoryview(take(4)).cast("I").tolist()

    ours = Ours(prefix=take_ids(), suffix=take_ids())
    while at < len(out):
        ours.ids.append(take_ids())
        ours.texts.append(take(1).decode("utf-8", errors="replace"))
        ours.plain.append(take(1).decode("utf-8", errors="replace"))
    return ours


class Differences:
    """Of one tokenizer: how many documents differ in what, with examples."""

    def __init__(self, name, documents):
        self.name, self.documents, self.found, self.compared = name, documents, {}, {}

    def compare(self, what, expected, got, inputs=None):
        inputs = inputs or self.documents
        different = [i for i in range(len(expected)) if i >= len(got) or got[i] != expected[i]]
        self.compared[what] = len(expected)
        if different:
            self.found[what] = len(different)
        for i in different[:3]:
            print(f"  {self.name}, {what} of {inputs[i]!r:.400}\n    expected {expected[i]!r:.400}\n"
                  f"    ours     {got[i] if i < len(got) else None!r:.400}")

    def report(self, ids):
        size = sum(map(len, self.documents))
        counts = ", ".join(f"{self.found.get(what, 0)} of {count} {what} differ" for what, count in self.compared.items())
        print(f"{self.name}: {len(self.documents)} documents, {size} bytes, {ids} ids; {counts}", flush=True)
        return not self.found


def decoder_of(content):
    """"exact", "no space in front" where the decoder takes away what the tokenizer put there and ours leaves it, or None
    where there is none: `tokenizers` then puts spaces between tokens."""
    decoder = content["decoder"]
    if decoder is None:
        return None
    return "exact" if decoder["type"] == "ByteLevel" else "no space in front"


def rewritten_tokens(tokenizer):
    """Ids of added tokens that `tokenizers` decodes to something else than their content: where they are normalized, it
    gives the normalized content, whatever stood in the text, and its byte-level decoder takes their letters for bytes."""
    begin = tokenizer.encode("a", add_special_tokens=False).ids
    before = tokenizer.decode(begin, skip_special_tokens=False)
    return {id for id, token in tokenizer.get_added_tokens_decoder().items()
            if not re.fullmatch("<0x[0-9A-F]{2}>", token.content)
            and tokenizer.decode(begin + [id], skip_special_tokens=False) != before + token.content}


def compare_texts(theirs, ours, differences):
    """Decodes a part of the documents with both."""
    decoder, rewritten = decoder_of(json.loads(theirs.to_str())), rewritten_tokens(theirs)
    if not decoder:
        return
    some = [i for i in range(0, len(ours.ids), 3) if not rewritten.intersection(ours.ids[i])]
    ids = [ours.ids[i] for i in some]
    for what, skip, texts in [("texts", False, ours.texts), ("texts without special tokens", True, ours.plain)]:
        wanted, got = theirs.decode_batch(ids, skip_special_tokens=skip), [texts[i] for i in some]
        if decoder == "no space in front":
            wanted, got = [t.lstrip(" ") for t in wanted], [t.lstrip(" ") for t in got]
        differences.compare(what, wanted, got, ids)


def compare(bench, path, documents):
    from tokenizers import Tokenizer

    theirs = Tokenizer.from_file(str(path))
    texts = [d.decode("utf-8", errors="replace") for d in documents]
    expected = [e.ids for e in theirs.encode_batch_fast(texts, add_special_tokens=False)]
    ours = our_encodings(bench, path, documents)
    differences = Differences(Path(path).name, documents)
    differences.compare("ids", expected, ours.ids)
    some = texts[:200]
    with_special = [e.ids for e in theirs.encode_batch_fast(some, add_special_tokens=True)]
    differences.compare("ids with special tokens", with_special, [ours.prefix + ids + ours.suffix for ids in ours.ids[:200]])
    compare_texts(theirs, ours, differences)
    return differences.report(sum(map(len, expected)))


def arguments(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default=str(BENCH))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--one-in", type=int, default=1, help="compare only so small a part of the documents")
    parser.add_argument("files", nargs="*", type=Path)
    args = parser.parse_args()
    for module in ["tokenizers", "sentencepiece", "transformers"]:
        try:
            __import__(module)
        except ImportError:
            print(f"{module} is not installed")
            sys.exit(77)
    if not Path(args.bench).exists():
        print(f"{args.bench} is not built")
        sys.exit(77)
    return args


def main():
    args = arguments(__doc__)
    documents = mixed_documents(args.seed)
    files = args.files or [FIXTURES / "gpt2_style.json", FIXTURES / "llama3_style.json"]
    return 0 if all([compare(args.bench, path, documents) for path in files]) else 1


if __name__ == "__main__":
    sys.exit(main())
