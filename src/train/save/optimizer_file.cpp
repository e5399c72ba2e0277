#include "train/save/optimizer_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <span>
#include <string>

#include "base/bf16.h"
#include "base/dynamic_map.h"
#include "base/error.h"
#include "base/units.h"
#include "ckpt/safetensors.h"
#include "ckpt/slices.h"
#include "models/model.h"
#include "optim/loss_scaling.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

using StateExtent = OptimizerState::Extent;
using StateRange = OptimizerState::Range;

// The weights of the whole model by the names that checkpoints have for them.
std::map<std::string, OptimizedWeight> stored_weights(const ModelSpec& spec) {
  std::map<std::string, OptimizedWeight> weights;
  Graph graph = build_model(spec, {.seq = 1}, single_rank_mesh());
  for (auto& [id, weight] : optimized_weights(graph)) weights.emplace(graph[id].path, std::move(weight));
  return weights;
}

std::string absmax_path(const OptimizerState& state, std::string_view weight) {
  return fmt::format("{}{}.{}", state.name, kAbsmaxSuffix, weight);
}

int64_t width_of(const GlobalShape& shape) {
  return shape.rank() == 2 ? shape[1] : 1;
}

template <class T>
T element_at(const TensorView& view, int64_t i) {
  T x;
  std::memcpy(&x, view.bytes.data() + i * static_cast<int64_t>(sizeof(T)), sizeof x);
  return x;
}

template <class T>
void put(std::span<std::byte> into, int64_t i, T x) {
  std::memcpy(into.data() + i * static_cast<int64_t>(sizeof(T)), &x, sizeof x);
}

[[noreturn]] void refuse_negative(std::string_view place, float element) {
  throw RunError(place, fmt::format("holds {}; a second moment is never negative", element),
                 "resume from another checkpoint", ExitCode::non_finite);
}

// A state of one weight as a file has it.
class StateInFile {
 public:
  StateInFile(const SafetensorsFile& file, const OptimizerState& state, std::string_view weight,
              const GlobalShape& shape)
      : range_(state.range), elements_(file.tensor(state.path_of(weight))), columns_(width_of(shape)) {
    bool codes = elements_.dtype == FileDType::u8 && state.extent == StateExtent::elements && shape.rank() == 2;
    bool known = elements_.dtype == FileDType::f32 ||
                 (elements_.dtype == FileDType::bf16 && state.extent == StateExtent::elements);
    if (!(elements_.shape == shape) || (!known && !codes))
      refuse(elements_, fmt::format("{} {}, or codes of 8 bits",
                                    state.extent == StateExtent::elements ? "F32 or BF16" : "F32", shape.text()));
    if (!codes) return;
    GlobalShape blocks{shape[0], ceil_div(shape[1], kStateBlock)};
    absmax_ = file.tensor(absmax_path(state, weight));
    if (!(absmax_.shape == blocks) || absmax_.dtype != FileDType::f32)
      refuse(absmax_, fmt::format("F32 {}", blocks.text()));
  }

  const TensorView& elements() const { return elements_; }
  const TensorView& absmax() const { return absmax_; }

  float at(int64_t row, int64_t column) const {
    float x = decoded(row, column);
    if (range_ == StateRange::not_negative && x < 0) refuse_negative(elements_.place, x);
    return x;
  }

  // The largest magnitude of the block of a row that column `first` begins; a NaN stays.
  float largest(int64_t row, int64_t first) const {
    float largest = 0;
    for (int64_t column = first; column < std::min(columns_, first + kStateBlock); ++column) {
      float x = std::abs(at(row, column));
      if (!(x <= largest) && !std::isnan(largest)) largest = x;
    }
    return largest;
  }

  uint8_t code(int64_t row, int64_t column, float absmax) const {
    float x = at(row, column) / (absmax > 0 ? absmax : 1);
    return range_ == StateRange::not_negative ? nearest_code_above_zero(kPositiveMap.value, x)
                                              : nearest_code(kSignedMap.value, x);
  }

 private:
  [[noreturn]] static void refuse(const TensorView& view, std::string expected) {
    throw UserError({.place = view.place,
                     .got = fmt::format("{} {}", name_of(view.dtype), view.shape.text()),
                     .expected = std::move(expected)});
  }

  float decoded(int64_t row, int64_t column) const {
    int64_t i = row * columns_ + column;
    if (elements_.dtype == FileDType::f32) return element_at<float>(elements_, i);
    if (elements_.dtype == FileDType::bf16) return bf16_value(element_at<uint16_t>(elements_, i));
    const DynamicMap& map = range_ == StateRange::not_negative ? kPositiveMap : kSignedMap;
    float absmax = element_at<float>(absmax_, row * ceil_div(columns_, kStateBlock) + column / kStateBlock);
    return map.value[element_at<uint8_t>(elements_, i)] * absmax;
  }

