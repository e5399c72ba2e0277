#!/usr/bin/env python3
"""Writes unicode_classes.inc: which code points are word characters to an added token that is a single word.

The truth is asked of Hugging Face `tokenizers` itself, so that text splits where it splits there, whatever Unicode
version this machine's other libraries follow. Needs `tokenizers`:

    python3 src/text/unicode/unicode_classes.py > src/text/unicode/unicode_classes.inc
"""

import tokenizers
from tokenizers import AddedToken, Tokenizer, models

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


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
print_ranges("kWordCharacters", word_characters())
