#!/usr/bin/env python3
"""Writes unicode_classes.inc: which code points are letters, numbers, white space and word characters.

The truth is asked of Hugging Face `tokenizers` itself (its regex engine and its added-token matcher), so that text
splits where it splits there, whatever Unicode version this machine's other libraries follow. Needs `tokenizers`:

    python3 src/data/unicode_classes.py > src/data/unicode_classes.inc
"""

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def matching(pattern):
    """The code points that match a one-character pattern: what removing them takes away."""
    remove = pre_tokenizers.Split(Regex(pattern), "removed")
    found = set(CODE_POINTS)
    for start in range(0, len(CODE_POINTS), 1 << 16):
        block = CODE_POINTS[start : start + (1 << 16)]
        for _, (begin, end) in remove.pre_tokenize_str("".join(map(chr, block))):
            found.difference_update(block[begin:end])
    return found


def word_characters():
    """The code points beside which a single_word added token does not match."""
    tokenizer = Tokenizer(models.BPE({"a": 0}, []))
    tokenizer.add_tokens([AddedToken("Q", single_word=True, normalized=False)])
    token = tokenizer.token_to_id("Q")
    encodings = tokenizer.encode_batch(["Q" + chr(c) for c in CODE_POINTS])
    return {c for c, encoding in zip(CODE_POINTS, encodings) if token not in encoding.ids}


def ranges(code_points):
    out = []
    for c in sorted(code_points):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def print_ranges(name, code_points):
    print(f"constexpr CodeRange {name}[] = {{")
    line = "   "
    for first, last in ranges(code_points):
        item = f" {{0x{first:X}, 0x{last:X}}},"
        if len(line) + len(item) > 120:
            print(line)
            line = "   "
        line += item
    print(f"{line}\n}};")


print(f"// Made by unicode_classes.py with tokenizers {tokenizers.__version__}; do not edit.")
print_ranges("kLetters", matching(r"\p{L}"))
print_ranges("kNumbers", matching(r"\p{N}"))
print_ranges("kSpaces", matching(r"\s"))
print_ranges("kWordCharacters", word_characters())
