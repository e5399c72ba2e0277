// Faults on purpose, to test and to rehearse how a run ends and goes on: KIND[=AMOUNT]@STEP[:RANK], such as "kill@30:1"
// or "slow=200@10". fault_kinds.def has the kinds. A fault strikes before its step, on its rank (0 unless given).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

enum class FaultKind : uint8_t {
#define FAULT(kind, name, unit, amount, effect) kind,
#include "train/faults/fault_kinds.def"
#undef FAULT
};

struct FaultKindInfo {
  FaultKind kind;
  std::string_view name;
  std::string_view unit;  // of its amount; empty: it takes none
  int64_t amount;         // unless one is given
  std::string_view effect;
};
std::vector<FaultKindInfo> fault_kinds();

struct Fault {
  FaultKind kind = FaultKind::throws;
  int64_t step = 1;
  int64_t rank = 0;
  int64_t amount = 0;
  std::string op = {};    // of spoils_op: "layers.7.mlp.gelu"
  std::string text = {};  // as it was given

  bool operator==(const Fault&) const = default;
};

// UserError at `place` when it cannot be read.
Fault parse_fault(std::string_view text, std::string_view place);

// SEXTANT_FAULT: the same, several with spaces between them, for launchers that hand on an environment.
std::vector<Fault> faults_from_environment();

}  // namespace sextant
