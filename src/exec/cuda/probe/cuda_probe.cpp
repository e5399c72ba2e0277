#include "exec/cuda/probe/cuda_probe.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "base/rng.h"
#include "exec/cuda/gemm/cublaslt.h"
#include "exec/cuda/probe/probe_kernels.h"
#include "exec/cuda/probe/sensors.h"
#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/device.h"

namespace sextant {

namespace {

constexpr int64_t kFlushBytes = int64_t{256} << 20;
constexpr size_t kScratch = size_t{32} << 20;

class DeviceBytes {
 public:
  explicit DeviceBytes(int64_t bytes) {
    if (bytes > 0) check_cuda(cudaMalloc(&data_, static_cast<size_t>(bytes)), "memory for a benchmark");
  }
  ~DeviceBytes() { cudaFree(data_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  void* data() const { return data_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

// Enqueues flush and work again and again, with an event before and after each piece of work, and reads the times at
// the end: the device never waits for the host, as in training.
class Timer {
 public:
  explicit Timer(cudaStream_t stream) : stream_(stream), flush_(kFlushBytes) {}
  ~Timer() {
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  std::vector<double> time(int calls, const std::function<void()>& work) {
    while (events_.size() < 2 * static_cast<size_t>(calls))
      check_cuda(cudaEventCreate(&events_.emplace_back()), "an event");
    for (size_t i = 0; i < static_cast<size_t>(calls); ++i) {
      check_cuda(cudaMemsetAsync(flush_.data(), 0, kFlushBytes, stream_), "clearing the cache");
      check_cuda(cudaEventRecord(events_[2 * i], stream_), "timing");
      work();
      check_cuda(cudaEventRecord(events_[2 * i + 1], stream_), "timing");
    }
    check_cuda(cudaStreamSynchronize(stream_), "timing");
    std::vector<double> seconds;
    for (size_t i = 0; i < static_cast<size_t>(calls); ++i) {
      float ms = 0;
      check_cuda(cudaEventElapsedTime(&ms, events_[2 * i], events_[2 * i + 1]), "timing");
      seconds.push_back(static_cast<double>(ms) / 1e3);
    }
    return seconds;
  }
  cudaStream_t stream() const { return stream_; }

 private:
  cudaStream_t stream_;
  DeviceBytes flush_;
  std::vector<cudaEvent_t> events_;
};

// How a type is stored, computed and handed out, and how far a right result may be off.
struct GemmType {
  const char* name;
  ProbeType in, out;
  cudaDataType_t stored, result;
  cublasComputeType_t compute;
  int64_t in_bytes, out_bytes;
  int capability;   // the oldest that has it
  double rounding;  // of the result, relative
  double per_term;  // of each term, relative: operands are cut, or sums kept short
};
constexpr std::array kTypes{GemmType{"fp32", ProbeType::fp32, ProbeType::fp32, CUDA_R_32F, CUDA_R_32F,
                                     CUBLAS_COMPUTE_32F, 4, 4, 0, 0x1p-23, 0x1p-23},
                            GemmType{"tf32", ProbeType::fp32, ProbeType::fp32, CUDA_R_32F, CUDA_R_32F,
                                     CUBLAS_COMPUTE_32F_FAST_TF32, 4, 4, 80, 0x1p-23, 0x1p-10},
                            GemmType{"bf16", ProbeType::bf16, ProbeType::bf16, CUDA_R_16BF, CUDA_R_16BF,
                                     CUBLAS_COMPUTE_32F, 2, 2, 80, 0x1p-8, 0x1p-21},
                            GemmType{"fp16", ProbeType::fp16, ProbeType::fp16, CUDA_R_16F, CUDA_R_16F,
                                     CUBLAS_COMPUTE_32F, 2, 2, 70, 0x1p-10, 0x1p-21},
                            GemmType{"fp8", ProbeType::fp8, ProbeType::bf16, CUDA_R_8F_E4M3, CUDA_R_16BF,
                                     CUBLAS_COMPUTE_32F, 1, 2, 89, 0x1p-8, 0x1p-12}};

class CudaGemm final : public TimedWork {
 public:
  CudaGemm(const GemmDims& shape, const GemmType& type, Timer& timer, cublasLtHandle_t handle)
      : shape_(shape),
        type_(type),
        timer_(timer),
        handle_(handle),
        a_(shape.m * shape.k * type.in_bytes),
        b_(shape.n * shape.k * type.in_bytes),
        c_(shape.m * shape.n * type.out_bytes),
        scratch_(kScratch),
        scale_(sizeof(float)) {
    fill_uniform(a_.data(), shape.m * shape.k, type.in, 1, timer.stream());
    fill_uniform(b_.data(), shape.n * shape.k, type.in, 2, timer.stream());
    float one = 1;
    check_cuda(cudaMemcpy(scale_.data(), &one, sizeof one, cudaMemcpyHostToDevice), "a scale");
    describe();
    choose();
  }
  ~CudaGemm() override {
    const CublasLt& lt = cublaslt();
    for (cublasLtMatrixLayout_t layout : {first_, second_, result_})
      if (layout) lt.cublasLtMatrixLayoutDestroy(layout);
    if (gemm_) lt.cublasLtMatmulDescDestroy(gemm_);
  }

  double run() override { return run_many(1)[0]; }
  std::vector<double> run_many(int calls) override {
    return timer_.time(calls, [this] { multiply(); });
  }

  double error() override {
    constexpr int kSamples = 256;
    Random random(3, "sampled elements");
    std::vector<int64_t> places(2 * kSamples);
    for (size_t i = 0; i < kSamples; ++i) {
      places[i] = static_cast<int64_t>(random.below(2 * i, static_cast<uint64_t>(shape_.m)));
      places[kSamples + i] = static_cast<int64_t>(random.below(2 * i + 1, static_cast<uint64_t>(shape_.n)));
    }
    DeviceBytes where(static_cast<int64_t>(places.size() * sizeof(int64_t))),
        found(3 * kSamples * static_cast<int64_t>(sizeof(double)));
    check_cuda(cudaMemcpy(where.data(), places.data(), places.size() * sizeof(int64_t), cudaMemcpyHostToDevice),
               "samples");
    sampled_elements({a_.data(), b_.data(), c_.data(), type_.in, type_.out, shape_.n, shape_.k, where.as<int64_t>(),
                      where.as<int64_t>() + kSamples, kSamples},
                     found.as<double>(), timer_.stream());
    std::vector<double> results(3 * kSamples);
    check_cuda(cudaStreamSynchronize(timer_.stream()), "samples");
    check_cuda(cudaMemcpy(results.data(), found.data(), results.size() * sizeof(double), cudaMemcpyDeviceToHost),
               "samples");
    double worst = 0, depth = std::sqrt(static_cast<double>(shape_.k));
    for (size_t i = 0; i < kSamples; ++i) {
      double exact = results[3 * i], size = results[3 * i + 1], got = results[3 * i + 2];
      // Cut operands err at random from term to term; short sums err with their size.
      double allowed = type_.rounding * std::abs(exact) + 8 * type_.per_term * size / depth + 0x1p-22 * size + 1e-30;
      if (type_.in == ProbeType::fp8) allowed += type_.per_term * size;
      worst = std::max(worst, std::isfinite(got) ? std::abs(got - exact) / allowed : 1e9);
    }
    return worst;
  }

 private:
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    cublaslt().check(cublaslt().cublasLtMatmulDescSetAttribute(gemm_, attribute, &value, sizeof value),
                     "describing a GEMM");
  }

  // The library counts by columns: row-major c = a·bᵀ is cᵀ = b·aᵀ there, and b is stored as its transpose.
  void describe() {
    const CublasLt& lt = cublaslt();
    lt.check(lt.cublasLtMatmulDescCreate(&gemm_, type_.compute, CUDA_R_32F), "describing a GEMM");
    set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
    if (type_.in == ProbeType::fp8) {
      void* scale = scale_.data();
      set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, scale);
      set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, scale);
      set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, int8_t{1});
    }
    auto layout = [&](cublasLtMatrixLayout_t& at, cudaDataType_t type, int64_t rows, int64_t columns) {
      lt.check(
          lt.cublasLtMatrixLayoutCreate(&at, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), rows),
          "describing a matrix");
    };
    layout(first_, type_.stored, shape_.k, shape_.n);
    layout(second_, type_.stored, shape_.k, shape_.m);
    layout(result_, type_.result, shape_.n, shape_.m);
  }

