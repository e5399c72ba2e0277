#include "ckpt/tensor_file.h"

#include "base/error.h"
#include "ckpt/json_walk.h"

namespace sextant {

std::string tensor_place(std::string_view file, std::string_view tensor) {
  return fmt::format("{}: tensor {}", file, shown(tensor));
}

void refuse_unknown_tensor(std::string_view file, std::string_view tensor, size_t tensors_in_file) {
  throw UserError({.place = std::string(file),
                   .got = fmt::format("there is no tensor {}", shown(tensor)),
                   .expected = fmt::format("it among the {} tensors of the file", tensors_in_file)});
}

}  // namespace sextant
