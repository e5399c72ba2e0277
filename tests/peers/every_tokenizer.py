#!/usr/bin/env python3
"""The live test of tokenizers: ids and decoded text of a file of every kind, against `tokenizers`, `sentencepiece` and
`transformers`, on over 2 MB of mixed text each.

    tests/peers/every_tokenizer.py [--bench build/release/bench/bench_tokenizer] [--seed N] [--one-in N] [KIND ...]

KIND: only these of tokenizer_kinds.py. --one-in N: only every N-th document, as the suite does to save minutes. Exit 0: equal; 1: different; 77: one of the libraries or the bench program is not
there.
"""

import sys
import tempfile
from pathlib import Path

import sentencepiece_peer
import tokenizer_peer
import vocab_merges_peer
from mixed_text import FIXTURES, mixed_documents

FEWEST_BYTES = 2_000_000


def main():
    args = tokenizer_peer.arguments(__doc__)
    from tokenizer_kinds import FLAG_MARKS, kinds

    documents = mixed_documents(args.seed, FLAG_MARKS)
    assert sum(map(len, documents)) >= FEWEST_BYTES
    documents = documents[:: args.one_in]
    wanted = [str(name) for name in args.files]
    equal = True
    with tempfile.TemporaryDirectory() as folder:
        for name, make in kinds(3000).items():
            if wanted and name not in wanted:
                continue
            path = Path(folder) / f"{name}.json"
            make().save(str(path))
            equal &= tokenizer_peer.compare(args.bench, path, documents)
    if not wanted:
        for name in ["gpt2_style.json", "llama3_style.json"]:
            equal &= tokenizer_peer.compare(args.bench, FIXTURES / name, documents)
        equal &= sentencepiece_peer.compare_all(args.bench, documents)
        equal &= vocab_merges_peer.compare_all(args.bench, documents)
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
