#include "text/unigram/piece_trie.h"

#include <algorithm>
#include <span>

namespace sextant {

namespace {

constexpr uint32_t kBytes = 256;

}  // namespace

class PieceTrie::Builder {
 public:
  using Piece = std::pair<std::string, uint32_t>;

  explicit Builder(std::vector<Unit>& units) : units_(units) { units_.assign(2 * kBytes, Unit{}); }

  // The pieces, sorted, share their first `depth` bytes, which lead to `node`.
  void add(uint32_t node, std::span<const Piece> pieces, size_t depth) {
    struct Job {
      uint32_t node;
      std::span<const Piece> pieces;
      size_t depth;
    };
    std::vector<Job> jobs{{node, pieces, depth}};
    while (!jobs.empty()) {
      Job job = jobs.back();
      jobs.pop_back();
      while (!job.pieces.empty() && job.pieces.front().first.size() == job.depth) {
        units_[job.node].value = job.pieces.front().second;
        job.pieces = job.pieces.subspan(1);
      }
      std::vector<std::pair<uint8_t, std::span<const Piece>>> children = by_next_byte(job.pieces, job.depth);
      if (children.empty()) continue;
      uint32_t base = place_for(children);
      units_[job.node].base = base;
      for (const auto& [byte, below] : children) units_[base + byte].parent = job.node;
      for (const auto& [byte, below] : children) jobs.push_back({base + byte, below, job.depth + 1});
    }
  }

 private:
  using Children = std::vector<std::pair<uint8_t, std::span<const Piece>>>;

  static Children by_next_byte(std::span<const Piece> pieces, size_t depth) {
    Children children;
    for (size_t begin = 0; begin < pieces.size();) {
      char byte = pieces[begin].first[depth];
      size_t end = begin;
      while (end < pieces.size() && pieces[end].first[depth] == byte) ++end;
      children.emplace_back(static_cast<uint8_t>(byte), pieces.subspan(begin, end - begin));
      begin = end;
    }
    return children;
  }

  // The first place where all children find a free unit. Units before `first_free_` are taken.
  uint32_t place_for(const Children& children) {
    while (units_[first_free_].parent != kNone) {
      ++first_free_;
      grow(first_free_);
    }
    uint32_t first = children.front().first;
    for (uint32_t at = std::max(first_free_, first + 1);; ++at) {
      grow(at);
      uint32_t base = at - first;
      bool fits = std::all_of(children.begin(), children.end(),
                              [&](const auto& child) { return units_[base + child.first].parent == kNone; });
      if (fits) return base;
      if (++misses_ > kPatience) misses_ = 0, ++first_free_;  // leaves a hole rather than searching it again and again
    }
  }

  void grow(uint32_t at) {
    if (units_.size() < at + 2 * kBytes) units_.resize(std::max<size_t>(2 * units_.size(), at + 2 * kBytes));
  }

  static constexpr int kPatience = 64;

  std::vector<Unit>& units_;
  uint32_t first_free_ = 1;
  int misses_ = 0;
};

PieceTrie::PieceTrie(std::vector<std::pair<std::string, uint32_t>> pieces) {
  std::stable_sort(pieces.begin(), pieces.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Builder builder(units_);
  units_[0].parent = kNone - 1;  // taken, and nobody's child
  builder.add(0, pieces, 0);
}

uint32_t PieceTrie::find(std::string_view text) const {
  uint32_t value = kNone;
  walk(text, [&](size_t size, uint32_t found) {
    if (size == text.size()) value = found;
  });
  return value;
}

}  // namespace sextant
