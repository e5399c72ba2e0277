# Every outside library, found once. scripts/setup installs the Debian or Ubuntu packages that hold them.

find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)

# These ship pkg-config files on both Debian 12 and Ubuntu 24.04, CMake ones only on some.
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET openblas)
add_library(PCRE2::PCRE2 ALIAS PkgConfig::PCRE2)
add_library(zstd::zstd ALIAS PkgConfig::ZSTD)
add_library(xxhash::xxhash ALIAS PkgConfig::XXHASH)
add_library(sextant_blas ALIAS PkgConfig::OPENBLAS)
if(NOT TARGET hwy::hwy)
  add_library(hwy::hwy ALIAS PkgConfig::HWY)
endif()

# toml++ is used header-only, so that its shared library need not match our compiler's settings.
find_path(TOMLPLUSPLUS_INCLUDE toml++/toml.h REQUIRED)
add_library(tomlplusplus::tomlplusplus INTERFACE IMPORTED)
target_include_directories(tomlplusplus::tomlplusplus SYSTEM INTERFACE ${TOMLPLUSPLUS_INCLUDE})
target_compile_definitions(tomlplusplus::tomlplusplus INTERFACE TOML_HEADER_ONLY=1)

# Optional: without it nothing can be kept on NVMe (offload.to), which is refused.
pkg_check_modules(LIBURING IMPORTED_TARGET liburing>=2.2)
add_library(sextant_uring INTERFACE)
if(LIBURING_FOUND)
  target_link_libraries(sextant_uring INTERFACE PkgConfig::LIBURING)
  target_compile_definitions(sextant_uring INTERFACE SEXTANT_LIBURING=1)
endif()

# Optional: without them blocks of Snappy and LZ4 in Parquet and Arrow files are refused. Upstream Snappy has no pkg-config file.
function(sextant_block_library name header)
  string(TOUPPER ${name} upper)
  find_path(${upper}_INCLUDE ${header})
  find_library(${upper}_LIBRARY ${name})
  add_library(sextant_${name} INTERFACE)
  if(${upper}_INCLUDE AND ${upper}_LIBRARY)
    target_include_directories(sextant_${name} SYSTEM INTERFACE ${${upper}_INCLUDE})
    target_link_libraries(sextant_${name} INTERFACE ${${upper}_LIBRARY})
    target_compile_definitions(sextant_${name} INTERFACE SEXTANT_${upper}=1)
  else()
    message(STATUS "lib${name} was not found: blocks in its format will be refused (scripts/setup installs it)")
  endif()
endfunction()
sextant_block_library(snappy snappy.h)
sextant_block_library(lz4 lz4frame.h)

# Optional: without it a run stays in one process.
find_package(MPI COMPONENTS C)
if(MPI_C_FOUND)
  add_library(sextant_mpi INTERFACE)
  target_link_libraries(sextant_mpi INTERFACE MPI::MPI_C)
  target_compile_definitions(sextant_mpi INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)  # the C interface is all we use
endif()
