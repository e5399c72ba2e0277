#include "ckpt/model_weights.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/rng.h"
#include "ckpt/convert.h"
#include "ckpt/slices.h"
#include "ckpt/weight_halves.h"

namespace sextant {

namespace {

// How rows of one tensor of a file lie in one parameter.
struct Slot {
  const HfTensor& tensor;
  const Value& value;

  int64_t columns() const { return value.shape.rank() == 2 ? value.shape[1] : 1; }
  bool transposed() const { return tensor.order == HfTensor::Order::transposed; }
  GlobalShape file_shape() const {
    if (value.shape.rank() == 1) return {tensor.rows_in_file()};
    return transposed() ? GlobalShape{columns(), tensor.rows_in_file()} : GlobalShape{tensor.rows_in_file(), columns()};
  }
  int64_t row_in_file(int64_t row) const { return row - tensor.first_row + tensor.file_row; }
  // The part of a held piece that is in these rows; none where there is none.
  Piece part_of(Piece piece) const {
    int64_t begin = std::max(piece.row, tensor.first_row),
            end = std::min(piece.row + piece.rows, tensor.first_row + tensor.rows);
    piece.at += (begin - piece.row) * piece.stride;
    piece.row = begin;
    piece.rows = std::max<int64_t>(0, end - begin);
    return piece;
  }
  Transpose transpose() const { return transposed() ? Transpose::yes : Transpose::no; }
};

// Files of older days leave the architecture's prefix out ("wte.weight" for "transformer.wte.weight").
std::string name_in(const WeightsReader& source, const HfTensor& tensor, std::string_view prefix) {
  if (source.contains(tensor.name) || !tensor.name.starts_with(prefix)) return tensor.name;
  std::string bare = tensor.name.substr(prefix.size());
  return source.contains(bare) ? bare : tensor.name;
}

// The values that tensors of the file fill, each with the tensors in it.
std::vector<std::pair<const Value*, std::vector<HfTensor>>> tensors_by_value(const Program& program,
                                                                             const std::vector<HfTensor>& tensors) {
  std::vector<std::pair<const Value*, std::vector<HfTensor>>> found;
  for (const Value& value : program.values) {
    if (value.kind != ValueKind::parameter) continue;
    std::vector<HfTensor> of_value;
    for (const HfTensor& tensor : tensors)
      if (tensor.parameter == value.stored_path()) of_value.push_back(tensor);
    if (!of_value.empty()) found.emplace_back(&value, std::move(of_value));
  }
  return found;
}

TensorView view_of(const WeightsReader& source, const Slot& slot, std::string_view prefix) {
  TensorView view = source.tensor(name_in(source, slot.tensor, prefix));
  if (!(view.shape == slot.file_shape()))
    throw UserError({.place = view.place,
                     .got = fmt::format("shape {}", view.shape.text()),
                     .expected = fmt::format("{}, by the sizes in config.json", slot.file_shape().text()),
                     .hint = "the weights and config.json of this directory do not belong together"});
  return view;
}

void load_piece(const TensorView& view, const Slot& slot, const Piece& piece, std::span<float> local) {
  int64_t columns = slot.columns(), first = slot.row_in_file(piece.row);
  std::vector<float> rows(static_cast<size_t>(piece.rows * columns));
  load_rows(view, {first, first + piece.rows}, slot.transpose(), rows);
  if (float less = slot.tensor.file_less; less != 0)
    for (float& element : rows) element += less;
  for (int64_t r = 0; r < piece.rows; ++r)
    std::copy_n(rows.begin() + r * columns + piece.column, piece.columns, local.begin() + piece.at + r * piece.stride);
}

// A piece as it lies in the file: along the file's rows, which are the columns of memory where the file is transposed.
void save_piece(WeightsWriter& writer, const Slot& slot, FileDType dtype, const Piece& piece,
                std::span<const float> local) {
  bool turned = slot.transposed();
  int64_t lines = turned ? piece.columns : piece.rows, length = turned ? piece.rows : piece.columns;
  int64_t width = turned ? slot.tensor.rows_in_file() : slot.columns();
  int64_t first_line = turned ? piece.column : slot.row_in_file(piece.row);
  int64_t first_in_line = turned ? slot.row_in_file(piece.row) : piece.column;
  std::vector<float> line(static_cast<size_t>(length));
  std::vector<std::byte> bytes(static_cast<size_t>(length * bits_of(dtype) / 8));
  for (int64_t l = 0; l < lines; ++l) {
    for (int64_t i = 0; i < length; ++i)
      line[static_cast<size_t>(i)] =
          local[static_cast<size_t>(piece.at + (turned ? i * piece.stride + l : l * piece.stride + i))] -
          slot.tensor.file_less;
    store_rows({line, length}, {0, 1}, Transpose::no, dtype, bytes);
    writer.write_elements(slot.tensor.name, (first_line + l) * width + first_in_line, bytes);
  }
}

// Whether the piece is all of the file's tensor, element for element.
bool is_whole(const Piece& piece, const Slot& slot) {
  return slot.tensor.file_less == 0 && piece.rows == slot.tensor.rows_in_file() && piece.column == 0 &&
         piece.columns == slot.columns() && piece.stride == slot.columns();
}

bool same_values(const TensorView& a, const TensorView& b) {
  if (!(a.shape == b.shape)) return false;
  if (a.dtype == b.dtype && std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end())) return true;
  int64_t rows = row_count(a.shape), width = row_length(a.shape);
  std::vector<float> x(static_cast<size_t>(width)), y(x);
  for (int64_t row = 0; row < rows; ++row) {
    load_rows(a, {row, row + 1}, Transpose::no, x);
    load_rows(b, {row, row + 1}, Transpose::no, y);
    if (x != y) return false;
  }
  return true;
}

// What is in the files of every rank, though it may hold only some stages of the model.
std::vector<TensorSpec> tensors_in_file(const ModelSpec& spec, const DTypeOfTensor& dtype_of) {
  Graph model = build_model(spec, {.seq = 1}, single_rank_mesh());
  std::vector<TensorSpec> specs;
  for (const HfTensor& tensor : model_of(spec).tensors(spec)) {
    const Value* value = model.find(tensor.parameter);
    BUG_IF(!value, "{} has no parameter {}", spec.architecture, tensor.parameter);
    if (tensor.file_row > 0) continue;  // more of one that is there
    // Small steps of a parameter that follows a rule would be lost in a narrower type.
    bool narrow = dtype_of && value->is_trained();
    specs.push_back({tensor.name, narrow ? dtype_of(tensor.name) : FileDType::f32, Slot{tensor, *value}.file_shape()});
  }
  return specs;
}

void write_weights(const StateView& state, const ModelSpec& spec, WeightsWriter writer) {
  for (const auto& [value, held] : tensors_by_value(state.program(), model_of(spec).tensors(spec))) {
    // With two halves, what a rank holds in full precision is what it holds of both.
    const Value& in_full = *parts_of_weight(state.program(), *value).back();
    if (!is_writer(state, in_full)) continue;
    std::vector<float> local = read_weight(state, *value);
    for (const HfTensor& tensor : held) {
      Slot slot{tensor, in_full};
      FileDType dtype = writer.dtype_of(tensor.name);
      for (const Piece& whole : held_pieces(state, in_full)) {
        Piece piece = slot.part_of(whole);
        if (piece.rows == 0) continue;
        if (is_whole(piece, slot)) {
          std::span<const float> rows(local.data() + piece.at, static_cast<size_t>(piece.rows * piece.columns));
          writer.stream(tensor.name, [&](RowRange range, std::span<std::byte> block) {
            store_rows({rows, piece.columns}, range, slot.transpose(), dtype, block);
          });
        } else {
          save_piece(writer, slot, dtype, piece, local);
        }
      }
    }
  }
  writer.finish();
}

}  // namespace

