#include "exec/cpu/cpu_probe.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <numeric>

#include "base/error.h"
#include "base/rng.h"
#include "base/threads.h"
#include "exec/cpu/cpu_bound.h"
#include "exec/cpu/kernels/gemm.h"

namespace sextant {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kTask = 1 << 18;  // elements of a stream that one task takes

// Larger than any cache that a core shares.
int64_t flush_bytes(int64_t cache) {
  return std::max<int64_t>(2 * cache, int64_t{64} << 20);
}

int64_t last_level_cache() {
  int64_t most = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream in(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", index));
    int64_t size = 0;
    char unit = 'K';
    if (in >> size >> unit) most = std::max(most, size * (unit == 'M' ? 1 << 20 : 1 << 10));
  }
  return most;
}

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  std::string implementer, part;
  for (std::string line; std::getline(in, line);) {
    auto value = [&] { return line.substr(std::min(line.size(), line.find(':') + 2)); };
    if (line.starts_with("model name")) return value();
    if (line.starts_with("CPU implementer")) implementer = value();
    if (line.starts_with("CPU part")) part = value();
  }
  for (auto [code, name] : {std::pair("0xd0c", "Neoverse-N1"), std::pair("0xd40", "Neoverse-V1"),
                            std::pair("0xd49", "Neoverse-N2"), std::pair("0xd4f", "Neoverse-V2")})
    if (implementer == "0x41" && part == code) return name;
  return part.empty() ? "CPU" : fmt::format("Arm CPU {} part {}", implementer, part);
}

// Bytes that are written over between two calls, by every thread its part.
class Flush {
 public:
  Flush(ThreadTeam& team, int64_t cache) : team_(team), arena_(flush_bytes(cache)) {}
  void run() {
    auto* data = reinterpret_cast<uint64_t*>(arena_.data());
    int64_t count = arena_.bytes() / 8;
    ++round_;
    team_.parallel_for(ceil_div(count, kTask), [&](int64_t task, int) {
      for (int64_t i = task * kTask; i < std::min(count, (task + 1) * kTask); ++i) data[i] += round_;
    });
  }

 private:
  ThreadTeam& team_;
  HostArena arena_;
  uint64_t round_ = 0;
};

