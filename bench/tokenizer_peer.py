#!/usr/bin/env python3
"""Our encoding speed beside Hugging Face `tokenizers` on one thread, on the same documents of the same file, in one run;
for a tokenizer.model, beside the `sentencepiece` library and beside `tokenizers` with the same pieces.

    bench/tokenizer_peer.py [--tokenizer FILE …] [--kind NAME …] [--size N] [--rounds N] [--bench PROGRAM] [TEXT_FILE …]

--tokenizer   these files; else a file of every kind that tests/peers makes (--kind: only these), trained to N tokens.
TEXT_FILE     [the sample of tests/fixtures/tokenizer, every second document, in many languages, and 0.6 MB of Python's own library].

The sides take turns, and the best of the rounds counts for both. "cold" is the first pass of a tokenizer that was just read,
"warm" the best of those after it, when both have remembered words. MB/s is 10^6 bytes of text per second of processor time,
which other work on the machine disturbs less than the clock. Theirs is the faster of encode_batch and encode_batch_fast. The
last column says whether the ids are equal, of every document; exit status 1: some are not.
"""

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/peers"))
from tokenizer_peer import our_encodings  # noqa: E402  of tests/peers
DOCUMENT = 16 << 10
KINDS = ["qwen2_nfc", "normalizer_nfkc", "llama2", "llama2_every_merge", "llama2_first", "metaspace_always", "metaspace_never",
         "unigram", "unigram_bytes", "unigram_small_map", "unigram_nfkc_unsplit", "albert", "pattern_gpt2", "pattern_llama3",
         "pattern_qwen2", "pattern_cl100k", "pattern_o200k", "pattern_tekken", "deepseek_v3", "pattern_bloom", "falcon"]
SENTENCEPIECE = ["bpe_llama", "unigram"]


def cut_documents(data):
    at = 0
    while at < len(data):
        end = data.find(b"\n", min(at + DOCUMENT, len(data)))
        end = len(data) if end < 0 else end + 1
        yield data[at:end].decode("utf-8", errors="replace")
        at = end


def timed(encode, texts):
    start = time.process_time()
    tokens = encode(texts)
    return time.process_time() - start, tokens  # ids, document by document


def of_sentencepiece(path):
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return lambda texts: processor.encode(texts, num_threads=1)


def of_tokenizers(path, method):
    from tokenizers import Tokenizer

    batch = getattr(Tokenizer.from_file(str(path)), method)
    return lambda texts: [e.ids for e in batch(texts, add_special_tokens=False)]


def theirs(path):
    """Functions that make an encoder, each new one with empty caches."""
    if path.suffix == ".model":
        return [lambda: of_sentencepiece(path)]
    return [lambda method=method: of_tokenizers(path, method) for method in ("encode_batch", "encode_batch_fast")]


def ours(bench, path, text):
    words = subprocess.run([bench, path, text, "1"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    return float(words[15]), float(words[17])


def measure(label, bench, path, their_path, text, rounds):
    """Prints a line; whether all ids are equal."""
    data = text.read_bytes()
    texts, megabytes = list(cut_documents(data)), len(data) / 1e6
    cold = warm = our_cold = our_warm = 0.0
    for _ in range(rounds):
        for make in theirs(their_path):
            encode = make()
            seconds, their_ids = timed(encode, texts)
            cold = max(cold, megabytes / seconds)
            warm = max(warm, megabytes / timed(encode, texts)[0])
        first, best = ours(bench, path, text)
        our_cold, our_warm = max(our_cold, first), max(our_warm, best)
    our_ids = our_encodings(bench, path, [document.encode() for document in texts]).ids
    different = sum(own != their for own, their in zip(our_ids, their_ids)) + abs(len(our_ids) - len(their_ids))
    same = "equal" if not different else f"other ids in {different} of {len(their_ids)} documents"
    print(f"{label:42} {text.stem:6} {cold:6.2f} {warm:6.2f}   {our_cold:6.1f} {our_warm:6.1f}   {our_cold / cold:6.1f} "
          f"{our_warm / warm:6.1f}   {same}", flush=True)
    return not different


def made_kinds(folder, wanted, size):
    """Labels, our files, and theirs."""
    import sentencepiece_peer
    from tokenizer_kinds import kinds

    makers = kinds(size)
    for name in wanted or KINDS:
        path = folder / f"{name}.json"
        makers[name]().save(str(path))
        yield name, path, path
    for name in [] if wanted else SENTENCEPIECE:
        model = sentencepiece_peer.train(folder, f"sp_{name}", size, **sentencepiece_peer.KINDS[name])
        converted = folder / f"sp_{name}.json"
        sentencepiece_peer.as_tokenizers(model).save(str(converted))
        yield f"tokenizer.model {name}, tokenizers", model, converted
        yield f"tokenizer.model {name}, sentencepiece", model, model


def sample_texts(folder):
    from mixed_text import sample_documents

    (folder / "mixed.txt").write_bytes(b"\n".join(sample_documents()[::2]))
    code = b"".join(path.read_bytes() for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")))[:600_000]
    (folder / "code.txt").write_bytes(code)
    return [folder / "code.txt", folder / "mixed.txt"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=Path, action="append", default=[])
    parser.add_argument("--kind", action="append", default=[])
    parser.add_argument("--size", type=int, default=8000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bench", default=str(ROOT / "build/release/bench/bench_tokenizer"))
    parser.add_argument("texts", nargs="*", type=Path)
    args = parser.parse_args()
    print(f"{'':42} {'':6} {'theirs, MB/s':13}   {'ours, MB/s':13}   {'ratio':13}")
    equal = True
    print(f"{'tokenizer':42} {'text':6} {'cold':>6} {'warm':>6}   {'cold':>6} {'warm':>6}   {'cold':>6} {'warm':>6}   ids")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        files = [(path.stem, path, path) for path in args.tokenizer] or made_kinds(folder, args.kind, args.size)
        texts = args.texts or sample_texts(folder)
        for label, path, their_path in files:
            for text in texts:
                equal &= measure(label, args.bench, path, their_path, text, args.rounds)
    sys.exit(not equal)


if __name__ == "__main__":
    main()
