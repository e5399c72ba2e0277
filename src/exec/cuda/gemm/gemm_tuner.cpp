#include "exec/cuda/gemm/gemm_tuner.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>

#include "base/error.h"
#include "base/units.h"
#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/fill.h"
#include "targets/cuda/fp8_sizes.h"
#include "targets/cuda/gemm_sizes.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

// First every candidate briefly, then the best of them for long enough that clocks settle where a training step has
// them.
constexpr int kFirstRepeats = 3;
constexpr size_t kFinalists = 5;
constexpr float kFinalMs = 12;  // for each finalist

// Operands of a GEMM, filled with random numbers: zeros would run faster than real data.
class Operands {
 public:
  Operands(const GemmShape& s, cudaStream_t stream) {
    int64_t in = size_of(s.in), out = size_of(s.out);
    int64_t tiles = ceil_div(s.k, cuda::kFp8Tile);
    int64_t a =
        (s.a_order == MatrixOrder::as_is ? s.m * std::max(s.a_stride, s.k) : s.k * std::max(s.a_stride, s.m)) * in;
    int64_t b = (s.b_order == MatrixOrder::as_is ? s.k * s.n : s.n * std::max(s.b_stride, s.k)) * in;
    int64_t c = s.m * std::max(s.c_stride, s.n) * out;
    for (int64_t bytes : {a, b, c, c, std::max(s.m, s.n) * int64_t{4}, cuda::kGemmWorkspace, s.m * tiles * 4,
                          std::max(s.n, int64_t{4}) * round_up(tiles, 4) * 4}) {
      void* at = nullptr;
      check_cuda(cudaMalloc(&at, static_cast<size_t>(bytes)), "memory to time a GEMM");
      parts_.push_back(at);
    }
    fill_random(parts_[0], a / in, s.in, stream);
    fill_random(parts_[1], b / in, s.b_in(), stream);
    fill_random(parts_[2], c / out, s.out, stream);
    fill_random(parts_[3], c / out, s.out, stream);
    fill_random(parts_[4], s.n, s.scales == GemmScales::none ? s.in : DType::bf16, stream);
    fill_random(parts_[6], s.m * tiles, DType::f32, stream);
    fill_random(parts_[7], s.n * tiles, DType::f32, stream);
  }
  ~Operands() {
    for (void* part : parts_) cudaFree(part);
  }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  GemmOperands of(const GemmShape& s) const {
    bool bias = s.epilogue == GemmEpilogue::bias || s.epilogue == GemmEpilogue::gelu_bias ||
                s.epilogue == GemmEpilogue::row_sums;
    bool aux = s.epilogue == GemmEpilogue::gelu || s.epilogue == GemmEpilogue::gelu_bias ||
               s.epilogue == GemmEpilogue::gelu_gradient;
    return {.a = parts_[0],
            .b = parts_[1],
            .c = parts_[2],
            .bias = bias ? parts_[4] : nullptr,
            .aux = aux ? parts_[3] : nullptr,
            .a_scales = static_cast<const float*>(parts_[6]),
            .b_scales = static_cast<const float*>(parts_[7])};
  }
  std::byte* workspace() const { return static_cast<std::byte*>(parts_[5]); }

 private:
  std::vector<void*> parts_;
};

class Events {
 public:
  Events() {
    check_cuda(cudaEventCreate(&begin), "an event");
    check_cuda(cudaEventCreate(&end), "an event");
  }
  ~Events() {
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
  }
  cudaEvent_t begin = nullptr, end = nullptr;
};

std::string hex(const cublasLtMatmulAlgo_t& algorithm) {
  std::string text;
  for (uint64_t word : algorithm.data) text += fmt::format("{:016x}", word);
  return text;
}

bool from_hex(std::string_view text, cublasLtMatmulAlgo_t& algorithm) {
  if (text.size() != 16 * std::size(algorithm.data)) return false;
  for (size_t i = 0; i < std::size(algorithm.data); ++i) {
    std::string_view word = text.substr(16 * i, 16);
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), algorithm.data[i], 16);
    if (error != std::errc{} || end != word.data() + word.size()) return false;
  }
  return true;
}

}  // namespace

