#include "ir/names.h"

#include <fmt/format.h>

namespace sextant {

std::string_view name_of(ValueKind kind) {
  return name_in(kValueKindNames, kind);
}
std::string_view name_of(Phase phase) {
  return name_in(kPhaseNames, phase);
}
std::string_view name_of(Lane lane) {
  return name_in(kLaneNames, lane);
}
std::string_view name_of(RegionKind kind) {
  return name_in(kRegionNames, kind);
}
std::string_view name_of(BufferClass kind) {
  return name_in(kBufferNames, kind);
}

std::string init_text(const Init& init) {
  if (init.kind == Init::Kind::zeros) return "zeros";
  if (init.kind == Init::Kind::ones) return "ones";
  return fmt::format("normal({})", init.std);
}

}  // namespace sextant