  StateRange range_;
  TensorView elements_, absmax_;
  int64_t columns_;
};

// visit(row, column, local): every element that a rank holds of a value, row and column in the tensor of the file.
template <class Visit>
void for_each_element(const StateView& values, const Value& value, const Visit& visit) {
  for (const Piece& piece : held_pieces(values, value))
    for (int64_t r = 0; r < piece.rows; ++r)
      for (int64_t c = 0; c < piece.columns; ++c)
        visit(piece.row + r, piece.column + c, piece.at + r * piece.stride + c);
}

void copy_alike(const StateView& values, const Value& value, const TensorView& from, std::span<std::byte> local) {
  int64_t width = width_of(value.shape), element = size_of(value.dtype);
  for (const Piece& piece : held_pieces(values, value))
    for (int64_t line = 0; line < piece.rows; ++line)
      std::memcpy(local.data() + (piece.at + line * piece.stride) * element,
                  from.bytes.data() + ((piece.row + line) * width + piece.column) * element,
                  static_cast<size_t>(piece.columns * element));
}

void convert_elements(const StateView& values, const Value& value, const StateInFile& from,
                      std::span<std::byte> local) {
  float absmax = 0;
  int64_t row_of_absmax = -1, block_of_absmax = -1;
  for_each_element(values, value, [&](int64_t row, int64_t column, int64_t at) {
    if (value.dtype == DType::f32) return put(local, at, from.at(row, column));
    if (value.dtype == DType::bf16) return put(local, at, bf16_bits(from.at(row, column)));
    int64_t block = column / kStateBlock;
    if (row != row_of_absmax || block != block_of_absmax) {
      absmax = from.largest(row, block * kStateBlock);
      row_of_absmax = row, block_of_absmax = block;
    }
    put(local, at, from.code(row, column, absmax));
  });
}

// A negative one would make the weight NaN.
void require_no_negative(std::span<const std::byte> local, DType dtype, std::string_view place) {
  TensorView view{.place = std::string(place), .dtype = FileDType::f32, .shape = {}, .bytes = local};
  int64_t count = static_cast<int64_t>(local.size()) / size_of(dtype);
  for (int64_t i = 0; i < count; ++i) {
    float x = dtype == DType::bf16  ? bf16_value(element_at<uint16_t>(view, i))
              : dtype == DType::f32 ? element_at<float>(view, i)
                                    : 0.0f;
    if (x < 0) refuse_negative(place, x);
  }
}

// States as this run's optimizer names them, by the value's path in files; those of scales point to what they scale.
struct WantedState {
  OptimizerState state;  // of extent `blocks`: that of the codes
  std::string weight;
  GlobalShape shape;
  bool is_absmax = false;
};

std::map<std::string, WantedState> wanted_states(const ModelSpec& spec, const Optimizer& optimizer) {
  std::map<std::string, WantedState> wanted;
  for (const auto& [path, weight] : stored_weights(spec))
    for (const OptimizerState& state : optimizer.states(weight)) {
      if (state.extent == StateExtent::blocks) continue;
      WantedState own{state, path, state.shape_for(weight)};
      wanted.emplace(state.path_of(path), own);
      own.is_absmax = true;
      if (state.extent == StateExtent::elements) wanted.emplace(absmax_path(state, path), own);
    }
  return wanted;
}

// The names of states and weights that only one of both has, as a complaint: another optimizer wrote the file, or with
// other settings.
void refuse_other_states(const SafetensorsFile& source, const std::map<std::string, WantedState>& wanted,
                         const Optimizer& optimizer, const fs::path& file) {
  size_t matching = 0;
  std::string other;
  for (const TensorEntry& entry : source.tensors()) {
    if (entry.name == kLossScalePath || entry.name == kGoodStepsPath) continue;
    auto at = wanted.find(entry.name);
    if (at == wanted.end() && other.empty()) other = entry.name;
    if (at != wanted.end() && !at->second.is_absmax) ++matching;
  }
  size_t states = static_cast<size_t>(std::ranges::count_if(wanted, [](const auto& w) { return !w.second.is_absmax; }));
  if (matching == states && other.empty()) return;
  throw UserError(
      {.place = file.string(),
       .got = fmt::format("{} of the {} states that {} keeps for this model{}", matching, states, optimizer.def->name,
                          other.empty() ? "" : fmt::format(", and {} of another optimizer", other)),
       .expected = fmt::format("the states of {}", optimizer.def->name),
       .hint = "resume with the optimizer (and momentum) of the run, or start a new run from the checkpoint's "
               "weights: model.from=DIRECTORY and another --out"});
}