  // The library's own first choice, which is what frameworks run.
  void choose() {
    const CublasLt& lt = cublaslt();
    cublasLtMatmulPreference_t preference = nullptr;
    lt.check(lt.cublasLtMatmulPreferenceCreate(&preference), "asking for algorithms");
    uint64_t scratch = kScratch;
    lt.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &scratch,
                                            sizeof scratch);
    int count = 0;
    cublasStatus_t status = lt.cublasLtMatmulAlgoGetHeuristic(handle_, gemm_, first_, second_, result_, result_,
                                                              preference, 1, &chosen_, &count);
    lt.cublasLtMatmulPreferenceDestroy(preference);
    if (status != CUBLAS_STATUS_SUCCESS || count == 0)
      throw RunError(fmt::format("{}x{}x{} {}", shape_.m, shape_.n, shape_.k, type_.name),
                     "the library has no way to multiply this",
                     type_.in == ProbeType::fp8 ? "fp8 needs sizes that are multiples of 16" : "");
  }

  void multiply() {
    float one = 1, zero = 0;
    const CublasLt& lt = cublaslt();
    lt.check(lt.cublasLtMatmul(handle_, gemm_, &one, b_.data(), first_, a_.data(), second_, &zero, c_.data(), result_,
                               c_.data(), result_, &chosen_.algo, scratch_.data(), kScratch, timer_.stream()),
             "a GEMM");
  }

