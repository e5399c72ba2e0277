#include "base/temporary_name.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <random>

namespace sextant {

namespace {

constexpr std::string_view kMark = ".tmp-";
constexpr size_t kRandomDigits = 16;

bool is_random_part(std::string_view text) {
  return text.size() == kRandomDigits + 1 && text[0] == '-' &&
         text.find_first_not_of("0123456789abcdef", 1) == std::string_view::npos;
}

}  // namespace

std::string temporary_name(std::string_view final_name) {
  std::random_device device;  // the kernel's: it cannot be predicted
  uint64_t random = (static_cast<uint64_t>(device()) << 32) | device();
  return fmt::format("{}{}{}-{:016x}", final_name, kMark, ::getpid(), random);
}

std::optional<TemporaryName> parse_temporary_name(std::string_view name) {
  size_t at = name.rfind(kMark);
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  TemporaryName found{.final_name = std::string(name.substr(0, at))};
  const char* begin = name.data() + at + kMark.size();
  const char* end = name.data() + name.size();
  auto [stop, wrong] = std::from_chars(begin, end, found.process);
  if (wrong != std::errc() || found.process <= 0) return std::nullopt;
  std::string_view rest(stop, static_cast<size_t>(end - stop));
  if (!rest.empty() && !is_random_part(rest)) return std::nullopt;
  return found;
}

}  // namespace sextant
