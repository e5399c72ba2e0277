"""Writes tests/fixtures/tables: small tables by pyarrow and Python's csv and json modules, all with the same texts in
column "text", which texts.jsonl holds without those that are null or empty. Columns of other types, some nested, stand
around it. refused/ holds what Sextant does not read, many/ longer tables. Needs pyarrow (pip install pyarrow==26.0.1).
"""
import csv
import gzip
import io
import json
import pathlib
import shutil

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

OUT = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "tables"

LINES = [
    "The first text.",
    "",
    None,
    'Quotes "inside", commas, and a\nline break.',
    "caf\u00e9 \u4e2d\u6587 \U0001f600 \u0627\u0644\u0639\u0631\u0628\u064a\u0629",
    "line one\r\nline two\ttabbed",
    "repeated words " * 40,
    None, None, None, None, None, None, None,  # a whole row group of seven rows
    "the same", "the same", "the same", "", "the sameness", "the samples", "the",
    "x", " ", "\u00e9" * 300, '"', "ends with a quote\"", ",,,", "twelve bytes", "thirteen byte",
    "abcdefgh" * 33, "the same", None, "the last one",
]


def columns(text_type=pa.string(), lines=None, nullable=True):
    lines = LINES if lines is None else lines
    n = len(lines)
    arrays = {
        "id": pa.array(range(n), pa.int64()),
        "tags": pa.array([["a", "b"][: i % 3] if i % 5 else None for i in range(n)], pa.list_(pa.string())),
        "meta": pa.array([{"url": f"u{i % 4}", "at": {"line": i}} for i in range(n)],
                         pa.struct([("url", pa.string()), ("at", pa.struct([("line", pa.int32())]))])),
        "text": pa.array(lines, text_type),
        "score": pa.array([i / 4 for i in range(n)], pa.float64()),
    }
    fields = [pa.field(name, array.type, nullable or name != "text") for name, array in arrays.items()]
    return pa.Table.from_arrays(list(arrays.values()), schema=pa.schema(fields))


def write_parquet(name, table=None, **options):
    settings = {"compression": "NONE", "use_dictionary": False, "row_group_size": 7, "store_schema": False,
                "write_statistics": False}
    pq.write_table(columns() if table is None else table, OUT / f"{name}.parquet", **(settings | options))


def parquet_files():
    write_parquet("plain")
    write_parquet("checksums", write_page_checksum=True, write_statistics=True)
    write_parquet("one_group_many_pages", row_group_size=1000, data_page_size=100, write_batch_size=3)
    for version in ("1.0", "2.0"):
        for codec in ("none", "snappy", "gzip", "zstd", "lz4"):
            write_parquet(f"v{version[0]}_{codec}", compression=codec, data_page_version=version, use_dictionary=["text"],
                          row_group_size=13)
        for encoding in ("DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"):
            write_parquet(f"v{version[0]}_{encoding.lower()}", data_page_version=version, compression="snappy",
                          column_encoding={"text": encoding})
            write_parquet(f"v{version[0]}_{encoding.lower()}_pages", data_page_version=version, row_group_size=1000,
                          data_page_size=64, write_batch_size=5, column_encoding={"text": encoding})
    write_parquet("plain_dictionary", version="1.0", use_dictionary=["text"], row_group_size=1000)
    write_parquet("dictionary_given_up", use_dictionary=["text"], dictionary_pagesize_limit=200, data_page_size=64,
                  write_batch_size=4, row_group_size=1000)
    no_nulls = [line or "" for line in LINES]
    write_parquet("required", columns(lines=no_nulls, nullable=False), compression="snappy", data_page_version="2.0")
    write_parquet("required_v1", columns(lines=no_nulls, nullable=False), use_dictionary=["text"])
    write_parquet("large_string", columns(pa.large_string()))
    write_parquet("binary", columns(pa.binary(), [None if line is None else line.encode() for line in LINES]))
    # More values than a block of differences or a group of packed indices has. The test knows these texts.
    many = [f"document {i % 300} of many" for i in range(1000)]
    long_table = pa.table({"text": many})
    (OUT / "many").mkdir()
    for name, options in {"dictionary": {"use_dictionary": True},
                          "delta_length": {"column_encoding": {"text": "DELTA_LENGTH_BYTE_ARRAY"}},
                          "delta": {"column_encoding": {"text": "DELTA_BYTE_ARRAY"}}}.items():
        write_parquet(f"many/{name}", long_table, row_group_size=1000, compression="zstd", **options)
    write_arrow("many/stream.arrow", long_table, pa.ipc.new_stream, compression="zstd", rows=300)


def write_arrow(name, table, new_writer, compression=None, rows=7):
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with new_writer(str(OUT / name), table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rows)


def arrow_files():
    table = columns()
    category = pa.array([f"kind {i % 3}" for i in range(table.num_rows)]).dictionary_encode()
    union = pa.UnionArray.from_dense(pa.array([0] * table.num_rows, pa.int8()),
                                     pa.array(range(table.num_rows), pa.int32()), [table["id"].combine_chunks()])
    wide = table.add_column(0, "kind", category).add_column(1, "nothing", pa.nulls(table.num_rows))
    wide = wide.add_column(2, "union", union)
    for compression in (None, "zstd", "lz4"):
        suffix = compression or "plain"
        write_arrow(f"file_{suffix}.arrow", wide, pa.ipc.new_file, compression)
        write_arrow(f"stream_{suffix}.arrow", table, pa.ipc.new_stream, compression)
    write_arrow("large.arrow", columns(pa.large_string()), pa.ipc.new_file)
    viewed = columns(pa.string_view())
    other = pa.array(["a view that is longer than twelve bytes"] * viewed.num_rows, pa.string_view())
    write_arrow("views.arrow", viewed.add_column(0, "other", other), pa.ipc.new_file, rows=1000)
    write_arrow("views_zstd.arrow", viewed, pa.ipc.new_stream, "zstd")
    feather.write_feather(table, OUT / "default.feather")


