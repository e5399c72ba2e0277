#!/usr/bin/env python3
"""Makes a tokenizer.json of every kind that is supported, with Hugging Face `tokenizers` and `sentencepiece`.

    tests/peers/tokenizer_kinds.py OUT_DIRECTORY [NAME ...]
    tests/peers/tokenizer_kinds.py --fixtures      writes tests/fixtures/tokenizer/kinds: small ones, with the ids of
                                                   the sample's documents, for tests that need no Python

`tests/peers/tokenizer_peer.py` compares ids for the files that it is given. NAME: only these.
"""

import io
import json
import struct
import sys
import tempfile
import zlib
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

sys.path.insert(0, str(Path(__file__).parent))
from mixed_text import FIXTURES, sample_documents  # noqa: E402

SPECIAL = ["<unk>", "<s>", "</s>"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
PATTERNS = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "llama3": QWEN2.replace(r"\p{N}|", r"\p{N}{1,3}|"),
    "qwen2": QWEN2,
    "cl100k": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    "o200k": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
             r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
             r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "tekken": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
              r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
              r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "bloom": r" ?[^(\s|[.,!?…。，、।۔،])]+",
}
DEEPSEEK_V3 = [
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
]

FALCON = {"type": "Sequence", "pretokenizers": [
    {"type": "Punctuation", "behavior": "Contiguous"},
    {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    {"type": "Digits", "individual_digits": False},
    {"type": "Split", "pattern": {"Regex": "[0-9][0-9][0-9]"}, "behavior": "Isolated", "invert": False}]}


def texts():
    for data in sample_documents():
        try:
            yield data.decode()
        except UnicodeDecodeError:
            pass


def llama_decoder():
    return decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                              decoders.Strip(" ", 1, 0)])


def bpe(size, normalizer=None, pre_tokenizer=None, special=SPECIAL, alphabet=400, **options):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>" if "<unk>" in special else None, **options))
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer or pre_tokenizers.Metaspace()
    if pre_tokenizer is None:
        tokenizer.decoder = llama_decoder() if "byte_fallback" in options else decoders.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False, limit_alphabet=alphabet,
                                  max_token_length=12)
    tokenizer.train_from_iterator(texts(), trainer)
    return tokenizer


