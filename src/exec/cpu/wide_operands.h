// WideOperands: the f32 stand-ins of one op's operands in 16 bits, at their addresses (targets/cpu/widening.h).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/threads.h"
#include "exec/tensor.h"
#include "targets/cpu/widening.h"

namespace sextant {

class WideOperands {
 public:
  // `scratch` has widening.bytes() bytes.
  WideOperands(const cpu::Widening& widening, std::span<const Tensor> in, std::span<const Tensor> out,
               std::byte* scratch);

  // Fills the kernel's inputs from the op's operands at their current addresses, and sets the addresses of its outputs.
  void widen(std::span<const Tensor> in, std::span<const Tensor> out, ThreadTeam& team);
  // Rounds the kernel's results into the op's outputs.
  void round(std::span<const Tensor> out, ThreadTeam& team) const;

  std::span<const Tensor> in() const { return in_; }
  std::span<const Tensor> out() const { return out_; }

 private:
  using Place = cpu::Widening::Place;

  std::vector<Place> in_places_, out_places_;
  std::vector<Tensor> in_, out_;
  std::byte* scratch_;
};

}  // namespace sextant
