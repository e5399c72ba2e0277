#!/usr/bin/env python3
"""Compares ids and decoded text with the `sentencepiece` library, for models of its own making.

    tests/peers/sentencepiece_peer.py [--bench build/release/bench/bench_tokenizer] [--seed N] [MODEL ...]
    tests/peers/sentencepiece_peer.py --fixtures    writes tests/fixtures/tokenizer/sentencepiece: small models, with the
                                                    ids of the sample's documents, for tests that need no Python

Without models it trains some of each kind. Exit 0: equal; 1: different; 77: `sentencepiece` or the bench program is not
there.
"""

import struct
import sys
import tempfile
import zlib
from pathlib import Path

from mixed_text import FIXTURES, mixed_documents, sample_documents
from tokenizer_peer import Differences, arguments, our_encodings

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


def processor_of(model):
    import sentencepiece as spm

    return spm.SentencePieceProcessor(model_file=str(model))


def ids_of(model, documents):
    return processor_of(model).encode([d.decode("utf-8", errors="replace") for d in documents])


def as_tokenizers(model):
    """The same pieces as a tokenizer of `tokenizers`, as converters make it. For benchmarks: white space at the edges of a
    text may differ."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
    from tokenizer_kinds import PREPEND_REPLACE, all_merges, changed, field_of

    processor = processor_of(model)
    pieces = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(processor.vocab_size())]
    vocab = {piece: i for i, (piece, _) in enumerate(pieces)}
    spec = field_of(model.read_bytes(), 3)
    if "bpe" in model.name:
        merges = [tuple(pair) for pair in all_merges({"model": {"vocab": vocab}})]
        bpe = models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback="<0x00>" in vocab)
        return changed(Tokenizer(bpe), normalizer=PREPEND_REPLACE)
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=vocab["<unk>"], byte_fallback="<0x00>" in vocab))
    steps = [normalizers.Precompiled(field_of(spec, 2))] if field_of(spec, 2) else []
    tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return tokenizer


def compare(bench, model, documents):
    expected, ours = ids_of(model, documents), our_encodings(bench, model, documents)
    differences = Differences(model.name, documents)
    differences.compare("ids", expected, ours.ids)
    # The library takes the space in front away, which ours leaves, and writes a sign for unknown characters.
    texts = [t.replace(" \u2047 ", "<unk>").lstrip(" ") for t in processor_of(model).decode(expected)]
    differences.compare("texts", texts, [t.lstrip(" ") for t in ours.texts], expected)
    return differences.report(sum(map(len, expected)))


def compare_all(bench, documents, models=()):
    with tempfile.TemporaryDirectory() as folder:
        models = models or [train(Path(folder), name, 3000, **options) for name, options in KINDS.items()]
        return all([compare(bench, model, documents) for model in models])


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
    if sys.argv[1:] == ["--fixtures"]:
        return write_fixtures()
    args = arguments(__doc__)
    return 0 if compare_all(args.bench, mixed_documents(args.seed), args.files) else 1


if __name__ == "__main__":
    sys.exit(main())
