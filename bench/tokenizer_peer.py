#!/usr/bin/env python3
"""Our encoding speed beside Hugging Face `tokenizers`, on the same documents of the same file; for a tokenizer.model,
beside the `sentencepiece` library.

    bench/tokenizer_peer.py TOKENIZER_FILE TEXT_FILE [--bench build/release/bench/bench_tokenizer] [--threads N]

HF runs encode_batch on one thread (RAYON_NUM_THREADS=1), its better of two passes counts. MB/s is 10^6 bytes of text, by
the clock and per second of processor time; on a machine that is busy with other work the second is the fair one.
"""

import argparse
import os
import subprocess
import time
from pathlib import Path

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = 16 << 10


def cut_documents(data):
    at = 0
    while at < len(data):
        end = data.find(b"\n", min(at + DOCUMENT, len(data)))
        end = len(data) if end < 0 else end + 1
        yield data[at:end]
        at = end


def encoder_of(path):
    """Its name, and a function from texts to the number of their tokens."""
    if path.endswith(".model"):
        import sentencepiece

        processor = sentencepiece.SentencePieceProcessor(model_file=path)
        return (f"sentencepiece {sentencepiece.__version__}",
                lambda texts: sum(map(len, processor.encode(texts, num_threads=1))))
    from tokenizers import Tokenizer, __version__

    tokenizer = Tokenizer.from_file(path)
    return (f"HF tokenizers {__version__}",
            lambda texts: sum(len(e.ids) for e in tokenizer.encode_batch(texts, add_special_tokens=False)))


def measure_hf(path, data):
    name, encode = encoder_of(path)
    texts = [d.decode("utf-8", errors="replace") for d in cut_documents(data)]
    wall = cpu = float("inf")
    for _ in range(2):
        start, start_cpu = time.perf_counter(), time.process_time()
        tokens = encode(texts)
        wall, cpu = min(wall, time.perf_counter() - start), min(cpu, time.process_time() - start_cpu)
    megabytes = len(data) / 1e6
    print(f"{name}, 1 thread: documents {len(texts)} tokens {tokens} "
          f"MB/s {megabytes / wall:.2f}  per CPU second {megabytes / cpu:.2f}")
    return tokens, megabytes / wall, megabytes / cpu


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tokenizer")
    parser.add_argument("text")
    parser.add_argument("--bench", default=str(ROOT / "build/release/bench/bench_tokenizer"))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    data = Path(args.text).read_bytes()
    tokens, hf_wall, hf_cpu = measure_hf(args.tokenizer, data)
    out = subprocess.run([args.bench, args.tokenizer, args.text, str(args.threads)], stdout=subprocess.PIPE, text=True,
                         check=True).stdout
    for line in out.splitlines():
        words = line.split()
        ours = {words[i]: float(words[i + 1]) for i in (0, 2, 4)}
        first, best, cpu_first, cpu_best = (float(words[i]) for i in (8, 10, 15, 17))
        print(f"Sextant, {line}")
        print(f"  ratio by the clock: first pass {first / hf_wall:.1f}, best {best / hf_wall:.1f}; "
              f"per CPU second: first pass {cpu_first / hf_cpu:.1f}, best {cpu_best / hf_cpu:.1f}; "
              f"tokens {'equal' if ours['tokens'] == tokens else 'DIFFER'}")


if __name__ == "__main__":
    main()
