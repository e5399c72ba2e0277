// LayoutLimits: what a search may choose, where not everything is to be tried: "zero=0,1", "schedule=1f1b". Several
// keys hold at once; a key that is not named is free.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "search/search_space.h"

namespace sextant {

class LayoutLimits {
 public:
  LayoutLimits() = default;
  // UserError names `place` for an unknown key or a value that no layout can have.
  LayoutLimits(const std::vector<std::string>& texts, std::string_view place);

  bool allow(const LayoutChoice& choice) const;
  bool empty() const { return only_.empty(); }
  // The largest number that a key is limited to; none when the key is free.
  std::optional<int64_t> most(std::string_view key) const;
  std::string text() const;  // "zero=0,1 schedule=1f1b"

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> only_;
};

}  // namespace sextant