void load_weights(Bound& bound, const ModelSpec& spec, const WeightsReader& source) {
  const ModelDef& def = model_of(spec);
  for (const auto& [value, tensors] : tensors_by_value(bound.program(), def.tensors(spec))) {
    for (const Value* part : parts_of_weight(bound.program(), *value)) {
      std::vector<float> local(static_cast<size_t>(part->local.count()), 0.0f);
      for (const HfTensor& tensor : tensors) {
        Slot slot{tensor, *part};
        TensorView view = view_of(source, slot, def.hf_prefix);
        for (const Piece& held : held_pieces(bound, *part))
          if (Piece piece = slot.part_of(held); piece.rows > 0) load_piece(view, slot, piece, local);
      }
      write_weight(bound, *part, local);
    }
  }
}

void refuse_other_head(const ModelSpec& spec, const WeightsReader& source) {
  if (!spec.tied_head) return;
  ModelSpec untied = spec;
  untied.tied_head = false;
  const ModelDef& def = model_of(spec);
  std::string table;
  std::vector<std::string> heads{"lm_head.weight"};  // for all types in files of newer versions
  for (const HfTensor& tensor : def.tensors(untied)) {
    if (tensor.parameter == "embed.weight") table = name_in(source, tensor, def.hf_prefix);
    if (tensor.parameter == "head.weight") heads.push_back(name_in(source, tensor, def.hf_prefix));
  }
  for (const std::string& head : heads)
    if (source.contains(head) && source.contains(table) && !same_values(source.tensor(head), source.tensor(table)))
      throw UserError(
          {.place = source.tensor(head).place,
           .got = fmt::format("its values differ from those of {}, but config.json says that the two are one "
                              "(tie_word_embeddings, or its default)",
                              table),
           .expected = "the same values, or no such tensor, or tie_word_embeddings = false",
           .hint = "model.tied_head=false uses the head in the file, model.tied_head=true ignores it; "
                   "generate goes by tie_word_embeddings in config.json"});
}

