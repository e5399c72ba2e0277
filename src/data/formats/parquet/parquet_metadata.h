// Metadata of a Parquet file (github.com/apache/parquet-format, parquet.thrift), as far as one text column needs it.
// The input is the file's bytes; the output is positions and types, checked against the file's size. An error is a
// StreamError.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

enum class ParquetType : int32_t { boolean, int32, int64, int96, float32, float64, byte_array, fixed_byte_array };
enum class ParquetRepetition : int32_t { required, optional, repeated };

struct ParquetColumn {  // of the top level
  std::string name;
  std::optional<ParquetType> type;  // a group has none
  ParquetRepetition repetition = ParquetRepetition::required;
  size_t leaf = 0;  // the first one in or below it, in the order of a row group's column chunks
};

struct ParquetChunk {  // of one column in one row group
  std::string_view bytes;
  int32_t codec = 0;
  int64_t values = 0;
};

struct ParquetRowGroup {
  int64_t rows = 0;
  std::optional<ParquetChunk> chunk;  // of the text column
};

struct ParquetPage {
  enum class Kind : int32_t { data, index, dictionary, data_v2 };

  Kind kind = Kind::data;
  int32_t size = 0, stored_size = 0;  // uncompressed, and in the file
  std::optional<uint32_t> checksum;
  int32_t values = 0;
  int32_t encoding = 0;
  int32_t level_encoding = 0;                          // of definition levels, in version 1
  int32_t definition_bytes = 0, repetition_bytes = 0;  // in version 2, uncompressed
  bool compressed = true;                              // in version 2
  size_t header_bytes = 0;
};

// The footer of the file, without what stands around it; `body` is the file before it.
struct ParquetFooter {
  std::string_view metadata;
  std::string_view body;
};

ParquetFooter find_parquet_footer(std::string_view file);
std::vector<ParquetColumn> read_parquet_columns(std::string_view metadata);
std::vector<ParquetRowGroup> read_parquet_row_groups(const ParquetFooter& footer, size_t leaf);
ParquetPage read_parquet_page(std::string_view bytes);

}  // namespace sextant