// A run that was saved without it begins it now.
void load_scalar(Bound& bound, const SafetensorsFile& source, const Value& value) {
  if (!std::ranges::any_of(source.tensors(), [&](const TensorEntry& entry) { return entry.name == value.path; }))
    return;
  TensorView view = source.tensor(value.path);
  if (!(view.shape == value.shape) || view.dtype != file_dtype_of(value.dtype))
    throw UserError({.place = view.place,
                     .got = fmt::format("{} {}", name_of(view.dtype), view.shape.text()),
                     .expected = fmt::format("{} {}", name_of(file_dtype_of(value.dtype)), value.shape.text())});
  bound.write(value, view.bytes);
}

}  // namespace

std::vector<TensorSpec> optimizer_tensors(const StateView& values, const ModelSpec& spec, const Optimizer& optimizer,
                                          HostGroup& group) {
  std::map<std::string, OptimizedWeight> weights = stored_weights(spec);
  std::map<std::string_view, DType> held;
  for (const Value& value : values.program().values)
    if (value.kind == ValueKind::state) held.emplace(value.stored_path(), value.dtype);
  std::vector<int64_t> cut;  // by weight: how many ranks hold in f32 what one rank alone would hold as codes
  for (const auto& [path, weight] : weights) {
    int64_t& here = cut.emplace_back(0);
    for (const OptimizerState& state : optimizer.states(weight)) {
      auto at = held.find(state.path_of(path));
      if (state.dtype == DType::u8 && at != held.end() && at->second != DType::u8) here = 1;
    }
  }
  group.sum(std::span<int64_t>(cut));
  std::vector<TensorSpec> tensors;
  // States of no weight are scalars that every rank has.
  for (const Value& value : values.program().values)
    if (value.kind == ValueKind::state && value.of == kNoValue)
      tensors.push_back({value.path, file_dtype_of(value.dtype), value.shape});
  size_t next = 0;
  for (auto& [path, weight] : weights) {
    weight.whole_blocks = cut[next++] == 0;
    for (const OptimizerState& state : optimizer.states(weight))
      tensors.push_back({state.path_of(path), file_dtype_of(state.dtype), state.shape_for(weight)});
  }
  return tensors;
}

void save_optimizer(const StateView& values, const std::vector<TensorSpec>& tensors, const fs::path& file,
                    Share share) {
  SafetensorsWriter writer(file, plan_safetensors(tensors), share);
  std::vector<std::byte> local;
  for (const Value& value : values.program().values) {
    if (value.kind != ValueKind::state || !is_writer(values, value)) continue;
    local.resize(static_cast<size_t>(value.local_bytes().n));
    values.read(value, local);
    int64_t width = width_of(value.shape), element = size_of(value.dtype);
    for (const Piece& piece : held_pieces(values, value)) {
      // Whole rows that lie one behind the other are one write.
      bool dense = piece.columns == width && piece.stride == width;
      int64_t lines = dense ? 1 : piece.rows, length = dense ? piece.rows * width : piece.columns;
      for (int64_t line = 0; line < lines; ++line)
        writer.write_elements(value.stored_path(), (piece.row + line) * width + piece.column,
                              std::span(local).subspan(static_cast<size_t>((piece.at + line * piece.stride) * element),
                                                       static_cast<size_t>(length * element)));
    }
  }
  writer.finish();
}

void load_optimizer(Bound& bound, const ModelSpec& spec, const Optimizer& optimizer, const fs::path& file) {
  SafetensorsFile source(file);
  std::map<std::string, WantedState> wanted = wanted_states(spec, optimizer);
  refuse_other_states(source, wanted, optimizer, file);
  std::vector<std::byte> local;
  for (const Value& value : bound.program().values) {
    if (value.kind != ValueKind::state) continue;
    if (value.of == kNoValue) {
      load_scalar(bound, source, value);
      continue;
    }
    const WantedState& state = wanted.at(value.stored_path());
    StateInFile from(source, state.state, state.weight, state.shape);
    bool has_codes = from.elements().dtype == FileDType::u8;
    local.assign(static_cast<size_t>(value.local_bytes().n), std::byte{0});
    if (state.is_absmax && has_codes)
      copy_alike(bound, value, from.absmax(), local);
    else if (state.is_absmax)
      for_each_element(bound, value, [&](int64_t row, int64_t block, int64_t at) {
        put(local, at, from.largest(row, block * kStateBlock));
      });
    else if (from.elements().dtype == file_dtype_of(value.dtype))
      copy_alike(bound, value, from.elements(), local);
    else
      convert_elements(bound, value, from, local);
    if (state.is_absmax || state.state.range == StateRange::not_negative)
      require_no_negative(local, value.dtype, (state.is_absmax && has_codes ? from.absmax() : from.elements()).place);
    bound.write(value, local);
  }
}

}  // namespace sextant
