#!/usr/bin/env python3
"""Writes unicode_normal.inc: what the normalizers of Hugging Face `tokenizers` do with each character.

Asked of `tokenizers` itself, so that text is normalized as it is there, whatever Unicode version this machine's other
libraries follow. Needs `tokenizers`, and `sentencepiece`, which makes the charsmap by which graphemes are asked for:

    python3 src/text/unicode/unicode_normal.py > src/text/unicode/unicode_normal.inc
"""

import io
import tempfile
from pathlib import Path

import tokenizers
from tokenizers import normalizers

from code_tables import CODE_POINTS, print_list, print_ranges

NFC, NFD, NFKD = normalizers.NFC(), normalizers.NFD(), normalizers.NFKD()
HANGUL = range(0xAC00, 0xD7A4)


def print_maps(name, pool, rows):
    """Rows of a character and its text; the texts lie in one pool, in which equal ones share their place."""
    items = []
    for code, text in rows:
        if text not in pool:
            pool[text] = sum(map(len, list(pool)[-1:])) + max(pool.values(), default=0)
        items.append(f"{{0x{code:X}, {pool[text]}, {len(text)}}}")
    print_list(f"constexpr CharMapping {name}[]", items)


def mapped(normalizer):
    """The characters that it changes, with what becomes of each. Asked between two others, which it must leave."""
    rows = []
    for c in CODE_POINTS:
        text = normalizer.normalize_str(f"x{chr(c)}x")
        assert text[0] == text[-1] == "x"
        if text[1:-1] != chr(c):
            rows.append((c, text[1:-1]))
    return rows


def compositions(canonical):
    rows = []
    for c, text in canonical:
        if len(text) > 1 and NFC.normalize_str(text) == chr(c):
            first = NFC.normalize_str(text[:-1])
            assert len(first) == 1 and NFC.normalize_str(first + text[-1]) == chr(c)
            rows.append((ord(first), ord(text[-1]), c))
    return sorted(rows)


def combining_classes():
    """By the order into which marks are put: a mark moves before one of a higher class, and only before that."""

    def moves_before(c, mark):
        return c != mark and NFD.normalize_str("x" + mark + c) == "x" + c + mark

    single = [chr(c) for c in CODE_POINTS if c not in HANGUL and len(NFD.normalize_str(chr(c))) == 1
              and NFD.normalize_str(chr(c)) == chr(c)]
    marks = [c for c in single if moves_before(c, "\u0345")] + ["\u0345"]
    classes = []  # of marks, by rising class
    for mark in marks:
        low, high = 0, len(classes)
        while low < high:
            middle = (low + high) // 2
            other = classes[middle][0]
            if moves_before(mark, other):
                high = middle
            elif moves_before(other, mark):
                low = middle + 1
            else:
                classes[middle].append(mark)
                break
        else:
            classes.insert(low, [mark])
    return {ord(c): rank + 1 for rank, group in enumerate(classes) for c in group}


def charsmap(rules):
    """The precompiled_charsmap of these rules, as sentencepiece makes it."""
    import sentencepiece as spm
    from sentencepiece import sentencepiece_model_pb2 as pb

    with tempfile.TemporaryDirectory() as folder:
        table, text = Path(folder) / "rules.tsv", Path(folder) / "text.txt"
        table.write_text("".join(f"{' '.join(f'{ord(c):X}' for c in a)}\t{' '.join(f'{ord(c):X}' for c in b)}\n"
                                 for a, b in rules))
        text.write_text("a b c d e f g h\n" * 20)
        model = io.BytesIO()
        spm.SentencePieceTrainer.train(input=str(text), model_writer=model, vocab_size=14, model_type="bpe",
                                       normalization_rule_tsv=str(table), minloglevel=2, hard_vocab_limit=False)
        proto = pb.ModelProto()
        proto.ParseFromString(model.getvalue())
        return proto.normalizer_spec.precompiled_charsmap


