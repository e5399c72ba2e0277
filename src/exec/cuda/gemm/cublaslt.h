// NVIDIA's matrix library, opened when it is first needed, so that a program built with CUDA still starts where it is
// missing.
#pragma once

#include <cublasLt.h>

#include <string>

namespace sextant {

// The functions we use, as the library has them.
struct CublasLt {
// clang-format off
#define SEXTANT_CUBLASLT(F) \
  F(cublasLtCreate) \
  F(cublasLtDestroy) \
  F(cublasLtGetVersion) \
  F(cublasLtGetStatusString) \
  F(cublasLtMatmul) \
  F(cublasLtMatmulDescCreate) \
  F(cublasLtMatmulDescDestroy) \
  F(cublasLtMatmulDescSetAttribute) \
  F(cublasLtMatrixLayoutCreate) \
  F(cublasLtMatrixLayoutDestroy) \
  F(cublasLtMatmulPreferenceCreate) \
  F(cublasLtMatmulPreferenceDestroy) \
  F(cublasLtMatmulPreferenceSetAttribute) \
  F(cublasLtMatmulAlgoGetHeuristic) \
  F(cublasLtMatmulAlgoCheck)
// clang-format on
#define DECLARE(name) decltype(&::name) name = nullptr;
  SEXTANT_CUBLASLT(DECLARE)
#undef DECLARE

  void check(cublasStatus_t status, std::string_view what) const;  // RunError with the library's words
};

// RunError that says what is missing.
const CublasLt& cublaslt();

}  // namespace sextant
