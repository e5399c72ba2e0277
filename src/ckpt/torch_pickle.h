// Reading the pickle of a PyTorch state dict. Pickle is a language for a stack machine that can import and call
// anything; this is a reader of the few opcodes and names that a dictionary of tensors needs. It makes nothing but the
// list below: every other opcode, and every other name that the pickle asks to import, is refused by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ckpt/file_dtype.h"

namespace sextant {

constexpr int64_t kMaxTorchPickle = 8 << 20;  // bytes; thirty thousand tensors need less

// A tensor as the pickle describes it: a view of a storage, which is an entry of the archive. Nothing here has been
// held against the archive.
struct PickledTensor {
  std::string name;
  FileDType dtype = FileDType::f32;
  std::string_view storage;   // its key: the entry data/KEY; a part of the pickle
  int64_t storage_bytes = 0;  // as claimed
  int64_t offset = 0;         // elements into the storage
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // elements, one per dim of the shape
};

// `pickle` is the whole of data.pkl, `place` names it in messages. Tensors are in the order of the dictionary.
std::vector<PickledTensor> parse_torch_pickle(std::string_view place, std::span<const std::byte> pickle);

// Hint for a file that only a Python program can read.
std::string_view how_to_convert();

}  // namespace sextant
