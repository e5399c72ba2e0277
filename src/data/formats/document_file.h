// One open file of documents, whatever its format. Every format of src/data/formats implements this.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sextant {

// One document is wrong, and the file around it is not.
class UnreadableDocument : public UserError {
 public:
  using UserError::UserError;
};

// Unit in which a format counts its documents.
enum class DocumentUnit : uint8_t { line, document, row, element };

// "a.jsonl:17", "a.parquet: row 3".
std::string document_place(std::string_view file, DocumentUnit unit, int64_t number);

class DocumentFile {
 public:
  virtual ~DocumentFile() = default;

  // The next document, until the next call; it may be empty (a blank line, a null). nullopt after the last.
  // An error is a UserError with its place, or a StreamError, to which the caller adds place(). After an
  // UnreadableDocument the next one may be read; after a RecordTooLong, once discard_record() has been called.
  virtual std::optional<std::string_view> next() = 0;
  virtual void discard_record();

  virtual std::string place() const = 0;  // of what next() returned or failed to read: "a.jsonl:17", "a.parquet: row 3"
  virtual int64_t number() const = 0;     // of the same document: its line, row or number in the file, from 1
};

}  // namespace sextant