fs::path tuning_directory() {
  auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value && *value ? fs::path(value) : fs::path();
  };
  if (fs::path own = set("SEXTANT_CACHE"); !own.empty()) return own;
  if (fs::path cache = set("XDG_CACHE_HOME"); !cache.empty()) return cache / "sextant";
  if (fs::path home = set("HOME"); !home.empty()) return home / ".cache" / "sextant";
  return {};
}

GemmTuner::GemmTuner(const CudaDevice& device, cublasLtHandle_t handle) : device_(device), handle_(handle) {
  fs::path directory = tuning_directory();
  if (directory.empty()) return;
  std::string name = device.name();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '-');
  file_ = directory / fmt::format("gemm-{}-{}.txt", name, cublaslt().cublasLtGetVersion());
  load();
}

// A line is "HEX MILLISECONDS SHAPE". Lines that make no sense, perhaps cut off by a crash, are left out.
void GemmTuner::load() {
  std::ifstream in(file_);
  for (std::string line; std::getline(in, line);) {
    size_t first = line.find(' '), second = line.find(' ', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    TimedAlgorithm choice;
    auto [end, error] = std::from_chars(line.data() + first + 1, line.data() + second, choice.ms);
    bool sound = error == std::errc{} && end == line.data() + second && choice.ms > 0;
    if (sound && from_hex(std::string_view(line).substr(0, first), choice.algorithm))
      known_[line.substr(second + 1)] = choice;
  }
}

void GemmTuner::append(const std::string& shape, const TimedAlgorithm& choice) const {
  if (file_.empty()) return;
  std::error_code ignored;
  fs::create_directories(file_.parent_path(), ignored);
  std::ofstream(file_, std::ios::app) << fmt::format("{} {:.5f} {}\n", hex(choice.algorithm), choice.ms, shape);
}

TimedAlgorithm GemmTuner::fastest(const GemmPlan& plan, const Candidates& candidates) {
  std::string shape = plan.shape().text();
  if (auto at = known_.find(shape); at != known_.end() && plan.accepts(handle_, at->second.algorithm))
    return at->second;
  TimedAlgorithm choice = timed(plan, candidates);
  known_[shape] = choice;
  append(shape, choice);
  return choice;
}

TimedAlgorithm GemmTuner::timed(const GemmPlan& plan, const Candidates& candidates) const {
  cudaStream_t stream = device_.stream();
  Operands operands(plan.shape(), stream);
  Events events;
  // Milliseconds of one GEMM, the mean of `repeats` back to back.
  auto time = [&](const cublasLtMatmulAlgo_t& algorithm, int repeats) {
    float ms = 0;
    check_cuda(cudaEventRecord(events.begin, stream), "timing a GEMM");
    for (int i = 0; i < repeats; ++i)
      plan.run(handle_, algorithm, operands.of(plan.shape()), operands.workspace(), stream);
    check_cuda(cudaEventRecord(events.end, stream), "timing a GEMM");
    check_cuda(cudaEventSynchronize(events.end), plan.shape().text());
    check_cuda(cudaEventElapsedTime(&ms, events.begin, events.end), "timing a GEMM");
    return ms / static_cast<float>(repeats);
  };
  std::vector<TimedAlgorithm> choices;
  for (const cublasLtMatmulHeuristicResult_t& candidate : candidates) {
    TimedAlgorithm choice{candidate.algo, std::numeric_limits<float>::infinity()};
    for (int i = 0; i < kFirstRepeats; ++i) choice.ms = std::min(choice.ms, time(candidate.algo, 1));
    choices.push_back(choice);
  }
  auto faster = [](const TimedAlgorithm& a, const TimedAlgorithm& b) { return a.ms < b.ms; };
  std::sort(choices.begin(), choices.end(), faster);
  choices.resize(std::min(choices.size(), kFinalists));
  int repeats = std::clamp(static_cast<int>(kFinalMs / choices[0].ms), 2, 200);
  for (TimedAlgorithm& choice : choices) choice.ms = time(choice.algorithm, repeats);
  return *std::min_element(choices.begin(), choices.end(), faster);
}

}  // namespace sextant
