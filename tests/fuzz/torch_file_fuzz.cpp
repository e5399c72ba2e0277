// Fuzz target: any bytes are either refused with a UserError or give tensors that lie inside the file and can be copied
// out of it. The same bytes are also read as the pickle inside, which a mutated archive rarely reaches.
#include <cstdint>
#include <cstdlib>
#include <set>

#include "base/error.h"
#include "ckpt/torch_file.h"
#include "ckpt/torch_pickle.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check_file(std::span<const std::byte> file) {
  using namespace sextant;
  std::set<std::string> names;
  for (const TorchTensor& tensor : parse_torch_file("fuzz", file)) {
    require(names.insert(tensor.name).second);
    auto bytes = static_cast<size_t>(bytes_of(tensor.dtype, tensor.shape).value());
    require(bytes <= tensor.storage.size() && tensor.storage.size() <= file.size());
    require(tensor.storage.empty() || (tensor.storage.data() >= file.data() &&
                                       tensor.storage.data() + tensor.storage.size() <= file.data() + file.size()));
    require(!tensor.is_contiguous() || bytes == tensor.storage.size());
    require(gathered(tensor).size() == bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto bytes = std::as_bytes(std::span(data, size));
  try {
    check_file(bytes);
  } catch (const sextant::UserError&) {
  }
  try {
    sextant::parse_torch_pickle("fuzz", bytes);
  } catch (const sextant::UserError&) {
  }
  return 0;
}
