// The checks of one machine, without asking any other. Each appends its findings and the facts it met; none needs root,
// and what cannot be read becomes a finding of its own.
#pragma once

#include "doctor/finding.h"
#include "doctor/host.h"

namespace sextant {

void check_memory(const Host& host, Examination& exam);     // what is left of it, swap, huge pages, /dev/shm
void check_limits(const Host& host, Examination& exam);     // open files, processes, locked memory
void check_processor(const Host& host, Examination& exam);  // governor, NUMA
void check_disks(const Host& host, Examination& exam);      // bytes and inodes
void check_clock(const Host& host, Examination& exam);      // whether a service keeps it
void check_gpus(const Host& host, const GpuReport& report, Examination& exam);
void check_libraries(const Host& host, const GpuReport& report, Examination& exam);
void check_kernel_log(const Host& host, const GpuReport& report, Examination& exam);

// All of them.
Examination examine(const Host& host);

}  // namespace sextant
