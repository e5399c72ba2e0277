// Documents of a table of comma- or tab-separated values (RFC 4180), read as a stream in memory bounded by the longest
// field; base/csv.h reads small tables whole. The first row names the columns. A record begins the line that place()
// gives. As Python's csv module has it, a quote inside a field that does not begin with one is a character.
#pragma once

#include <memory>
#include <vector>

#include "data/formats/document_format.h"
#include "data/formats/stream_characters.h"

namespace sextant {

struct CsvOptions {
  std::string name;  // of the file, for messages
  std::string column = "text";
  char separator = ',';
  int64_t max_document_bytes = int64_t{1} << 30;
};

class CsvFile : public DocumentFile {
 public:
  CsvFile(std::unique_ptr<ByteStream> stream, CsvOptions options);

  std::optional<std::string_view> next() override;
  std::string place() const override;
  int64_t number() const override { return line_; }

 private:
  void read_header();
  bool read_record(size_t kept);  // false at the end; the field `kept` is then in text_
  enum class Field : uint8_t { kept, skipped };
  void read_field(Field field);  // up to the separator or line end
  void read_quoted(Field field);
  bool take_line_end();  // true: a record has ended
  void take_piece(Field field, std::string_view piece);

  CsvOptions options_;
  StreamCharacters in_;
  std::array<bool, 256> ends_field_{};
  std::vector<std::string> columns_;
  bool has_header_ = false;
  size_t column_ = 0;  // of the text
  size_t fields_ = 0;  // of the record that was read
  int64_t line_ = 0;   // where it begins
  std::string text_;
};

}  // namespace sextant
