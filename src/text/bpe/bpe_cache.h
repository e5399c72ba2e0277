// Remembers the ids of pieces seen before. Two tables of fixed size in which a new piece takes the place of an old one,
// so memory is bounded (6 MiB) whatever the text. A cache serves one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace sextant {

class PieceCache {
 public:
  PieceCache() : short_sets_(size_t{1} << kShortBits), long_entries_(size_t{1} << kLongBits) {}

  static constexpr size_t kShortBytes = 16, kShortIds = 3;
  static constexpr size_t kLongBytes = 48, kLongIds = 19;

  // A piece of at most kShortBytes bytes, padded with zeros, and where to look for it.
  struct ShortKey {
    uint64_t low = 0, high = 0;
    uint32_t size = 0;
    uint32_t set = 0;
  };

  // Two of these fill a cache line. The last ids may be unused.
  struct ShortEntry {
    uint64_t low = 0, high = 0;
    uint16_t size = 0, count = 0;
    uint32_t ids[kShortIds] = {};

    bool holds(const ShortKey& key) const { return ((low ^ key.low) | (high ^ key.high) | (size ^ key.size)) == 0; }
  };

  // Up to `readable_end`, which may lie beyond the piece, memory can be read.
  static ShortKey short_key(std::string_view piece, const char* readable_end) {
    static constexpr uint8_t kKeep[2 * kShortBytes] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
                                                       0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
    ShortKey key{.size = static_cast<uint32_t>(piece.size())};
    if (readable_end - piece.data() < static_cast<ptrdiff_t>(kShortBytes)) {
      uint64_t words[2] = {};
      std::memcpy(words, piece.data(), piece.size());
      key.low = words[0], key.high = words[1];
    } else {
      uint64_t words[2], keep[2];
      std::memcpy(words, piece.data(), sizeof words);
      std::memcpy(keep, kKeep + kShortBytes - piece.size(), sizeof keep);
      key.low = words[0] & keep[0], key.high = words[1] & keep[1];
    }
    key.set = static_cast<uint32_t>(mixed(mixed(key.size, key.low), key.high) * kMix >> (64 - kShortBits));
    return key;
  }

  // The table is larger than a core's own cache: asking for several sets ahead lets their waits overlap.
  void prefetch(const ShortKey& key) const { __builtin_prefetch(&short_sets_[key.set]); }

  // Null where the piece is not remembered.
  const ShortEntry* find_short(const ShortKey& key) const {
    const ShortSet& set = short_sets_[key.set];
    for (const ShortEntry& entry : set.entries)
      if (entry.holds(key)) return &entry;
    return nullptr;
  }

  void remember_short(const ShortKey& key, std::span<const uint32_t> ids) {
    ShortSet& set = short_sets_[key.set];
    set.entries[1] = set.entries[0];  // the older of the two goes
    set.entries[0] = {key.low, key.high, static_cast<uint16_t>(key.size), static_cast<uint16_t>(ids.size()), {}};
    std::copy(ids.begin(), ids.end(), set.entries[0].ids);
  }

  // For pieces of at most kLongBytes bytes. Empty where the piece is not remembered.
  std::span<const uint32_t> find_long(std::string_view piece) const {
    const LongEntry& entry = long_entries_[long_slot(piece)];
    if (entry.size != piece.size() || std::memcmp(entry.bytes, piece.data(), piece.size()) != 0) return {};
    return {entry.ids, entry.count};
  }

  void remember_long(std::string_view piece, std::span<const uint32_t> ids) {
    LongEntry& entry = long_entries_[long_slot(piece)];
    entry.size = static_cast<uint16_t>(piece.size());
    entry.count = static_cast<uint16_t>(ids.size());
    std::memcpy(entry.bytes, piece.data(), piece.size());
    std::copy(ids.begin(), ids.end(), entry.ids);
  }

 private:
  static constexpr int kShortBits = 16, kLongBits = 14;
  static constexpr uint64_t kMix = 0x9E3779B97F4A7C15;

  struct alignas(64) ShortSet {
    ShortEntry entries[2];
  };
  struct LongEntry {
    char bytes[kLongBytes] = {};
    uint16_t size = 0, count = 0;
    uint32_t ids[kLongIds] = {};
  };

  static uint64_t mixed(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * kMix;
    return hash ^ hash >> 32;
  }
  static size_t long_slot(std::string_view piece) {
    uint64_t hash = piece.size();
    for (uint64_t word = 0; !piece.empty(); word = 0) {
      size_t size = std::min(piece.size(), sizeof word);
      std::memcpy(&word, piece.data(), size);
      hash = mixed(hash, word);
      piece.remove_prefix(size);
    }
    return hash * kMix >> (64 - kLongBits);
  }

  std::vector<ShortSet> short_sets_;
  std::vector<LongEntry> long_entries_;
};

}  // namespace sextant
