// A byte stream one character at a time, and in stretches: what the readers of CSV and JSON walk over. Line breaks are
// counted.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/decompress.h"
#include "data/text_encoding.h"

namespace sextant {

class StreamCharacters {
 public:
  static constexpr int kEnd = -1;

  explicit StreamCharacters(std::unique_ptr<ByteStream> stream)
      : stream_(std::move(stream)), buffer_(size_t{256} << 10) {
    if (peek() != 0xEF) return;
    if (std::string_view(buffer_.data(), end_).starts_with(kUtf8Mark)) at_ = kUtf8Mark.size();
  }

  int peek() {
    if (at_ == end_) refill();
    return at_ < end_ ? static_cast<unsigned char>(buffer_[at_]) : kEnd;
  }

  int get() {
    int c = peek();
    if (c == kEnd) return c;
    ++at_;
    if (c == '\n') ++line_;
    return c;
  }

  // Appends to `out` what comes before the first byte for which `stops` holds, or before the end.
  template <class Out>
  void read_until(const std::array<bool, 256>& stops, const Out& out) {
    while (peek() != kEnd) {
      size_t begin = at_;
      while (at_ < end_ && !stops[static_cast<unsigned char>(buffer_[at_])]) line_ += buffer_[at_++] == '\n';
      out(std::string_view(buffer_.data() + begin, at_ - begin));
      if (at_ < end_) return;
    }
  }

  int64_t line() const { return line_; }  // of the next character, from 1

 private:
  void refill() {
    at_ = 0;
    end_ = stream_->read({buffer_.data(), buffer_.size()});
  }

  std::unique_ptr<ByteStream> stream_;
  std::vector<char> buffer_;
  size_t at_ = 0, end_ = 0;
  int64_t line_ = 1;
};

}  // namespace sextant
