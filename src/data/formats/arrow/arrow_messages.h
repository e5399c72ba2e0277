// Messages of Arrow's IPC format (arrow.apache.org/docs/format/Columnar.html), as far as one text column needs them.
// Enter the bytes after a file's magic; leave the schema's text column and the buffers of it in each record batch, all
// inside the bytes. What is wrong is a StreamError.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/formats/arrow/flat_table.h"

namespace sextant {

enum class ArrowMessageKind : uint8_t { none, schema, dictionary_batch, record_batch, tensor, sparse_tensor };

struct ArrowMessage {
  ArrowMessageKind kind = ArrowMessageKind::none;
  FlatTable header;
  int version = 0;
  std::string_view body;
  size_t bytes = 0;  // in all, with its prefix
};

// nullopt: the mark that ends the stream.
std::optional<ArrowMessage> read_arrow_message(std::string_view bytes);

enum class ArrowText : uint8_t { short_offsets, long_offsets, views };  // Utf8, LargeUtf8, Utf8View (and binary ones)

struct ArrowColumn {
  ArrowText text = ArrowText::short_offsets;
  size_t node = 0, buffer = 0;  // the first of its own in a record batch
  size_t views_before = 0;      // columns before it that have a count of buffers of their own
};

struct ArrowSchema {
  std::vector<std::string> names;     // of all columns
  std::optional<size_t> found;        // the one that was asked for
  std::optional<ArrowColumn> column;  // it, where it holds text
  std::string held;                   // what it holds otherwise
};

ArrowSchema read_arrow_schema(const ArrowMessage& message, std::string_view wanted);

enum class ArrowCompression : int8_t { none = -1, lz4_frame = 0, zstd = 1 };

struct ArrowBatch {
  int64_t rows = 0;
  ArrowCompression compression = ArrowCompression::none;
  std::string_view validity;               // empty: no nulls; these are as stored, perhaps compressed
  std::string_view offsets;                // or views
  std::vector<std::string_view> contents;  // one, or as many as views refer to
};

ArrowBatch read_arrow_batch(const ArrowMessage& message, const ArrowColumn& column);

}  // namespace sextant
