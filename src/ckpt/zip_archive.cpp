#include "ckpt/zip_archive.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "ckpt/json_walk.h"

namespace sextant {

namespace {

// Sizes of the fixed parts of records, their signatures among them.
constexpr size_t kEndSize = 22, kLocatorSize = 20, kEnd64Size = 56, kCentralSize = 46, kLocalSize = 30;
constexpr uint32_t kEnd = 0x06054b50, kLocator = 0x07064b50, kEnd64 = 0x06064b50, kCentral = 0x02014b50,
                   kLocal = 0x04034b50;
constexpr uint32_t kIn64 = 0xFFFFFFFF;  // a number that stands in the zip64 record instead
constexpr size_t kLongestComment = 0xFFFF;
constexpr uint16_t kZip64Field = 1;
constexpr uint16_t kEncrypted = 1;  // a flag

using Span = std::span<const std::byte>;

template <class T>
T number_at(Span bytes, size_t at) {
  T value;
  BUG_IF(at + sizeof value > bytes.size(), "a zip record ends before byte {}", at);
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

struct Extent {
  size_t begin = 0, end = 0;
  size_t entry = 0;
};

// The list of entries behind their data.
struct Directory {
  uint64_t entries = 0, bytes = 0, begin = 0;
};

class ZipReader {
 public:
  ZipReader(std::string_view place, Span file) : place_(place), file_(file) {}

  std::vector<ZipEntry> read() {
    Directory directory = find_directory();
    Span rest = part(directory.begin, directory.bytes, "the list of entries");
    for (uint64_t i = 0; i < directory.entries; ++i) read_entry(rest);
    if (!rest.empty()) refuse("the list of entries is longer than its entries", "nothing behind the last one");
    extents_.push_back({directory.begin, directory.begin + directory.bytes, entries_.size()});
    return in_order();
  }

 private:
  Directory find_directory() {
    std::optional<size_t> at = find_end();
    if (!at) refuse("no list of entries at the end of the file", "a zip archive");
    Span end = file_.subspan(*at);
    Directory directory{number_at<uint16_t>(end, 10), number_at<uint32_t>(end, 12), number_at<uint32_t>(end, 16)};
    bool in_64 = directory.entries == 0xFFFF || directory.bytes == kIn64 || directory.begin == kIn64;
    if (!in_64) return directory;
    if (*at < kLocatorSize || number_at<uint32_t>(file_, *at - kLocatorSize) != kLocator) return directory;
    Span end64 = part(number_at<uint64_t>(file_, *at - kLocatorSize + 8), kEnd64Size, "the zip64 record");
    if (number_at<uint32_t>(end64, 0) != kEnd64) refuse("the zip64 record is damaged", "its signature");
    return {number_at<uint64_t>(end64, 32), number_at<uint64_t>(end64, 40), number_at<uint64_t>(end64, 48)};
  }

  std::optional<size_t> find_end() const {
    if (file_.size() < kEndSize) return std::nullopt;
    size_t last = file_.size() - kEndSize, first = last > kLongestComment ? last - kLongestComment : 0;
    for (size_t at = last + 1; at-- > first;)
      if (number_at<uint32_t>(file_, at) == kEnd && number_at<uint16_t>(file_, at + 20) == last - at) return at;
    return std::nullopt;
  }

  // Reads the entry that `rest` begins with, and takes it off.
  void read_entry(Span& rest) {
    if (rest.size() < kCentralSize || number_at<uint32_t>(rest, 0) != kCentral)
      refuse("the list of entries ends early or is damaged", "every entry that it counts");
    size_t name_size = number_at<uint16_t>(rest, 28), extra_size = number_at<uint16_t>(rest, 30),
           size = kCentralSize + name_size + extra_size + number_at<uint16_t>(rest, 32);
    if (size > rest.size()) refuse("the list of entries ends early", "every entry that it counts");
    std::string name(reinterpret_cast<const char*>(rest.data()) + kCentralSize, name_size);
    auto flags = number_at<uint16_t>(rest, 8), method = number_at<uint16_t>(rest, 10);
    if (flags & kEncrypted) refuse(fmt::format("entry {} is encrypted", shown(name)), "entries as they are");
    if (method != 0)
      refuse(fmt::format("entry {} is compressed (method {})", shown(name), method),
             "stored entries, as torch.save writes them");
    uint64_t packed = number_at<uint32_t>(rest, 20), plain = number_at<uint32_t>(rest, 24),
             local = number_at<uint32_t>(rest, 42);
    read_zip64(rest.subspan(kCentralSize + name_size, extra_size), {&plain, &packed, &local});
    if (packed != plain)
      refuse(fmt::format("entry {} has {} bytes in the file and {} without", shown(name), packed, plain),
             "the same number: it is not compressed");
    add(std::move(name), local, plain);
    rest = rest.subspan(size);
  }

  // Takes the numbers that do not fit 32 bits from the extra field that holds them in this order.
  void read_zip64(Span extra, std::initializer_list<uint64_t*> numbers) {
    while (extra.size() >= 4) {
      size_t size = number_at<uint16_t>(extra, 2);
      if (size > extra.size() - 4) break;
      if (number_at<uint16_t>(extra, 0) == kZip64Field) {
        Span field = extra.subspan(4, size);
        for (uint64_t* number : numbers) {
          if (*number != kIn64 || field.size() < 8) continue;
          *number = number_at<uint64_t>(field, 0);
          field = field.subspan(8);
        }
        return;
      }
      extra = extra.subspan(4 + size);
    }
  }

  void add(std::string name, uint64_t local, uint64_t size) {
    std::string what = fmt::format("entry {}", shown(name));
    Span header = part(local, kLocalSize, what);
    if (number_at<uint32_t>(header, 0) != kLocal) refuse(fmt::format("{} has no header", what), "one before its data");
    size_t name_size = number_at<uint16_t>(header, 26), extra_size = number_at<uint16_t>(header, 28);
    uint64_t begin = local + kLocalSize + name_size + extra_size;
    Span local_name = part(local + kLocalSize, name_size, what);
    if (!std::ranges::equal(local_name, std::as_bytes(std::span(name))))
      refuse(fmt::format("{} has another name before its data", what), "the same name in both places");
    extents_.push_back({local, begin + size, entries_.size()});
    entries_.push_back({std::move(name), part(begin, size, what)});
  }

  // Two entries in the same bytes are how small archives claim to be large.
  std::vector<ZipEntry> in_order() {
    std::sort(extents_.begin(), extents_.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
    std::vector<ZipEntry> sorted;
    size_t covered = 0;
    for (const Extent& extent : extents_) {
      std::string what = extent.entry == entries_.size() ? "the list of entries"
                                                         : fmt::format("entry {}", shown(entries_[extent.entry].name));
      if (extent.begin < covered)
        refuse(fmt::format("{} begins inside another", what), "entries that lie one behind the other");
      covered = extent.end;
      if (extent.entry < entries_.size()) sorted.push_back(std::move(entries_[extent.entry]));
    }
    return sorted;
  }

  Span part(uint64_t begin, uint64_t size, std::string_view what) {
    if (begin > file_.size() || size > file_.size() - begin)
      refuse(fmt::format("{} lies behind the end of the file", what), fmt::format("at most {} bytes", file_.size()));
    return file_.subspan(begin, size);
  }

  [[noreturn]] void refuse(std::string got, std::string expected) {
    throw UserError({.place = std::string(place_),
                     .got = std::move(got),
                     .expected = std::move(expected),
                     .hint = "the file may be cut short or damaged: copy or download it again"});
  }

  std::string_view place_;
  Span file_;
  std::vector<ZipEntry> entries_;
  std::vector<Extent> extents_;
};

}  // namespace

std::vector<ZipEntry> parse_zip(std::string_view place, std::span<const std::byte> file) {
  return ZipReader(place, file).read();
}

}  // namespace sextant