std::string unread_layers(const ModelSpec& spec, const WeightsReader& source) {
  // What stands before the number of a layer, in our names and in the file's.
  std::string own = fmt::format("layers.{}.", spec.layers - 1), prefix;
  for (const HfTensor& tensor : model_of(spec).tensors(spec))
    if (size_t at = tensor.name.find(fmt::format(".{}.", spec.layers - 1));
        tensor.parameter.starts_with(own) && at != std::string::npos)
      prefix = tensor.name.substr(0, at + 1);
  if (prefix.empty()) return "";
  int64_t unread = 0;
  for (const std::string& name : source.names()) {
    if (!name.starts_with(prefix)) continue;
    int64_t layer = -1;
    std::from_chars(name.data() + prefix.size(), name.data() + name.size(), layer);
    unread += layer >= spec.layers ? 1 : 0;
  }
  if (unread == 0) return "";
  return fmt::format(
      "{}{} and later hold {} tensors that are not read: the model has {} layers, and multi-token "
      "prediction is not implemented",
      prefix, spec.layers, unread, spec.layers);
}

void save_weights(const StateView& state, const ModelSpec& spec, const std::filesystem::path& directory,
                  const DTypeOfTensor& dtype_of, Share share) {
  write_weights(state, spec, WeightsWriter(directory, plan_weights(tensors_in_file(spec, dtype_of)), share));
}

void save_master_weights(const StateView& state, const ModelSpec& spec, const std::filesystem::path& file,
                         Share share) {
  WeightsPlan plan;
  plan.shards.push_back({file.filename().string(), plan_safetensors(tensors_in_file(spec, {}))});
  write_weights(state, spec, WeightsWriter(file.parent_path(), std::move(plan), share));
}

std::string first_overflow(const StateView& state, const ModelSpec& spec, FileDType dtype) {
  float limit = overflow_of(dtype);
  for (const auto& [value, held] : tensors_by_value(state.program(), model_of(spec).tensors(spec))) {
    const Value& in_full = *parts_of_weight(state.program(), *value).back();
    std::vector<float> local = read_weight(state, *value);
    for (const HfTensor& tensor : held)
      for (const Piece& whole : held_pieces(state, in_full)) {
        Piece piece = Slot{tensor, in_full}.part_of(whole);
        for (int64_t row = 0; row < piece.rows; ++row)
          for (int64_t column = 0; column < piece.columns; ++column) {
            float element = local[static_cast<size_t>(piece.at + row * piece.stride + column)] - tensor.file_less;
            if (std::isfinite(element) && std::abs(element) >= limit)
              return fmt::format("{} holds {}", tensor.name, element);
          }
      }
  }
  return "";
}

void initialize_weights(Bound& bound, uint64_t seed) {
  for (const Value& value : bound.program().values) {
    if (value.kind != ValueKind::parameter) continue;
    Random random(seed, "weights." + value.stored_path());
    int64_t width = value.shape.rank() == 2 ? value.shape[1] : 1;
    for (const Value* part : parts_of_weight(bound.program(), value))
      for (const Piece& p : held_pieces(bound, *part))
        bound.draw(*part, {value.init, random, p.row * width + p.column, width, p.rows, p.columns, p.at, p.stride});
  }
}

}  // namespace sextant
