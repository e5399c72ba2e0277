// Who started this program, by the environment alone: nothing of MPI is called, and none need be installed.
#pragma once

namespace sextant {

// The number of processes that mpirun, mpiexec or srun started together with this one, itself included; 1 when none
// did. 0 when a launcher did but does not say how many.
int launched_processes();

// True when this is one process of several.
bool running_under_mpi();

}  // namespace sextant