def byte_level(size, steps=None, normalizer=None):
    tokenizer = Tokenizer(models.BPE())
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=steps is None)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*(steps or []), last])
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=["<|endoftext|>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts(), trainer)
    return tokenizer


def changed(tokenizer, **parts):
    """The same with other parts of its JSON; `model` is updated, not replaced."""
    content = json.loads(tokenizer.to_str())
    content["model"].update(parts.pop("model", {}))
    content.update(parts)
    return Tokenizer.from_str(json.dumps(content))


def piece(part):
    return json.loads(part.__getstate__())


PREPEND_REPLACE = {"type": "Sequence", "normalizers": [
    {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}


def metaspace(scheme, split):
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split}


def all_merges(content):
    """Every pair that makes a token, as converters from sentencepiece write them: by the token's place, then the parts'."""
    vocab = content["model"]["vocab"]
    rows = []
    for token, rank in vocab.items():
        for cut in range(1, len(token)):
            left, right = token[:cut], token[cut:]
            if left in vocab and right in vocab and token not in SPECIAL and token not in BYTES:
                rows.append((rank, vocab[left], vocab[right], left, right))
    return [[left, right] for _, _, _, left, right in sorted(rows)]


def llama2(size, **parts):
    base = bpe(size, special=SPECIAL + BYTES, byte_fallback=True, fuse_unk=True)
    base.decoder = llama_decoder()
    base.add_tokens([AddedToken("<|wide|>", lstrip=True, rstrip=True, normalized=False),
                     AddedToken("keepword", single_word=True, normalized=True), AddedToken("<|pad|>", normalized=True)])
    base.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    content = json.loads(base.to_str())
    if parts.pop("every_merge", False):
        parts.setdefault("model", {})["merges"] = all_merges(content)
    return changed(base, **{"pre_tokenizer": None} | parts)


def field_of(message, wanted):
    """The bytes of a field of a protocol buffer that has lengths, numbers and 32-bit fields only."""
    def number(at):
        value, shift = 0, 0
        while True:
            value, shift = value | (message[at] & 127) << shift, shift + 7
            at += 1
            if message[at - 1] < 128:
                return value, at

    at = 0
    while at < len(message):
        key, at = number(at)
        if key & 7 == 2:
            size, at = number(at)
            if key >> 3 == wanted:
                return message[at : at + size]
            at += size
        else:
            at = at + 4 if key & 7 == 5 else number(at)[1]
    return b""


def charsmap(rule):
    import sentencepiece as spm

    with tempfile.TemporaryDirectory() as folder:
        text, table = Path(folder) / "text.txt", Path(folder) / "rules.tsv"
        text.write_text("a b c d e f g h\n" * 20)
        table.write_text("41\t61\n65 301\tE9\nFF21\t41\n9\t20\nA\t20\nD A\t20\n200B\t\n3000\t20\n61 30A 301\t1FB\nFB01\t66 69\n")
        rules = dict(normalization_rule_name=rule) if rule else dict(normalization_rule_tsv=str(table))
        model = io.BytesIO()
        spm.SentencePieceTrainer.train(input=str(text), model_writer=model, vocab_size=14, model_type="bpe",
                                       minloglevel=2, hard_vocab_limit=False, **rules)
        normalizer_spec = field_of(model.getvalue(), 3)
        return field_of(normalizer_spec, 2)


def unigram(size, rule="nmt_nfkc", pre_tokenizer=None, **parts):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap(rule)),
                                                 normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizer or pre_tokenizers.Metaspace()
    special = SPECIAL + (BYTES if parts.get("model", {}).get("byte_fallback") else [])
    trainer = trainers.UnigramTrainer(vocab_size=size, special_tokens=special, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(texts(), trainer)
    tokenizer.decoder = llama_decoder() if "<0x00>" in special else decoders.Metaspace()
    return changed(tokenizer, **parts)


FLAGS = ["lstrip", "rstrip", "single_word", "normalized", "special"]


def every_flag():
    """An added token of signs and one of letters for each combination of flags."""
    for bits in range(1 << len(FLAGS)):
        flags = {name: bool(bits >> i & 1) for i, name in enumerate(FLAGS)}
        yield AddedToken(f"<T{bits:02}>", **flags)
        yield AddedToken(f"Tok{bits:02}É", **flags)


def with_every_flag(tokenizer):
    for token in every_flag():
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
    return tokenizer


FLAG_MARKS = [mark for token in every_flag() for mark in (token.content, token.content.lower(), token.content + token.content)]


def around(tokenizer, *parts):
    """With a post-processor that puts the special tokens before and after a text."""
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), *parts])
    return tokenizer


def begin_and_end(tokenizer):
    tokenizer.add_special_tokens(["<s>", "</s>"])
    ids = [(name, tokenizer.token_to_id(name)) for name in ("<s>", "</s>")]
    return around(tokenizer, processors.TemplateProcessing(single="<s> <s> $A </s>", special_tokens=ids))


def roberta(tokenizer, kind):
    tokenizer.add_special_tokens(["<s>", "</s>"])
    begin, end = (("<s>", tokenizer.token_to_id("<s>")), ("</s>", tokenizer.token_to_id("</s>")))
    tokenizer.post_processor = kind(end, begin)
    return tokenizer


def flagged(tokenizer):
    tokenizer.add_tokens([AddedToken("<|wide|>", lstrip=True, rstrip=True, normalized=True),
                          AddedToken("keepword", single_word=True, normalized=True), AddedToken("Kapitän", normalized=True),
                          AddedToken("<|pad|>", normalized=False), AddedToken("THE", lstrip=True, normalized=True),
                          AddedToken("ing", rstrip=True, single_word=True, normalized=False)])
    return tokenizer


