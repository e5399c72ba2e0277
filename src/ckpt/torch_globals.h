// The names that a PyTorch state dict may ask to import, and what each means here.
#pragma once

#include <cstdint>
#include <string_view>

#include "ckpt/file_dtype.h"

namespace sextant {

struct TorchGlobal {
  enum class Kind : uint8_t {
    ordered_dict,
    tensor,           // _rebuild_tensor_v2: of a storage with a type
    typed_tensor,     // _rebuild_tensor_v3: of a storage of bytes; the type is an argument
    parameter,        // _rebuild_parameter: the tensor inside
    storage,          // of elements of `dtype`
    untyped_storage,  // of bytes
    dtype,
  };
  std::string_view module, name;
  Kind kind = Kind::storage;
  FileDType dtype = FileDType::u8;
};

// Null for everything else.
const TorchGlobal* find_torch_global(std::string_view module, std::string_view name);

}  // namespace sextant
