// Reading what torch.save makes of a state dict (pytorch_model.bin): a zip archive of one pickle, data.pkl, that
// describes tensors, and one entry of raw bytes per storage. What enters may be hostile; what leaves is checked: every
// tensor is a view inside its storage, which is as large as the pickle says. All else is a UserError that names the
// file and the tensor. Nothing of the pickle is run (torch_pickle.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "ckpt/tensor_file.h"

namespace sextant {

struct TorchTensor {
  std::string name;
  FileDType dtype = FileDType::f32;
  GlobalShape shape;
  std::vector<int64_t> strides;        // elements
  std::span<const std::byte> storage;  // from the tensor's first element on

  bool is_contiguous() const;
};

// `file` is the whole file, which the result points into; `place` names it in messages.
std::vector<TorchTensor> parse_torch_file(std::string_view place, std::span<const std::byte> file);

// The elements of a tensor in row-major order.
std::vector<std::byte> gathered(const TorchTensor& tensor);

// A file, mapped: tensors are read from disk when they are touched. Only those that do not lie in row-major order
// (transposed views) are copied, when they are first asked for.
class TorchFile : public TensorFile {
 public:
  explicit TorchFile(const std::filesystem::path& path);

  std::vector<std::string> names() const override;
  bool contains(std::string_view name) const override { return index_.find(name) != index_.end(); }
  TensorView tensor(std::string_view name) const override;

 private:
  struct Copies {
    std::mutex mutex;
    std::map<size_t, std::vector<std::byte>> of;  // position in tensors_
  };

  std::string place_;
  MappedFile file_;
  std::vector<TorchTensor> tensors_;
  std::map<std::string, size_t, std::less<>> index_;  // name to position in tensors_
  std::unique_ptr<Copies> copies_ = std::make_unique<Copies>();
};

}  // namespace sextant
