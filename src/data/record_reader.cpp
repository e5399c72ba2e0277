#include "data/record_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace sextant {

namespace {

constexpr size_t kReadBytes = size_t{256} << 10;

}  // namespace

RecordReader::RecordReader(std::unique_ptr<ByteStream> stream, std::string separator, int64_t max_record_bytes)
    : stream_(std::move(stream)),
      separator_(std::move(separator)),
      max_record_bytes_(static_cast<size_t>(max_record_bytes)) {}

std::optional<std::string_view> RecordReader::next() {
  ++number_;
  size_t searched = 0;  // bytes of this record known not to begin a separator
  for (;;) {
    std::string_view unread(buffer_.data() + begin_, end_ - begin_);
    size_t at = separator_.empty() ? std::string_view::npos : unread.find(separator_, searched);
    if (std::min(at, unread.size()) > max_record_bytes_)
      throw RecordTooLong(fmt::format("no document ends within {} bytes, the limit", max_record_bytes_));
    if (at != std::string_view::npos) return take(at, separator_.size());
    searched = unread.size() - std::min(unread.size(), separator_.size());
    if (!read_more()) {
      if (begin_ == end_) return std::nullopt;
      return take(end_ - begin_, 0);
    }
  }
}

void RecordReader::discard_record() {
  for (;;) {
    std::string_view unread(buffer_.data() + begin_, end_ - begin_);
    size_t at = separator_.empty() ? std::string_view::npos : unread.find(separator_);
    if (at != std::string_view::npos) {
      take(at, separator_.size());
      return;
    }
    // Bytes that may be the beginning of a separator stay in the buffer.
    skip_to(end_ - std::min(unread.size(), separator_.empty() ? 0 : separator_.size() - 1));
    if (read_more()) continue;
    skip_to(end_);
    return;
  }
}

bool RecordReader::read_more() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() - end_ < kReadBytes) buffer_.resize(std::max(end_ + kReadBytes, buffer_.size() * 2));
  size_t n = stream_->read({buffer_.data() + end_, buffer_.size() - end_});
  end_ += n;
  return n > 0;
}

std::string_view RecordReader::take(size_t length, size_t separator_length) {
  std::string_view record(buffer_.data() + begin_, length);
  offset_ = taken_;
  skip_to(begin_ + length + separator_length);
  return record;
}

void RecordReader::skip_to(size_t place) {
  taken_ += static_cast<int64_t>(place - begin_);
  begin_ = place;
}

}  // namespace sextant
