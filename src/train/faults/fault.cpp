#include "train/faults/fault.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/printable.h"

namespace sextant {

namespace {

constexpr const char* kFaultVariable = "SEXTANT_FAULT";

constexpr FaultKindInfo kFaultKinds[] = {
#define FAULT(kind, name, unit, amount, effect) {FaultKind::kind, name, unit, amount, effect},
#include "train/faults/fault_kinds.def"
#undef FAULT
};

std::optional<int64_t> whole_number(std::string_view text, int64_t least) {
  int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && number >= least ? std::optional(number) : std::nullopt;
}

// Text after the separator, which is removed together with it; nullopt where there is no separator.
std::optional<std::string_view> take_behind(std::string_view& text, char separator) {
  size_t at = text.find(separator);
  if (at == text.npos) return std::nullopt;
  std::string_view behind = text.substr(at + 1);
  text = text.substr(0, at);
  return behind;
}

bool names_op(FaultKind kind) {
  return kind == FaultKind::spoils_op;
}

std::optional<Fault> read_fault(std::string_view text) {
  Fault fault{.text = std::string(text)};
  std::optional<std::string_view> where = take_behind(text, '@');
  if (!where) return std::nullopt;
  std::optional<std::string_view> rank = take_behind(*where, ':'), amount = take_behind(text, '=');
  auto kind = std::ranges::find(kFaultKinds, text, &FaultKindInfo::name);
  if (kind == std::end(kFaultKinds) || (amount && kind->unit.empty())) return std::nullopt;
  std::optional<int64_t> step = whole_number(*where, 1), of_rank = rank ? whole_number(*rank, 0) : 0,
                         much = amount && !names_op(kind->kind) ? whole_number(*amount, 1) : kind->amount;
  if (!step || !of_rank || !much) return std::nullopt;
  if (names_op(kind->kind)) {
    if (!amount || amount->empty()) return std::nullopt;
    fault.op = *amount;
  }
  fault.kind = kind->kind;
  fault.step = *step;
  fault.rank = *of_rank;
  fault.amount = *much;
  return fault;
}

}  // namespace

std::vector<FaultKindInfo> fault_kinds() {
  return {std::begin(kFaultKinds), std::end(kFaultKinds)};
}

Fault parse_fault(std::string_view text, std::string_view place) {
  if (std::optional<Fault> fault = read_fault(text)) return *fault;
  std::vector<std::string> kinds;
  for (const FaultKindInfo& info : kFaultKinds)
    kinds.push_back(info.unit.empty()     ? std::string(info.name)
                    : names_op(info.kind) ? fmt::format("{}={}", info.name, info.unit)
                                          : fmt::format("{}[={}]", info.name, info.unit));
  throw UserError({.place = std::string(place),
                   .got = fmt::format("cannot use \"{}\"", printable(std::string(text))),
                   .expected = fmt::format("KIND@STEP or KIND@STEP:RANK, such as stall@3:1; KIND is one of {}",
                                           fmt::join(kinds, ", ")),
                   .hint = "Leave it out: it is for tests and drills."});
}

std::vector<Fault> faults_from_environment() {
  std::vector<Fault> faults;
  const char* given = std::getenv(kFaultVariable);
  std::istringstream words(given == nullptr ? "" : given);
  for (std::string word; words >> word;) faults.push_back(parse_fault(word, kFaultVariable));
  return faults;
}

}  // namespace sextant
