// A set of code points, as the ranges it consists of.
#pragma once

#include <span>
#include <vector>

namespace sextant {

struct CodeRange {
  char32_t first, last;

  bool operator==(const CodeRange&) const = default;
};

inline constexpr char32_t kLastCode = 0x10FFFF;

class CodeSet {
 public:
  CodeSet() = default;
  explicit CodeSet(std::span<const CodeRange> ranges);
  explicit CodeSet(CodeRange range) : ranges_{range} {}

  void add(CodeRange range) { add(CodeSet(range)); }
  void add(const CodeSet& other);
  CodeSet inverted() const;
  CodeSet both(const CodeSet& other) const;
  CodeSet without(const CodeSet& other) const { return both(other.inverted()); }

  bool contains(char32_t code) const;
  bool empty() const { return ranges_.empty(); }
  // In order; neighbours are joined.
  std::span<const CodeRange> ranges() const { return ranges_; }

  bool operator==(const CodeSet&) const = default;

 private:
  void normalize();

  std::vector<CodeRange> ranges_;
};

}  // namespace sextant
