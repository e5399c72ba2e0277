#!/usr/bin/env python3
"""Writes unicode_properties.inc: what split patterns may ask of a character, as Hugging Face `tokenizers` answers.

Asked of its regex engine (Oniguruma) itself, so that text splits where it splits there, whatever Unicode version this
machine's other libraries follow. Needs `tokenizers`:

    python3 src/text/unicode/unicode_properties.py > src/text/unicode/unicode_properties.inc
"""

import tokenizers
from tokenizers import Regex, pre_tokenizers

from code_tables import CODE_POINTS, print_list, print_ranges, ranges

BLOCKS = [CODE_POINTS[start : start + (1 << 16)] for start in range(0, len(CODE_POINTS), 1 << 16)]
# Without Cs, the surrogates, which do not occur in text.
CATEGORIES = "Cn Cc Cf Co Ll Lm Lo Lt Lu Mc Me Mn Nd Nl No Pc Pd Pe Pf Pi Po Ps Sc Sk Sm So Zl Zp Zs".split()
SCRIPTS = (
    "Arabic Armenian Bengali Bopomofo Common Cyrillic Devanagari Ethiopic Georgian Greek Gujarati Gurmukhi Han Hangul "
    "Hebrew Hiragana Inherited Kannada Katakana Khmer Lao Latin Malayalam Mongolian Myanmar Oriya Sinhala Tamil Telugu "
    "Thai Tibetan Yi"
).split()


def matching(pattern, blocks=BLOCKS):
    """The code points that a one-character pattern matches."""
    keep = pre_tokenizers.Split(Regex(f"(?:{pattern})+"), "removed", invert=True)
    found = set()
    for block in blocks:
        for _, (begin, end) in keep.pre_tokenize_str("".join(map(chr, block))):
            found.update(block[begin:end])
    return found


def codes(code_points):
    return ", ".join(f"0x{c:X}" for c in code_points)


def categories():
    found = {name: matching(rf"\p{{{name}}}") for name in CATEGORIES}
    assert sum(map(len, found.values())) == len(CODE_POINTS)
    return found


def print_categories(found):
    runs = sorted((first, last, name) for name in CATEGORIES if name != "Cn" for first, last in ranges(found[name]))
    print_list("constexpr CategoryRun kCategories[]", [f'{{0x{a:X}, 0x{b:X}, "{n}"}}' for a, b, n in runs])


def check_derived(found, alphabetic):
    """What unicode_properties.cpp builds of the tables is what the engine says."""

    def union(names):
        return set().union(*(found[n] for n in CATEGORIES if n in names or n[0] in names))

    space = matching(r"\s")
    word = alphabetic | union("M") | found["Nd"] | found["Pc"]
    assert matching(r"[\w]") == matching("[[:word:]]") == word
    assert matching(r"\w") == matching(r"\p{Word}") == word | {0xB2, 0xB3, 0xB9, 0xBC, 0xBD, 0xBE}
    assert matching(r"[[:alpha:]]") == alphabetic
    assert matching(r"[[:alnum:]]") == alphabetic | found["Nd"]
    assert matching(r"[[:punct:]]") == union("PS")
    assert matching(r"\p{Punct}") == union("P")
    assert matching(r"[[:digit:]]") == matching(r"\d") == found["Nd"]
    assert matching(r"[[:space:]]") == space
    assert matching(r"[[:cntrl:]]") == found["Cc"]
    assert matching(r"[[:blank:]]") == found["Zs"] | {9}
    assert matching(r"[[:graph:]]") == set(CODE_POINTS) - space - found["Cc"] - found["Cn"]
    assert matching(r"[[:print:]]") == (set(CODE_POINTS) - space - found["Cc"] - found["Cn"]) | found["Zs"]
    assert matching(r"\p{LC}") == found["Lu"] | found["Ll"] | found["Lt"]


def print_case(found):
    """Characters that (?i) holds equal; then those that it also holds equal to a sequence, which Unicode's full case
    folding names."""
    # Case is a matter of cased letters, Roman numerals, circled letters and one combining mark.
    cased = sorted(found["Lu"] | found["Ll"] | found["Lt"] | found["Nl"] | set(range(0x2460, 0x2500)) | {0x345})
    apart = [[code for c in cased for code in (c, 0x20)]]
    rows, seen = [], set()
    for c in cased:
        if c in seen:
            continue
        equal = sorted(matching(rf"(?i)[\x{{{c:X}}}]", apart))
        seen.update(equal)
        if len(equal) > 1:
            rows.append(equal)
    print_list("constexpr CaseClass kCaseClasses[]", [f"{{{{{codes(row)}}}}}" for row in rows])

    sequences = [(c, chr(c).casefold()) for c in cased if len(chr(c).casefold()) > 1]
    for c, sequence in sequences:
        split = pre_tokenizers.Split(Regex(f"(?i){chr(c)}"), "removed", invert=True)
        assert [text for text, _ in split.pre_tokenize_str(f"-{sequence}-")] == [sequence]
    rows = [f"{{0x{c:X}, {{{codes(map(ord, sequence))}}}}}" for c, sequence in sequences]
    print_list("constexpr CaseExpansion kCaseExpansions[]", rows)


def main():
    print(f"// Made by unicode_properties.py with tokenizers {tokenizers.__version__}; do not edit.")
    found = categories()
    print_categories(found)
    print_ranges("kSpaces", matching(r"\s"))
    alphabetic = matching(r"\p{Alphabetic}")
    check_derived(found, alphabetic)
    letters = set().union(*(found[n] for n in CATEGORIES if n[0] == "L"))
    print("// Characters that are alphabetic, lower case or upper case beyond the categories of that meaning.")
    print_ranges("kOtherAlphabetic", alphabetic - letters - found["Nl"])
    print_ranges("kOtherLowercase", matching(r"\p{Lowercase}") - found["Ll"])
    print_ranges("kOtherUppercase", matching(r"\p{Uppercase}") - found["Lu"])
    for script in SCRIPTS:
        print_ranges(f"k{script}", matching(rf"\p{{{script}}}"))
    print_case(found)


if __name__ == "__main__":
    main()
