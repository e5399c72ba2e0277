// Large numbers as people write them. In: "70B", "1.4 T", "1e24". Out: "70.6 B", "1.4 T", "5.76e23".
#pragma once

#include <string>
#include <string_view>

namespace sextant {

// A positive number, plain or with a suffix K, M, B or G, T, P, E (powers of 1000, either case). `place` names it in
// the UserError for anything else.
double parse_quantity(std::string_view text, std::string_view place);

std::string human_quantity(double value);  // three digits and K, M, B, T
std::string human_flops(double flops);     // three digits and a power of ten
std::string human_ratio(double ratio);     // three digits, no power of ten: "0.408", "20.9", "1310"

}  // namespace sextant
