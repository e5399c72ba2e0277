// One open file of documents, whatever its format. Every format of src/data/formats implements this.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sextant {

class DocumentFile {
 public:
  virtual ~DocumentFile() = default;

  // The next document, until the next call; it may be empty (a blank line, a null). nullopt after the last.
  // What is wrong is a UserError with its place, or a StreamError, to which the caller adds place().
  virtual std::optional<std::string_view> next() = 0;

  virtual std::string place() const = 0;  // of what next() returned or failed to read: "a.jsonl:17", "a.parquet: row 3"
  virtual int64_t consumed() const = 0;   // bytes of the file on disk, for progress
};

}  // namespace sextant
