// Widening: how the CPU runs its kernels, which are written for f32, on operands in f16. Each f16 operand has a place
// in the op's scratch where the kernel finds it in f32: inputs are widened into it before, outputs are rounded out of
// it after the kernel, as a GPU's kernel does in its registers. Outputs that are written over an input share its place.
// A weight that an optimizer steps has its f32 beside it already (the operand `low`), and that is what the kernel is
// given.
//
// Messages, and ops that only move elements, take f16 as it is (Elements::any in kernel_needs.cpp).
#pragma once

#include <cstdint>
#include <vector>

#include "ir/plan.h"

namespace sextant::cpu {

class Widening {
 public:
  static constexpr int64_t kAsItIs = -1;

  // Where an operand is in f32: at a byte of the scratch, in an input of the op, or where it always is.
  struct Place {
    int64_t at = kAsItIs;
    bool in_master = false;  // in the op's last input
    bool widened() const { return at != kAsItIs || in_master; }
  };

  Widening(const Op& op, const LocalTypes& in, const LocalTypes& out);

  bool needed() const { return needed_; }
  int64_t bytes() const { return bytes_; }  // of scratch, before the kernel's own
  const std::vector<Place>& inputs() const { return inputs_; }
  const std::vector<Place>& outputs() const { return outputs_; }
  // Operands as the kernel is given them: without the master weight.
  LocalTypes wide_in, wide_out;

 private:
  Place new_place(const LocalType& type);

  std::vector<Place> inputs_, outputs_;
  int64_t bytes_ = 0;
  bool needed_ = false;
};

}  // namespace sextant::cpu