class I64(int):
    """An integer of 64 bits in Thrift; others have 32."""


class Thrift:
    """Thrift's compact encoding, as far as Parquet's metadata needs it: integers, strings, structs and lists of one kind."""

    @staticmethod
    def varint(value):
        out = b""
        while value > 0x7F:
            out += bytes([value & 0x7F | 0x80])
            value >>= 7
        return out + bytes([value])

    @classmethod
    def value(cls, value):
        if isinstance(value, int):
            return 6 if isinstance(value, I64) else 5, cls.varint(value << 1)
        if isinstance(value, bytes):
            return 8, cls.varint(len(value)) + value
        if isinstance(value, dict):
            return 12, cls.struct(value)
        kinds, items = zip(*map(cls.value, value))
        return 9, bytes([len(items) << 4 | kinds[0]]) + b"".join(items)

    @classmethod
    def struct(cls, fields):
        out, last = b"", 0
        for number, value in fields.items():
            kind, encoded = cls.value(value)
            out += bytes([number - last << 4 | kind]) + encoded
            last = number
        return out + b"\0"


def lz4_literals(data):
    """A block of LZ4 that is literals alone."""
    more = len(data) - 15
    length = b"" if more < 0 else b"\xff" * (more // 255) + bytes([more % 255])
    return bytes([min(len(data), 15) << 4]) + length + data


def hadoop_lz4_file():
    """One column in the codec LZ4 as Hadoop writes it, which pyarrow does not: pieces, each after its two sizes."""
    values = b"".join(len(line.encode()).to_bytes(4, "little") + line.encode() for line in (line or "" for line in LINES))
    stored = b""
    for at in range(0, len(values), 500):
        piece = values[at:at + 500]
        block = lz4_literals(piece)
        stored += len(piece).to_bytes(4, "big") + len(block).to_bytes(4, "big") + block
    byte_array, plain, rle, codec, begin = 6, 0, 3, 5, len(b"PAR1")
    rows = I64(len(LINES))
    header = Thrift.struct({1: 0, 2: len(values), 3: len(stored), 5: {1: len(LINES), 2: plain, 3: rle, 4: rle}})
    size = I64(len(header) + len(stored))
    column = {1: byte_array, 2: [plain], 3: [b"text"], 4: codec, 5: rows, 6: I64(len(header) + len(values)), 7: size,
              9: I64(begin)}
    group = {1: [{2: I64(begin), 3: column}], 2: size, 3: rows}
    schema = [{4: b"schema", 5: 1}, {1: byte_array, 3: 0, 4: b"text", 6: 0}]
    metadata = Thrift.struct({1: 1, 2: schema, 3: rows, 4: [group]})
    (OUT / "hadoop_lz4.parquet").write_bytes(
        b"PAR1" + header + stored + metadata + len(metadata).to_bytes(4, "little") + b"PAR1")


def text_files():
    rows = [(i, line or "", i / 4) for i, line in enumerate(LINES)]
    for name, dialect in (("table.csv", {}), ("table.tsv", {"delimiter": "\t"}),
                          ("quoted.csv", {"quoting": csv.QUOTE_ALL, "lineterminator": "\n"})):
        out = io.StringIO(newline="")
        writer = csv.writer(out, **dialect)
        writer.writerow(["id", "text", "score, of what"])
        writer.writerows(rows)
        (OUT / name).write_bytes(out.getvalue().encode())
    (OUT / "table.csv.gz").write_bytes(gzip.compress((OUT / "table.csv").read_bytes(), mtime=0))
    objects = [{"id": i, "meta": {"a": [i, "}"]}, "text": line} for i, line, _ in rows]
    (OUT / "array.json").write_text(json.dumps(objects, indent=1))
    (OUT / "object.json").write_text(
        json.dumps({"version": 1, "info": {"a": [1]}, "data": objects, "note": "]"}, ensure_ascii=False))


def refused_files():
    (OUT / "refused").mkdir()
    small = columns(lines=LINES[:7])
    write_parquet("refused/brotli", small, compression="brotli")
    write_parquet("refused/byte_stream_split", pa.table({"text": pa.array([b"abcd"] * 4, pa.binary(4))}),
                  column_encoding={"text": "BYTE_STREAM_SPLIT"})
    write_parquet("refused/no_rows", columns(lines=[]))
    encoded = columns().set_column(3, "text", columns()["text"].dictionary_encode())
    write_arrow("refused/dictionary.arrow", encoded, pa.ipc.new_file)


if __name__ == "__main__":
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    parquet_files()
    hadoop_lz4_file()
    arrow_files()
    text_files()
    refused_files()
    (OUT / "texts.jsonl").write_text("".join(json.dumps({"text": line}) + "\n" for line in LINES if line))