template <class Work>
double seconds_of(const Work& work) {
  auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class CpuGemm final : public TimedWork {
 public:
  CpuGemm(const GemmDims& shape, ThreadTeam& team, Flush& flush)
      : shape_(shape),
        team_(team),
        flush_(flush),
        a_(shape.m * shape.k * 4),
        b_(shape.n * shape.k * 4),
        c_(shape.m * shape.n * 4),
        workspace_(cpu::multiply_workspace(shape.n, shape.k, team.size())) {
    fill(a_, "a");
    fill(b_, "b");
  }

  double run() override {
    flush_.run();
    auto* a = reinterpret_cast<const float*>(a_.data());
    auto* b = reinterpret_cast<const float*>(b_.data());
    cpu::Gemm<float> gemm{.m = shape_.m,
                          .n = shape_.n,
                          .k = shape_.k,
                          .a = {a, shape_.k},
                          .b = {b, 1, shape_.k},
                          .c = reinterpret_cast<float*>(c_.data()),
                          .c_stride = shape_.n};
    return seconds_of([&] { cpu::multiply(gemm, team_, workspace_.data()); });
  }

  double error() override {
    constexpr uint64_t kSamples = 64;
    Random random(3, "sampled elements");
    double worst = 0;
    for (uint64_t i = 0; i < kSamples; ++i) {
      auto row = static_cast<int64_t>(random.below(2 * i, static_cast<uint64_t>(shape_.m)));
      auto column = static_cast<int64_t>(random.below(2 * i + 1, static_cast<uint64_t>(shape_.n)));
      auto* a = reinterpret_cast<const float*>(a_.data()) + row * shape_.k;
      auto* b = reinterpret_cast<const float*>(b_.data()) + column * shape_.k;
      double exact = 0, size = 0;
      for (int64_t j = 0; j < shape_.k; ++j) {
        double term = static_cast<double>(a[j]) * static_cast<double>(b[j]);
        exact += term, size += std::abs(term);
      }
      double got = static_cast<double>(reinterpret_cast<const float*>(c_.data())[row * shape_.n + column]);
      double allowed = 0x1p-24 * (2 + std::sqrt(static_cast<double>(shape_.k))) * size;
      worst = std::max(worst, std::abs(got - exact) / allowed);
    }
    return worst;
  }

 private:
  void fill(HostArena& arena, std::string_view name) {
    Random random(1, name);
    auto* data = reinterpret_cast<float*>(arena.data());
    int64_t count = arena.bytes() / 4;
    team_.parallel_for(ceil_div(count, kTask), [&](int64_t task, int) {
      for (int64_t i = task * kTask; i < std::min(count, (task + 1) * kTask); ++i)
        data[i] = static_cast<float>(random.uniform(static_cast<uint64_t>(i))) - 0.5f;
    });
  }

  GemmDims shape_;
  ThreadTeam& team_;
  Flush& flush_;
  HostArena a_, b_, c_, workspace_;
};

class CpuStream final : public TimedWork {
 public:
  CpuStream(Stream stream, int64_t bytes, ThreadTeam& team, Flush& flush)
      : stream_(stream),
        count_(std::max<int64_t>(bytes / 4, 1)),
        team_(team),
        flush_(flush),
        a_(count_ * 4),
        b_(stream == Stream::copy || stream == Stream::triad ? count_ * 4 : 4),
        c_(stream == Stream::triad ? count_ * 4 : 4),
        sums_(static_cast<size_t>(ceil_div(count_, kTask))) {
    pass([&](int64_t i) { a()[i] = static_cast<float>(i % 1024); });
    if (stream_ == Stream::triad) pass([&](int64_t i) { b()[i] = static_cast<float>(i % 512); });
  }

  double run() override {
    flush_.run();
    return seconds_of([&] { once(); });
  }

  double error() override {
    if (stream_ == Stream::read) {
      double sum = std::accumulate(sums_.begin(), sums_.end(), 0.0), exact = 0;
      for (int64_t i = 0; i < count_; ++i) exact += static_cast<double>(i % 1024);
      return std::abs(sum - exact) <= 1e-6 * exact + 1 ? 0 : 2;
    }
    double wrong = 0;
    for (int64_t i = 0; i < count_; i += std::max<int64_t>(1, count_ / 1000)) {
      float x = static_cast<float>(i % 1024), got = stream_ == Stream::copy    ? b()[i]
                                                    : stream_ == Stream::triad ? c()[i]
                                                                               : a()[i];
      float wanted = stream_ == Stream::triad   ? x + 3.0f * static_cast<float>(i % 512)
                     : stream_ == Stream::write ? 7.0f
                                                : x;
      wrong += got == wanted ? 0 : 2;
    }
    return wrong;
  }

 private:
  float* a() { return reinterpret_cast<float*>(a_.data()); }
  float* b() { return reinterpret_cast<float*>(b_.data()); }
  float* c() { return reinterpret_cast<float*>(c_.data()); }

  template <class Each>
  void pass(const Each& each) {
    team_.parallel_for(ceil_div(count_, kTask), [&](int64_t task, int) {
      for (int64_t i = task * kTask; i < std::min(count_, (task + 1) * kTask); ++i) each(i);
    });
  }

  void once() {
    const float* x = a();
    float *y = b(), *z = c(), *w = a();
    switch (stream_) {
      case Stream::copy:
        team_.parallel_for(ceil_div(count_, kTask), [&](int64_t task, int) {
          int64_t first = task * kTask, count = std::min(count_ - first, kTask);
          std::memcpy(y + first, x + first, static_cast<size_t>(count) * 4);
        });
        break;
      case Stream::triad:
        pass([&](int64_t i) { z[i] = x[i] + 3.0f * y[i]; });
        break;
      case Stream::write:
        pass([&](int64_t i) { w[i] = 7.0f; });
        break;
      case Stream::read:
        read();
        break;
    }
  }

  // Several sums side by side, or the adds would set the pace.
  void read() {
    constexpr int64_t kSums = 32;
    const float* x = a();
    team_.parallel_for(ceil_div(count_, kTask), [&](int64_t task, int) {
      float sums[kSums] = {};
      int64_t i = task * kTask, end = std::min(count_, i + kTask);
      for (; i + kSums <= end; i += kSums)
        for (int64_t j = 0; j < kSums; ++j) sums[j] += x[i + j];
      double sum = 0;
      for (; i < end; ++i) sum += static_cast<double>(x[i]);
      for (float part : sums) sum += static_cast<double>(part);
      sums_[static_cast<size_t>(task)] = sum;
    });
  }

  Stream stream_;
  int64_t count_;
  ThreadTeam& team_;
  Flush& flush_;
  HostArena a_, b_, c_;
  std::vector<double> sums_;
};

class CpuProbe final : public DeviceProbe {
 public:
  explicit CpuProbe(int threads) : team_(threads), cache_(last_level_cache()), flush_(team_, cache_) {
    cpu::use_single_threaded_blas();
  }

  DeviceFacts facts() const override {
    return {.name = cpu_model(),
            .units = team_.size(),
            .memory_bytes = int64_t{::sysconf(_SC_PHYS_PAGES)} * int64_t{::sysconf(_SC_PAGE_SIZE)},
            .cache_bytes = cache_,
            .versions = {}};
  }

  Readings readings() const override {
    Readings readings;
    int64_t khz = 0, millidegrees = 0;
    if (std::ifstream("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq") >> khz)
      readings.clock = fmt::format("{} MHz", khz / 1000);
    if (std::ifstream("/sys/class/thermal/thermal_zone0/temp") >> millidegrees)
      readings.temperature = fmt::format("{} C", millidegrees / 1000);
    return readings;
  }

  std::vector<std::string> gemm_types() const override { return {"fp32"}; }

  std::unique_ptr<TimedWork> gemm(const GemmDims& shape, const std::string& type) override {
    BUG_IF(type != "fp32", "the CPU multiplies fp32, not {}", type);
    return std::make_unique<CpuGemm>(shape, team_, flush_);
  }
  std::unique_ptr<TimedWork> stream(Stream stream, int64_t bytes) override {
    return std::make_unique<CpuStream>(stream, bytes, team_, flush_);
  }

 private:
  ThreadTeam team_;
  int64_t cache_;
  Flush flush_;
};

}  // namespace

std::unique_ptr<DeviceProbe> make_cpu_probe(int threads) {
  return std::make_unique<CpuProbe>(threads);
}

}  // namespace sextant
