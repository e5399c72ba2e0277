// The passes by name, in the order of lower.cpp, and what each does in a few words.
#pragma once

#include <span>
#include <string_view>

namespace sextant {

struct PassInfo {
  std::string_view name, about;
};

std::span<const PassInfo> pass_list();

}  // namespace sextant
