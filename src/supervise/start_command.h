// The command lines that the supervisor starts: a verb of this program as it is, under mpirun, or under srun inside an
// allocation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sextant {

enum class Starter : uint8_t {
  process,  // ranks are threads of one process
  mpirun,
  srun,
};

struct StartRequest {
  Starter starter = Starter::process;
  std::string binary;
  int64_t ranks = 1;
  std::string hostfile;  // mpirun's; empty: none
  std::vector<std::string> launcher_arguments;
};

// `verb`: "train" or "doctor", with what follows it.
std::vector<std::string> start_command(const StartRequest& request, const std::vector<std::string>& verb);

}  // namespace sextant