def albert(size):
    """As ALBERT's files are: accents and cases go, then the charsmap."""
    tokenizer = unigram(size)
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents(),
        normalizers.Lowercase(), normalizers.Precompiled(charsmap("nmt_nfkc")), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    return tokenizer


NORMALIZERS = {
    "nfc": normalizers.NFC(), "nfd": normalizers.NFD(), "nfkc": normalizers.NFKC(), "nfkd": normalizers.NFKD(),
    "lowercase": normalizers.Lowercase(), "strip": normalizers.Strip(), "strip_left": normalizers.Strip(right=False),
    "strip_accents": normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()]), "nmt": normalizers.Nmt(),
    "prepend": normalizers.Prepend("_"), "replace": normalizers.Replace(Regex(r"\s+"), " "),
    "replace_string": normalizers.Replace("the", "THE"), "remove": normalizers.Replace(Regex("[aeiou]"), ""),
    "bert": normalizers.BertNormalizer(), "bert_cased": normalizers.BertNormalizer(lowercase=False, strip_accents=True),
    "sequence": normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase(), normalizers.Strip(),
                                      normalizers.Replace("``", '"')]),
}
PRE_TOKENIZERS = {
    **{f"punctuation_{b}": pre_tokenizers.Punctuation(b)
       for b in ["isolated", "removed", "contiguous", "merged_with_previous", "merged_with_next"]},
    "digits": pre_tokenizers.Digits(), "digits_single": pre_tokenizers.Digits(individual_digits=True),
    "whitespace": pre_tokenizers.Whitespace(), "whitespace_split": pre_tokenizers.WhitespaceSplit(),
    "bert": pre_tokenizers.BertPreTokenizer(), "delimiter": pre_tokenizers.CharDelimiterSplit("e"),
    **{f"split_{b}": pre_tokenizers.Split(Regex(r"\d|e+"), b)
       for b in ["contiguous", "merged_with_previous", "merged_with_next", "removed"]},
    "split_and_metaspace": pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]),
    "metaspace_first": pre_tokenizers.Sequence([pre_tokenizers.Punctuation(), pre_tokenizers.Metaspace(prepend_scheme="first")]),
}


