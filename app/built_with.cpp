#include "app/built_with.h"

#include <fmt/format.h>

#ifdef SEXTANT_CUDA
#include <cuda_runtime_api.h>
#include <nccl.h>
#endif
#ifdef SEXTANT_CUDNN
#include <cudnn_version.h>
#endif
#ifdef SEXTANT_MPI
#include <mpi.h>
#endif
#ifdef SEXTANT_SNAPPY
#include <snappy.h>
#endif
#ifdef SEXTANT_LZ4
#include <lz4.h>
#endif

namespace sextant {

namespace {

std::string compiler_version() {
#if defined(__clang__)
  return fmt::format("Clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
  return fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
  return "another than GCC and Clang";
#endif
}

std::string cuda_version() {
#ifdef SEXTANT_CUDA
  return fmt::format("{}.{}", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
#else
  return "";
#endif
}

std::string cudnn_version() {
#ifdef SEXTANT_CUDNN
  return fmt::format("{}.{}.{}", CUDNN_MAJOR, CUDNN_MINOR, CUDNN_PATCHLEVEL);
#else
  return "";
#endif
}

std::string nccl_version() {
#ifdef SEXTANT_CUDA
  return fmt::format("{}.{}.{}", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
#else
  return "";
#endif
}

std::string mpi_version() {
#if defined(OMPI_MAJOR_VERSION)
  return fmt::format("Open MPI {}.{}.{}", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
#elif defined(MPICH_VERSION)
  return "MPICH " MPICH_VERSION;
#elif defined(MPI_VERSION)
  return fmt::format("a library of standard {}.{}", MPI_VERSION, MPI_SUBVERSION);
#else
  return "";
#endif
}

std::string snappy_version() {
#ifdef SEXTANT_SNAPPY
  return fmt::format("{}.{}.{}", SNAPPY_MAJOR, SNAPPY_MINOR, SNAPPY_PATCHLEVEL);
#else
  return "";
#endif
}

std::string lz4_version() {
#ifdef SEXTANT_LZ4
  return LZ4_VERSION_STRING;
#else
  return "";
#endif
}

}  // namespace

std::vector<BuiltWith> built_with() {
  return {{"compiler", compiler_version()},
          {"CUDA", cuda_version()},
          {"cuDNN", cudnn_version()},
          {"NCCL", nccl_version()},
          {"MPI", mpi_version()},
          {"Snappy", snappy_version()},
          {"LZ4", lz4_version()}};
}

}  // namespace sextant
