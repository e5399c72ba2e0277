#include "data/formats/parquet/parquet_metadata.h"

#include "data/formats/parquet/thrift_compact.h"

namespace sextant {

namespace {

constexpr std::string_view kParquetMagic = "PAR1", kEncryptedMagic = "PARE";

struct SchemaElement {
  std::string name;
  std::optional<ParquetType> type;
  ParquetRepetition repetition = ParquetRepetition::required;
  int32_t children = 0;
};

SchemaElement read_schema_element(ThriftReader& in) {
  SchemaElement element;
  in.read_struct([&](int id, ThriftType type) {
    if (id == 1) {
      int32_t code = in.read_i32(type);
      if (code < 0 || code > static_cast<int32_t>(ParquetType::fixed_byte_array))
        throw StreamError(fmt::format("the schema has a column of unknown type {}", code));
      element.type = static_cast<ParquetType>(code);
    } else if (id == 3) {
      int32_t code = in.read_i32(type);
      if (code < 0 || code > static_cast<int32_t>(ParquetRepetition::repeated))
        throw StreamError(fmt::format("the schema has a column of unknown repetition {}", code));
      element.repetition = static_cast<ParquetRepetition>(code);
    } else if (id == 4) {
      element.name = in.read_binary(type);
    } else if (id == 5) {
      element.children = in.read_i32(type);
      if (element.children < 0) throw StreamError("the schema has a group of less than no columns");
    } else {
      in.skip(type);
    }
  });
  if (element.children > 0) element.type.reset();
  return element;
}

// The elements are a tree in depth-first order, its root first.
std::vector<ParquetColumn> top_of(const std::vector<SchemaElement>& elements) {
  if (elements.empty()) throw StreamError("the schema is empty");
  std::vector<ParquetColumn> columns;
  size_t at = 1, leaf = 0;
  for (int32_t i = 0; i < elements[0].children; ++i) {
    int64_t wanted = 1;  // elements that belong to this column and are still to come
    for (bool first = true; wanted > 0; --wanted, ++at, first = false) {
      if (at >= elements.size()) throw StreamError("the schema has fewer columns than its groups say");
      const SchemaElement& element = elements[at];
      if (first) columns.push_back({element.name, element.type, element.repetition, leaf});
      wanted += element.children;
      if (element.children == 0) ++leaf;
    }
  }
  return columns;
}

struct ChunkMetadata {
  bool encrypted = false, elsewhere = false, stated = false;
  int32_t codec = 0;
  int64_t values = 0, stored_size = 0, data_offset = 0;
  std::optional<int64_t> dictionary_offset;
};

void read_column_metadata(ThriftReader& in, ChunkMetadata& chunk) {
  chunk.stated = true;
  in.read_struct([&](int id, ThriftType type) {
    if (id == 4)
      chunk.codec = in.read_i32(type);
    else if (id == 5)
      chunk.values = in.read_i64(type);
    else if (id == 7)
      chunk.stored_size = in.read_i64(type);
    else if (id == 9)
      chunk.data_offset = in.read_i64(type);
    else if (id == 11)
      chunk.dictionary_offset = in.read_i64(type);
    else
      in.skip(type);
  });
}

ChunkMetadata read_chunk_metadata(ThriftReader& in) {
  ChunkMetadata chunk;
  in.read_struct([&](int id, ThriftType type) {
    if (id == 1) {
      chunk.elsewhere = !in.read_binary(type).empty();
    } else if (id == 3 && type == ThriftType::record) {
      read_column_metadata(in, chunk);
    } else {
      chunk.encrypted |= id == 8 || id == 9;
      in.skip(type);
    }
  });
  return chunk;
}

ParquetChunk placed(const ChunkMetadata& chunk, std::string_view body) {
  if (chunk.encrypted) throw StreamError("the text column is encrypted, which is not read");
  if (chunk.elsewhere) throw StreamError("the text column is in another file, which is not read");
  if (!chunk.stated) throw StreamError("nothing says where the text column is");
  if (chunk.values == 0) return {};  // an empty table's column may be nowhere
  int64_t begin = chunk.data_offset, dictionary = chunk.dictionary_offset.value_or(0);
  if (dictionary > 0 && dictionary < begin) begin = dictionary;  // some writers put a zero where there is none
  auto size = static_cast<int64_t>(body.size());
  if (begin < std::ssize(kParquetMagic) || begin > size || chunk.stored_size < 0 || chunk.stored_size > size - begin)
    throw StreamError(fmt::format("the text column is said to have {} bytes from byte {} on, which the file has not",
                                  chunk.stored_size, begin));
  if (chunk.values < 0) throw StreamError(fmt::format("the text column is said to have {} values", chunk.values));
  return {.bytes = body.substr(static_cast<size_t>(begin), static_cast<size_t>(chunk.stored_size)),
          .codec = chunk.codec,
          .values = chunk.values};
}

ParquetRowGroup read_row_group(ThriftReader& in, size_t leaf, std::string_view body) {
  ParquetRowGroup group;
  in.read_struct([&](int id, ThriftType type) {
    if (id == 1) {
      size_t index = 0;
      in.read_list(type, ThriftType::record, [&] {
        ChunkMetadata chunk = read_chunk_metadata(in);
        if (index++ == leaf) group.chunk = placed(chunk, body);
      });
    } else if (id == 3) {
      group.rows = in.read_i64(type);
    } else {
      in.skip(type);
    }
  });
  return group;
}

}  // namespace

ParquetFooter find_parquet_footer(std::string_view file) {
  constexpr size_t kLengthBytes = 4, kTailBytes = kLengthBytes + kParquetMagic.size();
  if (file.ends_with(kEncryptedMagic)) throw StreamError("the file is encrypted, which is not read");
  if (!file.starts_with(kParquetMagic)) throw StreamError("the file does not begin as a Parquet file does, with PAR1");
  if (file.size() < kParquetMagic.size() + kTailBytes || !file.ends_with(kParquetMagic))
    throw StreamError("the file is cut short: it does not end with PAR1");
  uint64_t length = ByteReader(file.substr(file.size() - kTailBytes)).little_endian<uint32_t>();
  uint64_t room = file.size() - kTailBytes - kParquetMagic.size();
  if (length > room)
    throw StreamError(fmt::format("the metadata is said to have {} bytes, where there is room for {}", length, room));
  auto begin = static_cast<size_t>(file.size() - kTailBytes - length);
  return {.metadata = file.substr(begin, static_cast<size_t>(length)), .body = file.substr(0, begin)};
}

std::vector<ParquetColumn> read_parquet_columns(std::string_view metadata) {
  std::vector<SchemaElement> elements;
  ThriftReader in(metadata);
  in.read_struct([&](int id, ThriftType type) {
    if (id == 2)
      in.read_list(type, ThriftType::record, [&] { elements.push_back(read_schema_element(in)); });
    else
      in.skip(type);
  });
  return top_of(elements);
}

std::vector<ParquetRowGroup> read_parquet_row_groups(const ParquetFooter& footer, size_t leaf) {
  std::vector<ParquetRowGroup> groups;
  ThriftReader in(footer.metadata);
  in.read_struct([&](int id, ThriftType type) {
    if (id == 4)
      in.read_list(type, ThriftType::record, [&] { groups.push_back(read_row_group(in, leaf, footer.body)); });
    else
      in.skip(type);
  });
  for (const ParquetRowGroup& group : groups)
    if (!group.chunk || group.chunk->values != group.rows)
      throw StreamError(fmt::format("a row group of {} rows has {} values in the text column", group.rows,
                                    group.chunk ? group.chunk->values : 0));
  return groups;
}

ParquetPage read_parquet_page(std::string_view bytes) {
  ParquetPage page;
  ThriftReader in(bytes);
  in.read_struct([&](int id, ThriftType type) {
    if (id == 1) {
      int32_t code = in.read_i32(type);
      if (code < 0 || code > static_cast<int32_t>(ParquetPage::Kind::data_v2))
        throw StreamError(fmt::format("the page is of unknown kind {}", code));
      page.kind = static_cast<ParquetPage::Kind>(code);
    } else if (id == 2) {
      page.size = in.read_i32(type);
    } else if (id == 3) {
      page.stored_size = in.read_i32(type);
    } else if (id == 4) {
      page.checksum = static_cast<uint32_t>(in.read_i32(type));
    } else if ((id == 5 || id == 7 || id == 8) && type == ThriftType::record) {
      const int encoding_id = id == 8 ? 4 : 2;
      in.read_struct([&](int inner, ThriftType inner_type) {
        if (inner == 1)
          page.values = in.read_i32(inner_type);
        else if (inner == encoding_id)
          page.encoding = in.read_i32(inner_type);
        else if (id == 5 && inner == 3)
          page.level_encoding = in.read_i32(inner_type);
        else if (id == 8 && inner == 5)
          page.definition_bytes = in.read_i32(inner_type);
        else if (id == 8 && inner == 6)
          page.repetition_bytes = in.read_i32(inner_type);
        else if (id == 8 && inner == 7)
          page.compressed = in.read_bool(inner_type);
        else
          in.skip(inner_type);
      });
    } else {
      in.skip(type);
    }
  });
  if (page.size < 0 || page.stored_size < 0 || page.values < 0 || page.definition_bytes < 0 ||
      page.repetition_bytes < 0)
    throw StreamError("the page's header has a negative size");
  page.header_bytes = in.at();
  return page;
}

}  // namespace sextant
