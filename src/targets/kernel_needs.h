// Needs of a kernel beside its operands, from their types and the op's attributes alone: no device, no library and no
// data is used. Each target has one table of these. The memory pass reserves the sizes in the table, and the target's
// kernels are written against the same sizes (the headers *_sizes.h beside it), so that a kernel has what it uses.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/units.h"
#include "ir/attrs.h"
#include "ir/op_def.h"
#include "ir/plan.h"

namespace sextant {

enum class Determinism : uint8_t {
  fast,        // sums may be added in another order from run to run (attention's dq)
  repeatable,  // two runs give the same bits, which may take more scratch
};

struct KernelQuery {
  const Attrs& attrs;
  std::span<const LocalType> in;
  std::span<const LocalType> out;
  int threads = 1;  // of the rank, on a CPU
  Determinism determinism = Determinism::fast;
};

enum class Grouping : uint8_t {
  alone,     // one launch per op
  together,  // ops of this kind that stand side by side are one launch: their scratch lives side by side too
};

// Width of the elements that a kernel takes, where a target has kernels for one width alone (targets/cpu/widening.h).
enum class Elements : uint8_t {
  computed,  // it computes with them: they come in the width that it is written for
  any,       // it moves them, or adds them up in any type: they come as they are
};

struct KernelNeeds {
  Bytes (*workspace)(const KernelQuery&) = nullptr;  // null: none
  Grouping grouping = Grouping::alone;
  // Of a check of the products that it makes, beside the workspace; null: it makes none, or cannot check them.
  Bytes (*check)(const KernelQuery&) = nullptr;
  Elements elements = Elements::computed;
  // A bit for each input that a kernel of Elements::computed takes in bf16 too, with the output written over it.
  uint32_t bf16_inputs = 0;
};

// The scratch of an op: its kernel's from the beginning, then that of the check of its products where it has one.
struct KernelScratch {
  int64_t check_at = 0, check = 0;
  Bytes bytes() const { return {check_at + check}; }
};

// The needs of a target's kernels by op. An op that is not listed needs nothing.
class KernelTable {
 public:
  KernelTable(std::initializer_list<std::pair<const OpDef* const, KernelNeeds>> needs) : needs_(needs) {}

  Grouping grouping(const OpDef& def) const;
  Elements elements(const OpDef& def) const;
  uint32_t bf16_inputs(const OpDef& def) const;
  Bytes workspace(const OpDef& def, const KernelQuery& query) const;
  bool can_check(const OpDef& def) const;
  Bytes check(const OpDef& def, const KernelQuery& query) const;

 private:
  const KernelNeeds* find(const OpDef& def) const;

  std::unordered_map<const OpDef*, KernelNeeds> needs_;
};

}  // namespace sextant
