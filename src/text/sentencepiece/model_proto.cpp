#include "text/sentencepiece/model_proto.h"

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {

namespace {

// One message of a protocol buffer, read field by field. Every size is held to what is left.
class Message {
 public:
  Message(std::string_view bytes, std::string_view place) : rest_(bytes), place_(place) {}

  // Moves to the next field; false at the end.
  bool next() {
    if (rest_.empty()) return false;
    uint64_t key = varint();
    number_ = key >> 3;
    wire_ = key & 7;
    text_ = {};
    value_ = 0;
    switch (wire_) {
      case 0:
        value_ = varint();
        return true;
      case 1:
        fixed(8);
        return true;
      case 2:
        take(varint());
        return true;
      case 5:
        value_ = fixed(4);
        return true;
      default:
        refuse(fmt::format("a field of wire type {}", wire_));
    }
  }

  uint64_t number() const { return number_; }
  std::string_view text() const { return expect(2), text_; }
  Message message() const { return {text(), place_}; }
  bool flag() const { return expect(0), value_ != 0; }
  int64_t integer() const { return expect(0), static_cast<int64_t>(value_); }
  float real() const {
    expect(5);
    auto bits = static_cast<uint32_t>(value_);
    float out;
    std::memcpy(&out, &bits, sizeof out);
    return out;
  }
  [[noreturn]] void refuse(std::string got) const {
    throw UserError({.place = std::string(place_),
                     .got = fmt::format("{}, {} bytes before its end", got, rest_.size()),
                     .expected = "a tokenizer.model of sentencepiece"});
  }

 private:
  void expect(uint64_t wire) const {
    if (wire_ != wire) refuse(fmt::format("field {} of wire type {}", number_, wire_));
  }
  uint64_t varint() {
    uint64_t out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) refuse("a number that is cut short");
      auto byte = static_cast<uint8_t>(rest_[0]);
      rest_.remove_prefix(1);
      out |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return out;
    }
    refuse("a number of more than 64 bits");
  }
  void take(uint64_t size) {
    if (size > rest_.size()) refuse(fmt::format("a field of {} bytes", size));
    text_ = rest_.substr(0, size);
    rest_.remove_prefix(size);
  }
  uint64_t fixed(size_t size) {
    take(size);
    uint64_t out = 0;
    for (size_t i = size; i-- > 0;) out = out << 8 | static_cast<uint8_t>(text_[i]);
    return out;
  }

  std::string_view rest_;
  std::string_view place_;
  uint64_t number_ = 0, wire_ = 0, value_ = 0;
  std::string_view text_;
};

SentencePiece read_piece(Message fields) {
  SentencePiece piece;
  while (fields.next()) {
    if (fields.number() == 1) piece.text = fields.text();
    if (fields.number() == 2) piece.score = fields.real();
    if (fields.number() != 3) continue;
    int64_t type = fields.integer();
    if (type < 1 || type > 6) fields.refuse(fmt::format("a piece of type {}", type));
    piece.type = static_cast<PieceType>(type);
  }
  if (!is_valid_utf8(piece.text) || piece.text.empty()) fields.refuse("a piece that is not text");
  if (!std::isfinite(piece.score)) fields.refuse("a score that is not finite");
  return piece;
}

void read_trainer(Message fields, SentencePieceModel& model) {
  while (fields.next()) {
    if (fields.number() == 3) {
      int64_t kind = fields.integer();
      if (kind < 1 || kind > 4) fields.refuse(fmt::format("a model of type {}", kind));
      model.kind = static_cast<SentencePieceModel::Kind>(kind);
    }
    if (fields.number() == 24) model.space_as_suffix = fields.flag();
    if (fields.number() == 35) model.byte_fallback = fields.flag();
    if (fields.number() == 41) model.bos = fields.integer();
    if (fields.number() == 42) model.eos = fields.integer();
  }
}

void read_normalizer(Message fields, SentencePieceModel& model) {
  while (fields.next()) {
    if (fields.number() == 2) model.charsmap = fields.text();
    if (fields.number() == 3) model.add_dummy_prefix = fields.flag();
    if (fields.number() == 4) model.remove_extra_spaces = fields.flag();
    if (fields.number() == 5) model.escape_spaces = fields.flag();
  }
}

}  // namespace

SentencePieceModel read_sentencepiece(std::string_view bytes, std::string_view place) {
  SentencePieceModel model;
  Message fields(bytes, place);
  while (fields.next()) {
    if (fields.number() == 1) model.pieces.push_back(read_piece(fields.message()));
    if (fields.number() == 2) read_trainer(fields.message(), model);
    if (fields.number() == 3) read_normalizer(fields.message(), model);
  }
  if (model.pieces.empty()) fields.refuse("no pieces");
  return model;
}

}  // namespace sextant
