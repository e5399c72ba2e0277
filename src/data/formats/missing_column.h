// About a table without the column that the text is said to be in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sextant {

// A UserError. `expected` may be empty.
[[noreturn]] void refuse_missing_column(std::string place, std::string_view column,
                                        const std::vector<std::string>& names, std::string expected = {});

}  // namespace sextant
