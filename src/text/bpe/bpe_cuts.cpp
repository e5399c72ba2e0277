#include "text/bpe/bpe_cuts.h"

#include <array>
#include <vector>

#include "text/unicode/unicode_utf8.h"

namespace sextant {

namespace {

// Answers may err on the side of not cutting, which costs time and changes nothing.
class CutTable {
 public:
  CutTable(std::span<const MergeBoundary> boundaries, const BpeSymbols& symbols) : symbols_(symbols), filter_(kWords) {
    for (MergeBoundary boundary : boundaries) {
      size_t bit = filter_bit(boundary.left, boundary.right);
      filter_[bit / 64] |= uint64_t{1} << (bit % 64);
    }
    for (uint32_t left = 0; left < kClasses; ++left)
      for (uint32_t right = 0; right < kClasses; ++right)
        usual_[left * kClasses + right] = look_up(code_of(left), code_of(right));
  }

  bool may_cut(char32_t left, char32_t right) const {
    uint32_t a = class_of(left), b = class_of(right);
    return a < kClasses && b < kClasses ? usual_[a * kClasses + b] : look_up(left, right);
  }

 private:
  static constexpr int kFilterBits = 20;
  static constexpr size_t kWords = (size_t{1} << kFilterBits) / 64;
  // Nearly all text is ASCII and this character, so those have a table without hashing.
  static constexpr char32_t kMetaspace = 0x2581;
  static constexpr uint32_t kClasses = 129;

  static uint32_t class_of(char32_t code) { return code < 128 ? code : code == kMetaspace ? 128 : kClasses; }
  static char32_t code_of(uint32_t index) { return index < 128 ? index : kMetaspace; }

  static size_t filter_bit(char32_t left, char32_t right) {
    return (left * 0x9E3779B97F4A7C15 + right * 0xC2B2AE3D27D4EB4F) >> (64 - kFilterBits);
  }

  bool look_up(char32_t left, char32_t right) const {
    size_t bit = filter_bit(left, right);
    if (filter_[bit / 64] >> (bit % 64) & 1) return false;
    return symbols_.may_cut_between(left, right);
  }

  const BpeSymbols& symbols_;
  std::vector<uint64_t> filter_;
  std::array<bool, kClasses * kClasses> usual_;
};

class CutSplitter : public Splitter {
 public:
  explicit CutSplitter(CutTable table) : table_(std::move(table)) {}

  size_t cut(std::string_view text, SplitCursor& cursor, std::span<std::string_view> pieces) const override {
    const char* const end = text.data() + text.size();
    const char* begin = text.data() + cursor.at;
    size_t count = 0;
    while (count < pieces.size() && begin != end) {
      const char* stop = end_of_part(begin, end);
      pieces[count++] = {begin, static_cast<size_t>(stop - begin)};
      begin = stop;
    }
    cursor.at = static_cast<size_t>(begin - text.data());
    return count;
  }

 private:
  const char* end_of_part(const char* at, const char* end) const {
    Utf8Char last = decode_valid_utf8(at);
    for (at += last.size; at != end;) {
      Utf8Char next = decode_valid_utf8(at);
      if (table_.may_cut(last.code, next.code)) break;
      last = next;
      at += next.size;
    }
    return at;
  }

  CutTable table_;
};

}  // namespace

std::unique_ptr<Splitter> cut_between_merges(std::span<const MergeBoundary> boundaries, const BpeSymbols& symbols) {
  return std::make_unique<CutSplitter>(CutTable(boundaries, symbols));
}

}  // namespace sextant
