// The libraries whose headers this program was compiled with. `doctor` says which of them it finds when it runs.
#pragma once

#include <string>
#include <vector>

namespace sextant {

struct BuiltWith {
  const char* name;     // "CUDA"
  std::string version;  // empty: the program was built without it
};

// Compiler, CUDA, cuDNN, NCCL, MPI, Snappy and LZ4, in this order, each whether it is there or not.
std::vector<BuiltWith> built_with();

}  // namespace sextant
