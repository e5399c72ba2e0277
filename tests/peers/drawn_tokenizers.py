#!/usr/bin/env python3
"""Small tokenizers drawn at random, with texts that meet what is rare in real ones: added tokens of white space with
every flag, replacements and splits by patterns that match nothing, characters without a token. Ids are compared with Hugging Face `tokenizers`.

    tests/peers/drawn_tokenizers.py [--bench build/release/bench/bench_tokenizer] [--seed N] [--count N]
    tests/peers/drawn_tokenizers.py --fixture     writes tests/fixtures/tokenizer/drawn.jsonl, for a test without Python

Exit 0: equal; 1: different; 77: `tokenizers` or the bench program is not there.
"""

import argparse
import json
import os
import random
import sys
import tempfile
from pathlib import Path

from mixed_text import FIXTURES, ROOT

FIXTURE = FIXTURES / "drawn.jsonl"
ALPHABET = list("aAbcx1_ .\n\t") + ["é", "É", "中", "\u00a0", "\u3000", "▁", "#"]
PATTERNS = ["$", r"\z", r"\Z", "^", r"\A", r"\b", r"\B", "x*", "(?=b)", "(?<=b)", "(?!a)", "", "a*$", "a|", "|a", "b?", r"\s*", r"\s+$",
            r"^\s*", r"\s+", "a", "[ab]+", r"(?<=\n)|b", r"\n?$", "1{0,2}", "(?=a)|a", r"\w*", "é|$", "(?<!a)b*", r"\s+(?!\S)", "▁*"]
CONTENTS = ["\n", "\n\n", " ", "  ", "\t", "a", "ab", "Ab", "<x>", "<X>", "b b", "\u00a0", "É", "é", "x\n", "\nx", "_", "1", "\n ", "中", "#", "▁"]
REPLACEMENTS = ["", "#", " ", "ab", "▁", "\n", "x$"]
UNKNOWN = ["d", "日"]  # no token: they are dropped, and their neighbours may merge
BEHAVIORS = ["isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"]


# Of these `tokenizers` puts what replaces nothing before the text, where it then counts as the first character, too: what
# follows is not compared (a step that changes characters doubles it, and every piece of it gets a prefix of its own).
AT_FRONT = ["^", r"\A", r"\b", r"\B", "x*", "(?=b)", "(?!a)", "", "a*$", "a|", "|a", "b?", r"\s*", r"^\s*", "1{0,2}", "(?=a)|a", r"\w*",
            "é|$", "(?<!a)b*", "▁*", "$", r"\z", r"\Z", r"\n?$"]


def drawn_normalizer(rng):
    from tokenizers import Regex, normalizers

    def step(last):
        kind = rng.random()
        if kind < 0.6:
            patterns = PATTERNS if last else [pattern for pattern in PATTERNS if pattern not in AT_FRONT]
            return normalizers.Replace(Regex(rng.choice(patterns)), rng.choice(REPLACEMENTS))
        if kind < 0.7:
            return normalizers.Replace(rng.choice(["a", " ", "\n", "bb"] + [""] * last), rng.choice(REPLACEMENTS))
        return rng.choice([normalizers.Lowercase(), normalizers.Strip(), normalizers.Strip(right=False), normalizers.NFD(),
                           normalizers.Prepend("▁"), normalizers.NFKC()])

    count = rng.choice([0, 0, 1, 1, 1, 2, 3])
    steps = [step(i + 1 == count) for i in range(count)]
    return None if not steps else steps[0] if count == 1 else normalizers.Sequence(steps)


def drawn_pre_tokenizer(rng, normalized):
    from tokenizers import Regex, pre_tokenizers

    def split():
        behavior = rng.choice(BEHAVIORS)
        pattern = Regex(rng.choice(PATTERNS)) if rng.random() < 0.85 else rng.choice(["a", "", " ", "bb"])
        return pre_tokenizers.Split(pattern, behavior, invert=behavior in ("isolated", "removed") and rng.random() < 0.3)

    schemes = ["always", "never"] if normalized else ["first", "always", "never"]
    metaspace = pre_tokenizers.Metaspace(prepend_scheme=rng.choice(schemes), split=rng.random() < 0.5)
    return rng.choice([None, split(), split(), metaspace, pre_tokenizers.Sequence([split(), split()]),
                       pre_tokenizers.Sequence([split(), metaspace])])