  GemmDims shape_;
  const GemmType& type_;
  Timer& timer_;
  cublasLtHandle_t handle_;
  DeviceBytes a_, b_, c_, scratch_, scale_;
  cublasLtMatmulDesc_t gemm_ = nullptr;
  cublasLtMatrixLayout_t first_ = nullptr, second_ = nullptr, result_ = nullptr;
  cublasLtMatmulHeuristicResult_t chosen_{};
};

class CudaStreamWork final : public TimedWork {
 public:
  CudaStreamWork(Stream stream, int64_t bytes, Timer& timer)
      : stream_(stream),
        count_(std::max<int64_t>(bytes / 16 * 4, 4)),
        timer_(timer),
        a_(count_ * 4),
        b_(stream == Stream::copy || stream == Stream::triad ? count_ * 4 : 0),
        c_(stream == Stream::triad ? count_ * 4 : 0),
        sums_(kReadSums * static_cast<int64_t>(sizeof(double))) {
    // Sevens all over: every result is then known.
    stream_write(a_.as<float>(), count_, timer.stream());
    if (stream == Stream::triad) stream_write(b_.as<float>(), count_, timer.stream());
    if (stream == Stream::write)
      check_cuda(cudaMemsetAsync(a_.data(), 0, static_cast<size_t>(count_) * 4, timer.stream()), "clearing");
  }

  double run() override { return run_many(1)[0]; }
  std::vector<double> run_many(int calls) override {
    return timer_.time(calls, [this] { once(); });
  }

  double error() override {
    check_cuda(cudaStreamSynchronize(timer_.stream()), "a stream");
    if (stream_ == Stream::read) {
      std::vector<double> sums(kReadSums);
      check_cuda(cudaMemcpy(sums.data(), sums_.data(), sums.size() * sizeof(double), cudaMemcpyDeviceToHost), "sums");
      double sum = std::accumulate(sums.begin(), sums.end(), 0.0);
      return sum == 7.0 * static_cast<double>(count_) ? 0 : 2;
    }
    const DeviceBytes& result = stream_ == Stream::copy ? b_ : stream_ == Stream::triad ? c_ : a_;
    float wanted = stream_ == Stream::triad ? 28.0f : 7.0f;
    std::vector<float> some(static_cast<size_t>(std::min<int64_t>(count_, 1 << 16)));
    for (int64_t at :
         {int64_t{0}, (count_ - static_cast<int64_t>(some.size())) / 2, count_ - static_cast<int64_t>(some.size())}) {
      check_cuda(cudaMemcpy(some.data(), result.as<float>() + at, some.size() * sizeof(float), cudaMemcpyDeviceToHost),
                 "results");
      if (std::any_of(some.begin(), some.end(), [&](float x) { return x != wanted; })) return 2;
    }
    return 0;
  }

 private:
  void once() {
    cudaStream_t stream = timer_.stream();
    switch (stream_) {
      case Stream::copy:
        check_cuda(
            cudaMemcpyAsync(b_.data(), a_.data(), static_cast<size_t>(count_) * 4, cudaMemcpyDeviceToDevice, stream),
            "a copy");
        break;
      case Stream::triad:
        stream_triad(a_.as<float>(), b_.as<float>(), c_.as<float>(), count_, stream);
        break;
      case Stream::read:
        stream_read(a_.as<float>(), sums_.as<double>(), count_, stream);
        break;
      case Stream::write:
        stream_write(a_.as<float>(), count_, stream);
        break;
    }
  }

