// DeviceProbe: what benchmarks ask of a device beyond running Programs: single GEMMs in any type it multiplies,
// plain streams through memory, and what its sensors say. Every timed call finds caches without its operands.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sextant {

// c[m, n] = Σ over k of a[m, k]·b[n, k].
struct GemmDims {
  int64_t m = 0, n = 0, k = 0;
  auto operator<=>(const GemmDims&) const = default;
  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
};

enum class Stream : uint8_t { copy, triad, read, write };  // b = a; c = a + s·b; Σ a; a = s

enum class HostCopy : uint8_t { to_device, to_host };

// Something that can be timed again and again.
class TimedWork {
 public:
  virtual ~TimedWork() = default;
  // Clears the caches, does it once, and returns the seconds of that alone.
  virtual double run() = 0;
  // The same several times over, each timed alone; a device that works beside the host is not kept waiting between
  // them.
  virtual std::vector<double> run_many(int calls) {
    std::vector<double> seconds;
    for (int i = 0; i < calls; ++i) seconds.push_back(run());
    return seconds;
  }
  // After a run: the largest error among sampled results against the same computed another way, in terms of the type's
  // rounding: 1 is what is expected at most.
  virtual double error() = 0;
};

struct DeviceFacts {
  std::string name;   // "NVIDIA H200", the CPU's model
  int64_t units = 0;  // SMs, threads
  int64_t memory_bytes = 0;
  int64_t cache_bytes = 0;
  std::map<std::string, std::string> versions;  // of driver and libraries: "driver", "CUDA", "cuBLASLt", "cuDNN"
};

// Nothing where it cannot be read.
struct Readings {
  std::string clock, memory_clock, power, temperature;
};

class DeviceProbe {
 public:
  virtual ~DeviceProbe() = default;
  virtual DeviceFacts facts() const = 0;
  virtual Readings readings() const = 0;
  virtual std::vector<std::string> gemm_types() const = 0;  // "fp32", "tf32", "bf16", "fp16", "fp8"
  // RunError when the device has too little memory, or no way to do it.
  virtual std::unique_ptr<TimedWork> gemm(const GemmDims& shape, const std::string& type) = 0;
  // `bytes` of each array.
  virtual std::unique_ptr<TimedWork> stream(Stream stream, int64_t bytes) = 0;
  // Between the device's memory and page-locked memory of its host; null where they are the same memory.
  virtual std::unique_ptr<TimedWork> host_copy(HostCopy /*direction*/, int64_t /*bytes*/) { return nullptr; }
};

// Bytes that a stream reads and writes in total; `bytes` is the size of each array.
inline double bytes_of(Stream stream, double bytes) {
  return stream == Stream::copy ? 2 * bytes : stream == Stream::triad ? 3 * bytes : bytes;
}

}  // namespace sextant
