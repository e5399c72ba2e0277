#include "train/health/fault.h"

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <string_view>
#include <thread>

#include "base/error.h"

namespace sextant {

namespace {

constexpr const char* kVariable = "SEXTANT_FAULT";

const std::map<std::string_view, FaultKind> kKinds{{"throw", FaultKind::throws},
                                                   {"stall", FaultKind::stalls},
                                                   {"kill", FaultKind::is_killed},
                                                   {"stop", FaultKind::is_stopped},
                                                   {"corrupt", FaultKind::corrupts}};

// Takes "NAME=NUMBER" off the front of the text; false when something else is there.
bool take_number(std::string_view& text, std::string_view name, int64_t& number) {
  if (!text.starts_with(name)) return false;
  auto [end, error] = std::from_chars(text.data() + name.size(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return error == std::errc() && number >= 0;
}

void flip_a_bit(Bound& bound) {
  for (const Value& value : bound.program().values) {
    if (value.kind != ValueKind::parameter || value.buffer < 0) continue;
    std::byte lowest{};
    bound.read(value, std::span(&lowest, 1));
    lowest ^= std::byte{1};
    return bound.write(value, std::span(&lowest, 1));
  }
}

}  // namespace

Fault fault_from_environment() {
  const char* given = std::getenv(kVariable);
  if (given == nullptr || *given == '\0') return {};
  std::string_view text = given;
  auto kind = kKinds.find(text.substr(0, text.find(':')));
  Fault fault;
  bool good = kind != kKinds.end();
  if (good) {
    fault.kind = kind->second;
    text.remove_prefix(kind->first.size());
    good = take_number(text, ":rank=", fault.rank) && take_number(text, ":step=", fault.step) && text.empty();
  }
  if (!good)
    throw UserError({.place = kVariable,
                     .got = fmt::format("cannot use \"{}\"", given),
                     .expected = "throw, stall, kill, stop or corrupt, then where: \"stall:rank=1:step=3\"",
                     .hint = "Unset it: it is for tests and rehearsals."});
  return fault;
}

void inject_fault(const Fault& fault, int64_t step, Bound& bound) {
  if (fault.kind == FaultKind::none || fault.rank != bound.rank() || fault.step != step) return;
  switch (fault.kind) {
    case FaultKind::none:
      return;
    case FaultKind::throws:
      throw RunError(kVariable, "this rank was asked to fail");
    case FaultKind::stalls:
      for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    case FaultKind::is_killed:
      std::raise(SIGKILL);
      return;
    case FaultKind::is_stopped:
      std::raise(SIGSTOP);
      return;
    case FaultKind::corrupts:
      return flip_a_bit(bound);
  }
}

}  // namespace sextant
