// CudaArena: the bytes of a rank with a GPU, in each memory space.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "exec/cuda/runtime/device.h"
#include "exec/cuda/runtime/device_state_check.h"
#include "exec/executor.h"
#include "exec/host_pages.h"
#include "exec/nvme_file.h"

namespace sextant {

// Device memory, page-locked memory of the host, and a file; zero when fresh.
class CudaArena final : public Arena {
 public:
  // Memory of the host is cleared by `host_threads` threads. RunError when there is too little memory; the errors of
  // NvmeFile.
  CudaArena(const CudaDevice& device, int64_t bytes, int64_t host_bytes, const FileSpace& file, int host_threads);
  ~CudaArena() override;
  CudaArena(const CudaArena&) = delete;
  CudaArena& operator=(const CudaArena&) = delete;

  int64_t bytes() const override { return bytes_; }
  int64_t host_bytes() const override { return host_pages_.bytes(); }
  int64_t nvme_bytes() const override { return file_ ? file_->bytes() : 0; }
  std::byte* data() const { return data_; }
  std::byte* host_data() const { return host_pages_.data(); }
  NvmeFile* file() const { return file_.get(); }  // null where nothing is kept in one
  DeviceChecksums& checksums() { return checksums_; }

 private:
  void allocate_on_device();
  void lock_host_pages(int host_threads);

  const CudaDevice& device_;
  std::unique_ptr<NvmeFile> file_;
  std::byte* data_ = nullptr;
  int64_t bytes_;
  HostPages host_pages_;
  DeviceChecksums checksums_;
};

}  // namespace sextant