def split_by(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def kinds(size):
    """Names, and how to make each."""
    out = {
        "llama2": lambda: llama2(size, normalizer=PREPEND_REPLACE),
        "llama2_every_merge": lambda: llama2(size, normalizer=PREPEND_REPLACE, every_merge=True),
        "llama2_first": lambda: llama2(size, pre_tokenizer=metaspace("first", False)),
        "metaspace_always": lambda: llama2(size, pre_tokenizer=metaspace("always", True)),
        "metaspace_never": lambda: llama2(size, pre_tokenizer=metaspace("never", False)),
        "metaspace_always_unsplit": lambda: llama2(size, pre_tokenizer=metaspace("always", False)),
        "metaspace_first_split": lambda: llama2(size, pre_tokenizer=metaspace("first", True)),
        "metaspace_never_split": lambda: llama2(size, pre_tokenizer=metaspace("never", True)),
        "ignore_merges": lambda: llama2(size, pre_tokenizer=metaspace("always", True), model={"ignore_merges": True}),
        "unknown": lambda: changed(bpe(size), pre_tokenizer=None, normalizer=PREPEND_REPLACE),
        "unknown_fused": lambda: changed(bpe(size, fuse_unk=True), pre_tokenizer=metaspace("first", False)),
        "unknown_dropped": lambda: bpe(size, special=["<s>"]),
        "some_bytes": lambda: changed(bpe(size, special=SPECIAL + BYTES[:0xC8], byte_fallback=True, fuse_unk=True),
                                      pre_tokenizer=None, normalizer=PREPEND_REPLACE),
        "unigram": lambda: flagged(unigram(size)),
        "unigram_small_map": lambda: unigram(size, rule=None, pre_tokenizer=pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])),
        "unigram_bytes": lambda: changed(unigram(size, rule=None, model={"byte_fallback": True}),
                                         pre_tokenizer=metaspace("first", False)),
        "unigram_nfkc_unsplit": lambda: changed(unigram(size, rule="nfkc"), pre_tokenizer=metaspace("always", False)),
        "albert": lambda: albert(size),
        "qwen2_nfc": lambda: byte_level(size, [split_by(QWEN2)], normalizers.NFC()),
        "flags": lambda: with_every_flag(byte_level(size)),
        "flags_lowercase": lambda: with_every_flag(byte_level(size, normalizer=normalizers.Lowercase())),
        "flags_nfkd_strip": lambda: with_every_flag(byte_level(size, normalizer=normalizers.Sequence(
            [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Strip()]))),
        "flags_llama2": lambda: with_every_flag(llama2(size, normalizer=PREPEND_REPLACE)),
        "flags_metaspace_first": lambda: with_every_flag(llama2(size, pre_tokenizer=metaspace("first", True))),
        "flags_unigram": lambda: with_every_flag(unigram(size)),
        "begin_and_end": lambda: begin_and_end(byte_level(size)),
        "roberta": lambda: roberta(byte_level(size), processors.RobertaProcessing),
        "bert_processing": lambda: roberta(byte_level(size), processors.BertProcessing),
        "deepseek_v3": lambda: byte_level(size, [split_by(p) for p in DEEPSEEK_V3]),
        "falcon": lambda: changed(byte_level(size, [pre_tokenizers.Punctuation("contiguous")]), pre_tokenizer=FALCON),
    }
    for name, pattern in PATTERNS.items():
        out[f"pattern_{name}"] = lambda pattern=pattern: byte_level(size, [split_by(pattern)])
    for name, normalizer in NORMALIZERS.items():
        out[f"normalizer_{name}"] = lambda n=normalizer: flagged(byte_level(size, normalizer=n))
        out[f"char_normalizer_{name}"] = lambda n=normalizer: flagged(
            bpe(size, normalizer=n, pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme="first")))
    for name, step in PRE_TOKENIZERS.items():
        out[f"pre_tokenizer_{name}"] = lambda s=step: bpe(size, pre_tokenizer=s)
    return out


FIXTURE_KINDS = ["llama2", "llama2_every_merge", "llama2_first", "some_bytes", "unigram_small_map", "unigram_bytes",
                 "normalizer_nfc", "char_normalizer_sequence", "pre_tokenizer_metaspace_first"]


def write_fixtures():
    folder = FIXTURES / "kinds"
    folder.mkdir(exist_ok=True)
    documents = sample_documents()
    made = kinds(900) | {name: make for name, make in kinds(3000).items() if name.startswith("unigram")}
    for name in FIXTURE_KINDS:
        tokenizer = made[name]()
        content = json.loads(tokenizer.to_str())
        (folder / f"{name}.json").write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n")
        lines, crc = [], 0
        for i, data in enumerate(documents):
            ids = tokenizer.encode(data.decode("utf-8", errors="replace"), add_special_tokens=False).ids
            packed = struct.pack(f"<{len(ids)}I", *ids)
            crc = zlib.crc32(packed, crc)
            if i < 300:
                lines.append(f"{len(ids)} {zlib.crc32(packed)}")
        (folder / f"{name}.expected").write_text("\n".join(lines) + f"\n{len(documents)} {crc}\n")
        print(name, content["model"]["type"])


def main():
    if sys.argv[1] == "--fixtures":
        return write_fixtures()
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for name, make in kinds(3000).items():
        if sys.argv[2:] and name not in sys.argv[2:]:
            continue
        make().save(str(out / f"{name}.json"))
        print(out / f"{name}.json", flush=True)


if __name__ == "__main__":
    main()
