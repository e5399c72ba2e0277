#include "ckpt/model_weights.h"

#include "base/error.h"
#include "base/rng.h"
#include "ckpt/convert.h"

namespace sextant {

namespace {

// How one tensor of a file lies in one parameter.
struct Slot {
  const HfTensor& tensor;
  const Value& value;

  int64_t columns() const { return value.shape.rank() == 2 ? value.shape[1] : 1; }
  bool transposed() const { return tensor.order == HfTensor::Order::transposed; }
  GlobalShape file_shape() const {
    if (value.shape.rank() == 1) return {tensor.rows};
    return transposed() ? GlobalShape{columns(), tensor.rows} : GlobalShape{tensor.rows, columns()};
  }
  int64_t offset_bytes() const { return tensor.first_row * columns() * size_of(value.dtype); }
  size_t elements() const { return static_cast<size_t>(tensor.rows * columns()); }
  Transpose transpose() const { return transposed() ? Transpose::yes : Transpose::no; }
};

void require_f32(const Value& value) {
  BUG_IF(value.dtype != DType::f32, "{}: weights are moved as f32, this one is {}", value.path, name_of(value.dtype));
}

// Files of older days leave the architecture's prefix out ("wte.weight" for "transformer.wte.weight").
std::string name_in(const WeightsReader& source, const HfTensor& tensor, std::string_view prefix) {
  if (source.contains(tensor.name) || !tensor.name.starts_with(prefix)) return tensor.name;
  std::string bare = tensor.name.substr(prefix.size());
  return source.contains(bare) ? bare : tensor.name;
}

}  // namespace

void load_weights(Bound& bound, const ModelSpec& spec, const WeightsReader& source) {
  const Architecture& architecture = architecture_of(spec);
  std::vector<float> rows;
  for (const HfTensor& tensor : architecture.tensors(spec)) {
    Slot slot{tensor, bound.program().at(tensor.parameter)};
    require_f32(slot.value);
    TensorView view = source.tensor(name_in(source, tensor, architecture.hf_prefix));
    if (!(view.shape == slot.file_shape()))
      throw UserError({.place = view.place, .got = fmt::format("shape {}", view.shape.text()),
                       .expected = fmt::format("{}, by the sizes in config.json", slot.file_shape().text()),
                       .hint = "the weights and config.json of this directory do not belong together"});
    rows.resize(slot.elements());
    load_rows(view, {0, tensor.rows}, slot.transpose(), rows);
    bound.write(slot.value, std::as_bytes(std::span(rows)), slot.offset_bytes());
  }
}

void save_weights(const Bound& bound, const ModelSpec& spec, const std::filesystem::path& directory,
                  const DTypeOfTensor& dtype_of) {
  std::vector<HfTensor> tensors = architecture_of(spec).tensors(spec);
  std::vector<TensorSpec> specs;
  for (const HfTensor& tensor : tensors) {
    Slot slot{tensor, bound.program().at(tensor.parameter)};
    specs.push_back({tensor.name, dtype_of ? dtype_of(tensor.name) : FileDType::f32, slot.file_shape()});
  }
  WeightsWriter writer(directory, plan_weights(specs));
  std::vector<float> rows;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Slot slot{tensors[i], bound.program().at(tensors[i].parameter)};
    require_f32(slot.value);
    rows.resize(slot.elements());
    bound.read(slot.value, std::as_writable_bytes(std::span(rows)), slot.offset_bytes());
    writer.stream(tensors[i].name, [&](RowRange range, std::span<std::byte> block) {
      store_rows({rows, slot.columns()}, range, slot.transpose(), specs[i].dtype, block);
    });
  }
  writer.finish();
}

void initialize_weights(Bound& bound, uint64_t seed) {
  std::vector<float> block;
  for (const Value& value : bound.program().values) {
    if (value.kind != ValueKind::parameter) continue;
    require_f32(value);
    Random random(seed, "weights." + value.path);
    block.resize(static_cast<size_t>(value.local.count()));
    for (size_t i = 0; i < block.size(); ++i) {
      if (value.init.kind == Init::Kind::zeros) block[i] = 0;
      if (value.init.kind == Init::Kind::ones) block[i] = 1;
      if (value.init.kind == Init::Kind::normal) block[i] = static_cast<float>(random.normal(i) * value.init.std);
    }
    bound.write(value, std::as_bytes(std::span(block)));
  }
}

}  // namespace sextant
