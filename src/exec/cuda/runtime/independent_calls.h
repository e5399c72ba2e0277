// Runs of calls that may be carried out at the same time. Ops that stand side by side do not read each other's results,
// but memory may be planned for one after the other: then what one writes lies where a neighbour still reads.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/cuda/runtime/kernel.h"

namespace sextant {

class IndependentCalls {
 public:
  // workspace: bytes of it that the call writes.
  bool take(const CudaCall& call, int64_t workspace);

 private:
  struct Memory {
    uintptr_t begin, end;
  };
  static Memory memory_of(const Tensor& tensor);
  static bool meets(const std::vector<Memory>& taken, const std::vector<Memory>& asked);

  std::vector<Memory> read_, written_;
};

// Cuts calls, in their order, into as few runs as may each be carried out at once: body(CudaCalls).
template <class WorkspaceOf, class Body>
void for_independent_calls(CudaCalls calls, const WorkspaceOf& workspace_of, const Body& body) {
  for (size_t first = 0, end = 0; first < calls.size(); first = end) {
    IndependentCalls run;
    while (end < calls.size() && run.take(calls[end], workspace_of(calls[end]))) ++end;
    body(calls.subspan(first, end - first));
  }
}

}  // namespace sextant
