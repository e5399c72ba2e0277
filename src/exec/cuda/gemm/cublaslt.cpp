#include "exec/cuda/gemm/cublaslt.h"

#include <dlfcn.h>

#include "base/error.h"

namespace sextant {

namespace {

CublasLt open_library() {
  std::string name = fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);
  void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw RunError("cuda", fmt::format("{} cannot be opened: {}", name, ::dlerror()),
                   "install the CUDA libraries of the version this program was built with, or use device=cpu");
  CublasLt found;
#define FIND(function)                                                                      \
  found.function = reinterpret_cast<decltype(found.function)>(::dlsym(library, #function)); \
  if (!found.function) throw RunError("cuda", fmt::format("{} has no {}: it is too old", name, #function));
  SEXTANT_CUBLASLT(FIND)
#undef FIND
  return found;
}

}  // namespace

void CublasLt::check(cublasStatus_t status, std::string_view what) const {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw RunError("cuda", fmt::format("{}: {}", what, cublasLtGetStatusString(status)));
}

const CublasLt& cublaslt() {
  static const CublasLt library = open_library();  // stays open to the end of the process
  return library;
}

}  // namespace sextant
