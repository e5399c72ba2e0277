#include "doctor/checks.h"

namespace sextant {

std::string_view name_of(Health health) {
  switch (health) {
    case Health::ok:
      return "ok";
    case Health::warning:
      return "warning";
    case Health::failure:
      return "failure";
    case Health::unknown:
      return "unknown";
  }
  return "";
}

Examination examine(const Host& host) {
  Examination exam;
  if (auto kernel = host.file("/proc/sys/kernel/osrelease")) exam.fact("kernel", *kernel);
  GpuReport gpus = host.gpus();
  check_gpus(host, gpus, exam);
  check_libraries(host, gpus, exam);
  check_kernel_log(host, gpus, exam);
  check_processor(host, exam);
  check_memory(host, exam);
  check_limits(host, exam);
  check_disks(host, exam);
  check_clock(host, exam);
  return exam;
}

}  // namespace sextant
