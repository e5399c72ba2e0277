#!/usr/bin/env python3
"""Writes unicode_classes.inc: which code points are word characters to an added token that is a single word, and which
are punctuation to the Punctuation pre-tokenizer.

The truth is asked of Hugging Face `tokenizers` itself, so that text splits where it splits there, whatever Unicode
version this machine's other libraries follow. Needs `tokenizers`:

    python3 src/text/unicode/unicode_classes.py > src/text/unicode/unicode_classes.inc
"""

import tokenizers
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

from code_tables import CODE_POINTS, print_ranges


def word_characters():
    """The code points beside which a single_word added token does not match."""
    tokenizer = Tokenizer(models.BPE({"a": 0}, []))
    tokenizer.add_tokens([AddedToken("Q", single_word=True, normalized=False)])
    token = tokenizer.token_to_id("Q")
    encodings = tokenizer.encode_batch(["Q" + chr(c) for c in CODE_POINTS])
    return {c for c, encoding in zip(CODE_POINTS, encodings) if token not in encoding.ids}


def punctuation():
    split = pre_tokenizers.Punctuation()
    return {c for c in CODE_POINTS if len(split.pre_tokenize_str(f"x{chr(c)}x")) == 3}


print(f"// Made by unicode_classes.py with tokenizers {tokenizers.__version__}; do not edit.")
print_ranges("kWordCharacters", word_characters())
print_ranges("kPunctuation", punctuation())
