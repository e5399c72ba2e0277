// Fuzz target: any bytes are either refused with a UserError or give tensors that lie inside the file, cover it, and
// can be planned and parsed again. The same bytes are also read as the index of a sharded model.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string_view>

#include "base/error.h"
#include "ckpt/safetensors_writer.h"
#include "ckpt/weights_reader.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check_file(std::span<const std::byte> file) {
  using namespace sextant;
  SafetensorsHeader header = parse_safetensors("fuzz", file);
  std::vector<TensorSpec> specs;
  std::set<std::string> names;
  int64_t at = 0;
  for (const TensorEntry& tensor : header.tensors) {
    require(tensor.begin == at && tensor.end >= at);
    require(bytes_of(tensor.dtype, tensor.shape) == tensor.end - tensor.begin);
    require(names.insert(tensor.name).second);
    at = tensor.end;
    specs.push_back({tensor.name, tensor.dtype, tensor.shape});
  }
  require(header.data_begin + at == static_cast<int64_t>(file.size()));

  SafetensorsLayout layout = plan_safetensors(specs, header.metadata);
  std::string again = layout.header + std::string(static_cast<size_t>(layout.data_bytes()), '\0');
  SafetensorsHeader second = parse_safetensors("again", std::as_bytes(std::span(again)));
  require(second.tensors.size() == specs.size() && second.metadata == header.metadata);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    check_file(std::as_bytes(std::span(data, size)));
  } catch (const sextant::UserError&) {
  }
  try {
    sextant::parse_weights_index("fuzz", {reinterpret_cast<const char*>(data), size});
  } catch (const sextant::UserError&) {
  }
  return 0;
}
