// Widening: how the CPU runs its kernels, which are written for f32, on operands in f16 and bf16. Each such operand has
// a place in the op's scratch where the kernel finds it in f32: inputs are widened into it before, outputs are rounded
// out of it after the kernel, as a GPU's kernel does in its registers. Outputs that are written over an input share its
// place. A weight that an optimizer steps has what it lacks of its f32 in an operand beside it, `low` or `low_NAME`:
// the kernel gets the full f32 alone. Beside an f16 that operand is the f32, which is handed on as it is; beside a bf16
// it has the low 16 bits (base/halves.h), which are joined with it before and parted from it after the kernel.
//
// Messages, and ops that only move elements, take all formats as they are (Elements::any in kernel_needs.cpp), and some
// kernels take certain operands in bf16 (KernelNeeds::bf16_inputs).
#pragma once

#include <cstdint>
#include <vector>

#include "ir/plan.h"

namespace sextant::cpu {

class Widening {
 public:
  static constexpr int64_t kAsItIs = -1;
  static constexpr int kNone = -1;

  // Where an operand is in f32: at a byte of the scratch, in another operand of its side, or where it always is.
  struct Place {
    int64_t at = kAsItIs;
    int master = kNone;  // the operand that is its f32
    int low = kNone;     // the operand that has the low halves of a bf16
    bool widened() const { return at != kAsItIs || master != kNone; }
  };

  // `bf16_inputs`: a bit for each input that the kernel takes in bf16, with the output that is written over it.
  Widening(const Op& op, const LocalTypes& in, const LocalTypes& out, uint32_t bf16_inputs);

  bool needed() const { return needed_; }
  int64_t bytes() const { return bytes_; }  // of scratch, before the kernel's own
  const std::vector<Place>& inputs() const { return inputs_; }
  const std::vector<Place>& outputs() const { return outputs_; }
  // Operands as the kernel is given them: without those that are part of another.
  LocalTypes wide_in, wide_out;

 private:
  Place new_place(const LocalType& type);

  std::vector<Place> inputs_, outputs_;
  int64_t bytes_ = 0;
  bool needed_ = false;
};

}  // namespace sextant::cpu
