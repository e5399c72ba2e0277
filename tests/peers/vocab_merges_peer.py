#!/usr/bin/env python3
"""Compares ids with transformers' AutoTokenizer for directories that have vocab.json and merges.txt and no tokenizer.json.

    tests/peers/vocab_merges_peer.py [--bench build/release/bench/bench_tokenizer] [--seed N]
"""

import json
import sys
import tempfile
from pathlib import Path

from mixed_text import mixed_documents
from tokenizer_kinds import QWEN2, byte_level, split_by
from tokenizer_peer import Differences, arguments, our_encodings

END = "<|endoftext|>"


def write_vocab_and_merges(folder, tokenizer, config, added=None):
    folder.mkdir()
    tokenizer.model.save(str(folder))
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    if added:
        (folder / "added_tokens.json").write_text(json.dumps(added))
    return folder / "vocab.json"


def directories(root):
    """Names of directories, and the file of each that ours reads."""
    gpt2 = byte_level(3000)
    yield "gpt2", write_vocab_and_merges(root / "gpt2", gpt2, {"tokenizer_class": "GPT2Tokenizer"})
    yield "gpt2_bos", write_vocab_and_merges(root / "gpt2_bos", gpt2, {
        "tokenizer_class": "GPT2Tokenizer", "bos_token": END, "eos_token": END, "unk_token": END, "add_bos_token": True,
        "add_prefix_space": True})
    qwen2 = byte_level(3000, [split_by(QWEN2)])
    yield "qwen2", write_vocab_and_merges(root / "qwen2", qwen2, {"tokenizer_class": "Qwen2Tokenizer", "eos_token": END,
                                                                  "pad_token": END})


def compare(bench, name, path, documents):
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(str(path.parent))
    texts = [d.decode("utf-8", errors="replace") for d in documents]
    expected = theirs(texts, add_special_tokens=False, verbose=False)["input_ids"]
    ours = our_encodings(bench, path, documents)
    differences = Differences(f"{name} ({type(theirs).__name__})", documents)
    differences.compare("ids", expected, ours.ids)
    some = theirs(texts[:200], verbose=False)["input_ids"]
    differences.compare("ids with special tokens", some, [ours.prefix + ids + ours.suffix for ids in ours.ids[:200]])
    return differences.report(sum(map(len, expected)))


def compare_all(bench, documents):
    with tempfile.TemporaryDirectory() as folder:
        return all([compare(bench, name, path, documents) for name, path in directories(Path(folder))])


def main():
    args = arguments(__doc__)
    return 0 if compare_all(args.bench, mixed_documents(args.seed)) else 1


if __name__ == "__main__":
    sys.exit(main())
