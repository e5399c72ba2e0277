#!/usr/bin/env python3
"""Compares our ids with those of the `sentencepiece` library, for models of its own making.

    tests/peers/sentencepiece_peer.py [--bench build/release/bench/bench_tokenizer] [--seed N] [MODEL ...]
    tests/peers/sentencepiece_peer.py --fixtures    writes tests/fixtures/tokenizer/sentencepiece: small models, with the
                                                    ids of the sample's documents, for tests that need no Python

Without models it trains some of each kind. Exit 0: equal; 1: different; 77: `sentencepiece` or the bench program is not
there.
"""

import argparse
import random
import struct
import sys
import tempfile
import zlib
from pathlib import Path

from tokenizer_peer import FIXTURES, ROOT, our_ids, random_documents, sample_documents

KINDS = {
    "bpe": dict(model_type="bpe", normalization_rule_name="nmt_nfkc"),
    "bpe_llama": dict(model_type="bpe", normalization_rule_name="identity", byte_fallback=True, split_digits=True,
                      remove_extra_whitespaces=False, allow_whitespace_only_pieces=True),
    "bpe_bare": dict(model_type="bpe", normalization_rule_name="nfkc_cf", add_dummy_prefix=False,
                     user_defined_symbols=["<|pad|>", "keepword", "the", "▁▁"]),
    "unigram": dict(model_type="unigram", normalization_rule_name="nmt_nfkc"),
    "unigram_bytes": dict(model_type="unigram", normalization_rule_name="identity", byte_fallback=True,
                          remove_extra_whitespaces=False, add_dummy_prefix=False),
    "unigram_symbols": dict(model_type="unigram", normalization_rule_name="nfkc",
                            user_defined_symbols=["<|pad|>", "keepword", "the"], control_symbols=["<ctl>"]),
}


def train(folder, name, size, **options):
    import sentencepiece as spm

    text = folder / "text.txt"
    if not text.exists():
        lines = []
        for data in sample_documents():
            lines += data.decode("utf-8", errors="ignore").replace("\0", "").splitlines()
        text.write_text("\n".join(lines))
    spm.SentencePieceTrainer.train(input=str(text), model_prefix=str(folder / name), vocab_size=size, minloglevel=2,
                                   character_coverage=0.98, hard_vocab_limit=False, num_threads=2,
                                   input_sentence_size=4000, **options)
    return folder / f"{name}.model"


def ids_of(model, documents):
    import sentencepiece as spm

    processor = spm.SentencePieceProcessor(model_file=str(model))
    return processor.encode([d.decode("utf-8", errors="replace") for d in documents])


def compare(bench, model, documents):
    expected, got = ids_of(model, documents), our_ids(bench, model, documents)
    different = [i for i in range(len(documents)) if i >= len(got) or got[i] != expected[i]]
    size = sum(map(len, documents))
    print(f"{model.name}: {len(documents)} documents, {size} bytes, {sum(map(len, expected))} ids, "
          f"{len(different)} documents differ", flush=True)
    for i in different[:3]:
        print(f"  text {documents[i].decode('utf-8', errors='replace')!r}\n  sentencepiece {expected[i]}\n"
              f"  ours          {got[i] if i < len(got) else None}")
    return not different


def write_fixtures():
    folder = FIXTURES / "sentencepiece"
    folder.mkdir(exist_ok=True)
    documents = sample_documents()
    with tempfile.TemporaryDirectory() as work:
        for name, options in {"bpe": KINDS["bpe_llama"], "unigram": KINDS["unigram_bytes"],
                              "symbols": KINDS["bpe_bare"] | dict(normalization_rule_name="identity")}.items():
            model = train(Path(work), name, 1500, **options)
            (folder / model.name).write_bytes(model.read_bytes())
            lines, crc = [], 0
            for i, ids in enumerate(ids_of(model, documents)):
                packed = struct.pack(f"<{len(ids)}I", *ids)
                crc = zlib.crc32(packed, crc)
                if i < 300:
                    lines.append(f"{len(ids)} {zlib.crc32(packed)}")
            (folder / f"{name}.expected").write_text("\n".join(lines) + f"\n{len(documents)} {crc}\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", default=str(ROOT / "build/release/bench/bench_tokenizer"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fixtures", action="store_true")
    parser.add_argument("models", nargs="*", type=Path)
    args = parser.parse_args()
    try:
        import sentencepiece  # noqa: F401
    except ImportError:
        print("sentencepiece is not installed")
        return 77
    if args.fixtures:
        return write_fixtures()
    if not Path(args.bench).exists():
        print(f"{args.bench} is not built")
        return 77
    documents = sample_documents() + list(random_documents(random.Random(args.seed), ["<|pad|>", "keepword", "▁", "  the"]))
    equal = True
    with tempfile.TemporaryDirectory() as folder:
        for model in args.models or [train(Path(folder), n, 3000, **o) for n, o in KINDS.items()]:
            equal &= compare(args.bench, model, documents)
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
