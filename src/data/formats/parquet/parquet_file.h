// Documents of one string column of a Parquet file. The file is mapped; besides it, memory holds one page and one
// dictionary page. Null and empty strings are empty documents. Whatever is wrong is a UserError with row group and
// page.
//   a file: PAR1, row groups, metadata, its length, PAR1
//   a row group: for every column a chunk: a dictionary page, perhaps, and data pages
//   a data page: definition levels (which rows are null), then the values that are not
#pragma once

#include <memory>
#include <vector>

#include "data/formats/document_format.h"
#include "data/formats/parquet/byte_arrays.h"
#include "data/formats/parquet/packed_integers.h"
#include "data/formats/parquet/parquet_metadata.h"

namespace sextant {

class ParquetFile : public DocumentFile {
 public:
  // `bytes` must outlive the object; `name` is the file's, for messages.
  ParquetFile(std::string name, std::string_view bytes, const TextOptions& options);

  std::optional<std::string_view> next() override;
  std::string place() const override;
  int64_t number() const override { return row_; }

 private:
  void open(const std::string& column);
  const ParquetColumn& choose(const std::vector<ParquetColumn>& columns, const std::string& wanted) const;
  bool open_page();  // the next data page with rows, in this row group or a later one; false after the last
  bool open_row_group();
  void open_data(const ParquetPage& page, std::string_view stored);
  std::string_view uncompressed(std::string_view stored, int64_t size, std::string& out) const;
  std::string page_place() const;

  std::string name_;
  std::string_view bytes_;
  bool optional_ = false;  // whether the column may hold nulls
  std::vector<ParquetRowGroup> groups_;
  size_t groups_opened_ = 0;
  std::string_view chunk_;     // what is left of the open one
  int64_t rows_in_chunk_ = 0;  // left after the open page
  int64_t pages_opened_ = 0;   // of the open chunk
  std::string dictionary_bytes_, page_bytes_;
  std::optional<std::vector<std::string_view>> dictionary_;
  std::optional<RunReader> levels_;
  std::unique_ptr<ByteArrays> values_;
  int64_t rows_in_page_ = 0;  // left
  int64_t row_ = 0;
  int64_t max_document_bytes_;
};

}  // namespace sextant
