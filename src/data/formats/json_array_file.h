// Documents of a JSON file: an array of objects, or an object with one array of them beside other values. It is read as
// a stream, element by element; each is parsed as a line of a JSONL file is.
#pragma once

#include <memory>

#include "data/formats/document_format.h"
#include "data/formats/stream_characters.h"
#include "data/jsonl.h"

namespace sextant {

class JsonArrayFile : public DocumentFile {
 public:
  JsonArrayFile(std::unique_ptr<ByteStream> stream, std::string name, const TextOptions& options);

  std::optional<std::string_view> next() override;
  std::string place() const override;
  int64_t number() const override { return element_; }

 private:
  enum class State : uint8_t { before, in_array, after };

  void begin();
  bool seek_array();  // in the object around it; false at the object's end
  void end_array();
  void require_end();
  int peek();  // after white space
  void expect(char symbol, std::string_view expected);
  void read_value();  // one value, whole, into value_
  void read_nested();
  void read_string();
  void append(std::string_view piece);
  void read_over();  // a value that no document is in
  [[noreturn]] void refuse(std::string_view expected);

  std::string name_;
  StreamCharacters in_;
  int64_t max_bytes_;
  JsonText json_;
  State state_ = State::before;
  bool in_object_ = false, array_seen_ = false;
  int64_t element_ = 0;
  std::string value_, scratch_;
};

}  // namespace sextant
