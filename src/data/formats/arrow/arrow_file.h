// Documents of one string column of an Arrow IPC file or stream (.arrow, Feather version 2, the caches of Hugging Face
// datasets). The file is mapped; besides it, memory holds what is compressed of one record batch. Null and empty
// strings are empty documents. Record batches are read in the order in which they stand, up to the mark that ends the
// stream: a file without it was cut. What is wrong is a UserError with the record batch.
#pragma once

#include <vector>

#include "data/formats/arrow/arrow_messages.h"
#include "data/formats/document_format.h"

namespace sextant {

class ArrowFile : public DocumentFile {
 public:
  // `bytes` must outlive the object; `name` is the file's, for messages.
  ArrowFile(std::string name, std::string_view bytes, const TextOptions& options);

  std::optional<std::string_view> next() override;
  std::string place() const override;
  int64_t number() const override { return row_; }

 private:
  void open(const std::string& column);
  bool open_batch();  // the next with rows; false after the last
  std::string_view plain(std::string_view stored, ArrowCompression compression, std::string& out) const;
  std::string_view text_of(size_t row) const;
  std::string_view text_of_view(size_t row) const;

  std::string name_;
  std::string_view bytes_;
  size_t at_ = 0;  // of the next message
  ArrowColumn column_;
  int64_t batches_ = 0;
  int64_t rows_ = 0, row_in_batch_ = 0;  // of the open batch
  int64_t row_ = 0;
  std::string_view validity_, offsets_;
  std::vector<std::string_view> contents_;
  std::string validity_bytes_, offset_bytes_;
  std::vector<std::string> content_bytes_;
  int64_t max_document_bytes_;
};

}  // namespace sextant