def graphemes():
    """A charsmap replaces a whole grapheme where its front is a rule's, which tells what belongs to one."""
    joins = normalizers.Precompiled(charsmap([("a", "b")]))
    after = {c for c in CODE_POINTS if joins.normalize_str(f"a{chr(c)}z") == "bz"}
    # Characters that no mark joins are controls; all others may be.
    controls, prepends = {0}, set()  # a rule cannot hold U+0000
    for start in range(0, len(CODE_POINTS), 4000):
        block = [chr(c) for c in CODE_POINTS[start : start + 4000] if chr(c) not in "\0="]
        rule = normalizers.Precompiled(charsmap([(c, "=") for c in block]))
        for c in block:
            if len(c.encode()) < 4 and rule.normalize_str(c + "\u0301") != "=":
                controls.add(ord(c))
            if rule.normalize_str(c + "~") == "=":
                prepends.add(ord(c))
    return after, controls, prepends


def main():
    print(f"// Made by unicode_normal.py with tokenizers {tokenizers.__version__}; do not edit.")
    pool = {}
    canonical = [(c, NFD.normalize_str(chr(c))) for c in CODE_POINTS if c not in HANGUL]
    canonical = [(c, text) for c, text in canonical if text != chr(c)]
    known = dict(canonical)
    compatible = [(c, NFKD.normalize_str(chr(c))) for c in CODE_POINTS if c not in HANGUL]
    compatible = [(c, text) for c, text in compatible if text != known.get(c, chr(c))]
    print_maps("kCanonical", pool, canonical)
    print("// Where it differs from the canonical one.")
    print_maps("kCompatible", pool, compatible)
    print_list("constexpr Composition kCompositions[]",
               [f"{{0x{a:X}, 0x{b:X}, 0x{c:X}}}" for a, b, c in compositions(canonical)])
    print("// Combining classes by their order, which is all that counts; other characters have 0.")
    classes = combining_classes()
    runs = []
    for c in sorted(classes):
        if runs and runs[-1][1] == c - 1 and runs[-1][2] == classes[c]:
            runs[-1][1] = c
        else:
            runs.append([c, c, classes[c]])
    print_list("constexpr CombiningRun kCombining[]", [f"{{0x{a:X}, 0x{b:X}, {k}}}" for a, b, k in runs])
    print_maps("kLowercase", pool, mapped(normalizers.Lowercase()))
    print_maps("kNmt", pool, mapped(normalizers.Nmt()))
    bert = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    cleaned = mapped(normalizers.BertNormalizer(**bert | dict(clean_text=True)))
    assert all(text in ("", " ") for _, text in cleaned)
    print_ranges("kBertRemoved", {c for c, text in cleaned if text == ""})
    print_ranges("kBertSpaces", {c for c, text in cleaned if text == " "})
    chinese = mapped(normalizers.BertNormalizer(**bert | dict(handle_chinese_chars=True)))
    assert all(text == f" {chr(c)} " for c, text in chinese)
    print_ranges("kBertChinese", {c for c, _ in chinese})
    marks = mapped(normalizers.BertNormalizer(**bert | dict(strip_accents=True)))
    print_ranges("kBertAccents", {c for c, text in marks if text == ""})
    print_ranges("kAccents", {c for c, text in mapped(normalizers.StripAccents()) if text == ""})
    after, controls, prepends = graphemes()
    print("// Graphemes: what belongs to the character before it, what nothing belongs to, what takes the one after it.")
    print_ranges("kGraphemeJoins", after)
    print_ranges("kGraphemeControls", controls)
    print_ranges("kGraphemePrepends", prepends)
    print("constexpr char32_t kMappedText[] = {")
    flat = "".join(pool)
    for start in range(0, len(flat), 12):
        print("    " + " ".join(f"0x{ord(c):X}," for c in flat[start : start + 12]))
    print("};")


if __name__ == "__main__":
    main()
