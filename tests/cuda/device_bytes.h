// Bytes in device memory that tests write and read.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "exec/cuda/runtime/check.h"

namespace sextant {

class DeviceBytes {
 public:
  explicit DeviceBytes(const std::vector<std::byte>& bytes) {
    check_cuda(cudaMalloc(&data_, bytes.size() + 1), "device memory");
    check_cuda(cudaMemcpy(data_, bytes.data(), bytes.size(), cudaMemcpyHostToDevice), "to the device");
    check_cuda(cudaDeviceSynchronize(), "to the device");  // streams of their own do not wait for it
  }
  ~DeviceBytes() { cudaFree(data_); }
  DeviceBytes(DeviceBytes&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

inline std::vector<std::byte> words_at(const void* device, size_t bytes) {
  std::vector<std::byte> words(bytes);
  check_cuda(cudaMemcpy(words.data(), device, bytes, cudaMemcpyDeviceToHost), "from the device");
  return words;
}

}  // namespace sextant