def model():
    """Of characters and half of their pairs, so that a cut in another place gives other ids."""
    from tokenizers import models

    merges = [(a, b) for i, a in enumerate(ALPHABET) for j, b in enumerate(ALPHABET) if (i * i + 3 * j) % 5 < 3]
    names = ALPHABET + [c for c in "eE\u0301$<>X?"] + [a + b for a, b in merges]
    return models.BPE(vocab={name: i for i, name in enumerate(names)}, merges=merges)


def drawn_tokenizer(rng):
    from tokenizers import AddedToken, Tokenizer

    tokenizer = Tokenizer(model())
    if normalizer := drawn_normalizer(rng):
        tokenizer.normalizer = normalizer
    if pre_tokenizer := drawn_pre_tokenizer(rng, normalizer is not None):
        tokenizer.pre_tokenizer = pre_tokenizer
    for content in rng.sample(CONTENTS, rng.choice([0, 1, 2, 3, 4])):
        flags = {name: rng.random() < 0.5 for name in ("lstrip", "rstrip", "normalized", "special")}
        token = AddedToken(content, single_word=rng.random() < 0.2, **flags)
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
    return tokenizer


def removes_a_token(tokenizer):
    """Such a file is refused: the empty token that is left is found between bytes, inside characters too."""
    return any(token.normalized and tokenizer.normalizer and tokenizer.normalizer.normalize_str(token.content) == ""
               for token in tokenizer.get_added_tokens_decoder().values())


def has_equal_tokens(tokenizer):
    """Of added tokens that look the same when normalized, `tokenizers` finds one by chance."""
    looks = [tokenizer.normalizer.normalize_str(token.content) if tokenizer.normalizer else token.content
             for token in tokenizer.get_added_tokens_decoder().values() if token.normalized]
    return len(set(looks)) < len(looks)


def drawn_text(rng):
    marks = [content for content in CONTENTS for _ in range(2)] + ALPHABET + 6 * UNKNOWN
    return "".join(rng.choice(marks) * rng.choice([1, 1, 1, 2, 4]) for _ in range(rng.randint(0, 8)))


def as_read_from_file(tokenizer):
    """Added tokens are then in the order of their ids."""
    return type(tokenizer).from_str(tokenizer.to_str())


def unless_it_panics(call):
    """None where the Rust of `tokenizers` panics, as its added tokens and some normalizers do on some texts."""
    try:
        return call()
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return None


def drawn_cases(seed, count, texts):
    rng = random.Random(seed)
    while count:
        tokenizer = unless_it_panics(lambda: as_read_from_file(drawn_tokenizer(rng)))
        if tokenizer is None or removes_a_token(tokenizer) or has_equal_tokens(tokenizer):
            continue
        drawn = [drawn_text(rng) for _ in range(texts)]
        cases = [(text, unless_it_panics(lambda: tokenizer.encode(text, add_special_tokens=False).ids)) for text in drawn]
        count -= 1
        yield tokenizer.to_str(), [(text, ids) for text, ids in cases if ids is not None]


def compare_all(bench, seed, count):
    from tokenizer_peer import our_encodings

    different = compared = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        for content, cases in drawn_cases(seed, count, 60):
            path.write_text(content)
            ours = our_encodings(bench, path, [text.encode() for text, _ in cases])
            for (text, expected), ids in zip(cases, ours.ids, strict=True):
                compared += 1
                different += ids != expected
                if ids != expected and different <= 10:
                    file = json.loads(content)
                    print({k: file[k] for k in ("normalizer", "pre_tokenizer", "added_tokens")},
                          f"\n  {text!r}\n  expected {expected}\n  ours     {ids}")
    print(f"{count} drawn tokenizers: {different} of {compared} texts differ")
    return different == 0


def write_fixture():
    """The model, which all share, in the first line; then in each a file without it and its cases."""
    lines = []
    for content, cases in drawn_cases(33, 120, 12):
        file = json.loads(content)
        model = file.pop("model")
        lines = lines or [model]
        lines.append({"file": file, "cases": cases})
    FIXTURE.write_text("".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default=str(ROOT / "build/release/bench/bench_tokenizer"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--fixture", action="store_true")
    args = parser.parse_args()
    os.environ.setdefault("RUST_BACKTRACE", "0")
    try:
        import tokenizers  # noqa: F401
    except ImportError:
        print("tokenizers is not installed")
        return 77
    if args.fixture:
        write_fixture()
        return 0
    if not Path(args.bench).exists():
        print(f"{args.bench} is not built")
        return 77
    return 0 if compare_all(args.bench, args.seed, args.count) else 1


if __name__ == "__main__":
    sys.exit(main())
