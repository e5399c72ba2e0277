// CudaArena: the bytes of a rank with a GPU, in each memory space.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "exec/cuda/runtime/device.h"
#include "exec/executor.h"
#include "exec/nvme_file.h"

namespace sextant {

// Device memory, page-locked memory of the host, and a file; zero when fresh.
class CudaArena final : public Arena {
 public:
  // RunError when there is too little memory; the errors of NvmeFile.
  CudaArena(const CudaDevice& device, int64_t bytes, int64_t host_bytes, const FileSpace& file = {});
  ~CudaArena() override;
  CudaArena(const CudaArena&) = delete;
  CudaArena& operator=(const CudaArena&) = delete;

  int64_t bytes() const override { return bytes_; }
  int64_t host_bytes() const override { return host_bytes_; }
  int64_t nvme_bytes() const override { return file_ ? file_->bytes() : 0; }
  std::byte* data() const { return data_; }
  std::byte* host_data() const { return host_data_; }
  NvmeFile* file() const { return file_.get(); }  // null where nothing is kept in one

 private:
  void allocate_on_device();
  void allocate_host();

  const CudaDevice& device_;
  std::unique_ptr<NvmeFile> file_;
  std::byte *data_ = nullptr, *host_data_ = nullptr;
  int64_t bytes_, host_bytes_;
};

}  // namespace sextant
