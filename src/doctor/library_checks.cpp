#include <fmt/format.h>

#include <charconv>

#include "doctor/checks.h"

namespace sextant {

namespace {

constexpr const char* kLibraryGroup = "libraries";

struct Version {
  int major = 0, minor = 0;
  auto operator<=>(const Version&) const = default;
};

Version parse_version(const std::string& text) {
  Version version;
  const char *at = text.data(), *end = at + text.size();
  at = std::from_chars(at, end, version.major).ptr;
  if (at != end && *at == '.') std::from_chars(at + 1, end, version.minor);
  return version;
}

constexpr Version kOldestNccl{2, 18};

void check_cuda(const Host& host, const GpuReport& report, Examination& exam) {
  auto version = host.version_of("cuda");
  if (!version) return exam.unknown(kLibraryGroup, "CUDA", "no libcudart to ask; programs may have it built in");
  exam.fact("cuda", *version);
  // Within a major version, older drivers serve newer toolkits.
  if (report.newest_cuda && parse_version(*version).major > parse_version(*report.newest_cuda).major)
    return exam.add({kLibraryGroup, "CUDA", Health::failure,
                     fmt::format("{}, but the driver serves no more than {}", *version, *report.newest_cuda),
                     "install a newer driver, or an older toolkit"});
  exam.ok(kLibraryGroup, "CUDA", *version);
}

void check_nccl(const Host& host, const GpuReport& report, Examination& exam) {
  auto version = host.version_of("nccl");
  if (!version && report.gpus.size() <= 1) return exam.ok(kLibraryGroup, "NCCL", "not here; one GPU alone needs none");
  if (!version)
    return exam.add({kLibraryGroup, "NCCL", Health::failure, "libnccl.so.2 cannot be loaded",
                     "ranks on GPUs of their own talk through it: install it, or name its folder in LD_LIBRARY_PATH"});
  exam.fact("nccl", *version);
  if (parse_version(*version) < kOldestNccl)
    return exam.add({kLibraryGroup, "NCCL", Health::failure, *version, "install NCCL 2.18 or newer"});
  exam.ok(kLibraryGroup, "NCCL", *version);
}

void report_version(const Host& host, const std::string& library, const std::string& title, const std::string& without,
                    Examination& exam) {
  auto version = host.version_of(library);
  if (!version) return exam.ok(kLibraryGroup, title, without);
  exam.fact(library, *version);
  exam.ok(kLibraryGroup, title, *version);
}

}  // namespace

void check_libraries(const Host& host, const GpuReport& report, Examination& exam) {
  if (!report.gpus.empty()) {
    check_cuda(host, report, exam);
    report_version(host, "cublas", "cuBLAS", "not found: GEMMs on the GPU need it", exam);
    report_version(host, "cudnn", "cuDNN", "not found: attention uses our own kernels", exam);
    check_nccl(host, report, exam);
  }
  report_version(host, "mpi", "MPI", "this build has none: ranks are threads of one process", exam);
}

}  // namespace sextant
