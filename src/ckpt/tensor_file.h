// TensorFile: a file of named tensors, whatever its format, and what the readers of all formats say and limit alike.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ckpt/tensor_view.h"

namespace sextant {

constexpr size_t kMaxTensorRank = 64;

// Where a tensor is, for messages.
std::string tensor_place(std::string_view file, std::string_view tensor);

[[noreturn]] void refuse_unknown_tensor(std::string_view file, std::string_view tensor, size_t tensors_in_file);

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class TensorFile {
 public:
  virtual ~TensorFile() = default;

  virtual std::vector<std::string> names() const = 0;
  virtual bool contains(std::string_view name) const = 0;
  // UserError when there is none of this name. Valid as long as the file.
  virtual TensorView tensor(std::string_view name) const = 0;
};

}  // namespace sextant