  Stream stream_;
  int64_t count_;
  Timer& timer_;
  DeviceBytes a_, b_, c_, sums_;
};

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// cuDNN is opened by those who use it; here only its version is asked for.
std::string cudnn_version() {
  void* library = ::dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  auto version = library ? reinterpret_cast<size_t (*)()>(::dlsym(library, "cudnnGetVersion")) : nullptr;
  return version ? fmt::format("{}", version()) : "";
}

class PinnedBytes {
 public:
  explicit PinnedBytes(int64_t bytes) {
    check_cuda(cudaMallocHost(&data_, static_cast<size_t>(bytes)), "page-locked memory for a benchmark");
  }
  ~PinnedBytes() { cudaFreeHost(data_); }
  PinnedBytes(const PinnedBytes&) = delete;
  PinnedBytes& operator=(const PinnedBytes&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

class CudaHostCopy final : public TimedWork {
 public:
  CudaHostCopy(HostCopy direction, int64_t bytes, Timer& timer)
      : direction_(direction), bytes_(static_cast<size_t>(bytes)), timer_(timer), host_(bytes), device_(bytes) {
    const bool to_device = direction == HostCopy::to_device;
    std::memset(host_.data(), to_device ? kSent : kOld, bytes_);
    check_cuda(cudaMemset(device_.data(), to_device ? kOld : kSent, bytes_), "what is copied");
  }

  double run() override { return run_many(1)[0]; }
  std::vector<double> run_many(int calls) override {
    return timer_.time(calls, [this] {
      const bool to_device = direction_ == HostCopy::to_device;
      check_cuda(cudaMemcpyAsync(to_device ? device_.data() : host_.data(), to_device ? host_.data() : device_.data(),
                                 bytes_, to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, timer_.stream()),
                 "a copy");
    });
  }

  double error() override {
    std::vector<unsigned char> arrived(bytes_);
    const void* place = direction_ == HostCopy::to_device ? device_.data() : host_.data();
    check_cuda(cudaMemcpy(arrived.data(), place, bytes_, cudaMemcpyDefault), "what arrived");
    return std::all_of(arrived.begin(), arrived.end(), [](unsigned char x) { return x == kSent; }) ? 0 : 2;
  }

 private:
  static constexpr unsigned char kSent = 7, kOld = 0;
  HostCopy direction_;
  size_t bytes_;
  Timer& timer_;
  PinnedBytes host_;
  DeviceBytes device_;
};

class CudaProbe final : public DeviceProbe {
 public:
  explicit CudaProbe(int device) : device_(device, Determinism::fast, Tuning::first_choice), timer_(device_.stream()) {
    cublaslt().check(cublaslt().cublasLtCreate(&handle_), "opening cuBLASLt");
  }
  ~CudaProbe() override { cublaslt().cublasLtDestroy(handle_); }

  DeviceFacts facts() const override {
    size_t free = 0, total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), "the device's memory");
    int driver = 0, runtime = 0, cache = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device_.index());
    return {.name = device_.name(),
            .units = device_.multiprocessors(),
            .memory_bytes = static_cast<int64_t>(total),
            .cache_bytes = cache,
            .versions = {{"driver", read_sensors(device_.index()).driver},
                         {"CUDA", fmt::format("{} (driver up to {})", version_text(runtime), version_text(driver))},
                         {"cuBLASLt", fmt::format("{}", cublaslt().cublasLtGetVersion())},
                         {"cuDNN", cudnn_version()}}};
  }

  Readings readings() const override { return read_sensors(device_.index()).readings; }

  std::vector<std::string> gemm_types() const override {
    std::vector<std::string> types;
    for (const GemmType& type : kTypes)
      if (device_.capability() >= type.capability) types.push_back(type.name);
    return types;
  }

  std::unique_ptr<TimedWork> gemm(const GemmDims& shape, const std::string& name) override {
    device_.use();
    for (const GemmType& type : kTypes)
      if (type.name == name) return std::make_unique<CudaGemm>(shape, type, timer_, handle_);
    BUG("no GEMMs in {}", name);
  }
  std::unique_ptr<TimedWork> stream(Stream stream, int64_t bytes) override {
    device_.use();
    return std::make_unique<CudaStreamWork>(stream, bytes, timer_);
  }
  std::unique_ptr<TimedWork> host_copy(HostCopy direction, int64_t bytes) override {
    device_.use();
    return std::make_unique<CudaHostCopy>(direction, bytes, timer_);
  }

 private:
  CudaDevice device_;
  Timer timer_;
  cublasLtHandle_t handle_ = nullptr;
};

}  // namespace

std::unique_ptr<DeviceProbe> make_cuda_probe(int device) {
  return std::make_unique<CudaProbe>(device);
}

}  // namespace sextant
