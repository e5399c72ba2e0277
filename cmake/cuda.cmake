# The CUDA executor: kernels in exec/cuda, NCCL in comm/nccl.
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)  # CMake 3.25 does not know that nvcc 13 can
endif()
find_package(CUDAToolkit REQUIRED)
sextant_module(comm/nccl NEEDS comm PUBLIC CUDA::cudart_static PRIVATE ${CMAKE_DL_LIBS})
# Ops that go through the host are done by the CPU's kernels there.
sextant_module(exec/cuda FOLDERS runtime gemm attention kernels probe NEEDS exec/cpu comm/nccl PUBLIC CUDA::cudart_static ${CMAKE_DL_LIBS}
               APART */*.cpp)
# Ampere, Hopper with its own instructions, and everything newer through PTX.
set(SEXTANT_CUDA_ARCHITECTURES "80-real;90a-real;90-virtual" CACHE STRING "GPUs to compile for")
set_target_properties(sextant_exec_cuda PROPERTIES CUDA_ARCHITECTURES "${SEXTANT_CUDA_ARCHITECTURES}")
target_compile_options(sextant_exec_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr --extended-lambda
                       -Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers>)
if(SEXTANT_WERROR)
  target_compile_options(sextant_exec_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings -Xcompiler=-Werror>)
endif()
target_compile_definitions(sextant_exec_cuda PUBLIC SEXTANT_CUDA=1
                           PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:FMT_USE_CONSTEXPR=1>)  # fmt does not know that nvcc can
# scripts/cudnn-headers puts the frontend there; libcudnn itself is opened at run time.
find_path(CUDNN_FRONTEND_INCLUDE cudnn_frontend.h HINTS ${CMAKE_SOURCE_DIR}/build/cudnn-frontend/include)
find_path(CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
if(CUDNN_FRONTEND_INCLUDE AND CUDNN_INCLUDE)
  # It only builds plans, and takes four times as long to compile at -O3.
  set_source_files_properties(src/exec/cuda/attention/attention_library.cpp PROPERTIES
    COMPILE_DEFINITIONS SEXTANT_CUDNN=1
    COMPILE_OPTIONS "-O1;-isystem;${CUDNN_FRONTEND_INCLUDE};-isystem;${CUDNN_INCLUDE}")
  set_source_files_properties(app/built_with.cpp PROPERTIES
    COMPILE_DEFINITIONS SEXTANT_CUDNN=1
    COMPILE_OPTIONS "-isystem;${CUDNN_INCLUDE}")
else()
  message(STATUS "cuDNN's headers were not found: attention will use our own kernels (scripts/cudnn-headers fetches the frontend's)")
endif()
