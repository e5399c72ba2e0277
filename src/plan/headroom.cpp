#include "plan/headroom.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.h"

namespace sextant {

namespace {

// Beyond the arena, which is exact, and the machine's context_gb: buffers of libraries that grow with the number of
// communicators, and what others have on the device.
constexpr double kOwnHeadroom = 0.01;
// Of measurements that must not exceed what is left.
constexpr double kCoveredErrors = 0.9;

std::string percent_free(double share) {
  return fmt::format("{:.2g} % of the memory is left free", 100 * share);
}

}  // namespace

std::string_view name_of(HeadroomFrom from) {
  constexpr std::array<std::string_view, 4> kNames{"option", "own software", "published runs", "none"};
  return kNames[static_cast<size_t>(from)];
}

double parse_headroom(std::string_view text, std::string_view option) {
  auto refuse = [&] {
    throw UserError({.place = std::string(option),
                     .got = fmt::format("'{}'", text),
                     .expected = "a percentage of the device's memory, from 0% to below 100%, such as 5%"});
  };
  std::string_view number = text;
  if (number.empty() || number.back() != '%') refuse();
  number.remove_suffix(1);
  while (!number.empty() && number.back() == ' ') number.remove_suffix(1);
  double percent = 0;
  auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), percent);
  if (problem != std::errc{} || end != number.data() + number.size() || !(percent >= 0 && percent < 100)) refuse();
  return percent / 100;
}

Headroom headroom_for(const HeadroomQuestion& q) {
  if (q.asked) return {*q.asked, HeadroomFrom::option, percent_free(*q.asked) + " (--headroom)"};
  if (q.basis == MemoryBasis::exact)
    return {kOwnHeadroom, HeadroomFrom::own,
            percent_free(kOwnHeadroom) + ", for what lies outside of the planned memory, which is exact to the byte"};
  if (q.basis == MemoryBasis::wide)
    return {kOwnHeadroom, HeadroomFrom::own,
            percent_free(kOwnHeadroom) + ", for what lies outside of the planned memory, which is that of bf16"};
  if (q.basis == MemoryBasis::programs)
    return {0, HeadroomFrom::none,
            "no memory is left free: it is that of our Programs, with room for the worst routing; of other software "
            "with experts none is known"};
  if (!q.errors || q.errors->empty())
    return {0, HeadroomFrom::none, "no memory is left free: of other software no errors are known"};
  MemoryInterval upper = q.errors->upper(q.device, q.software, kCoveredErrors);
  double share = std::max(0.0, 1 - 1 / upper.most);
  return {share, HeadroomFrom::errors,
          fmt::format("{}: {:.0f} % of {} {} took no more than the estimate and that", percent_free(share),
                      100 * upper.share, upper.rows, text_of(upper.of))};
}

}  // namespace sextant
