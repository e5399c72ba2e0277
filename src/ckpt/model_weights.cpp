#include "ckpt/model_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/rng.h"
#include "ckpt/convert.h"
#include "ckpt/quantized.h"
#include "ckpt/slices.h"
#include "ckpt/weight_halves.h"
#include "models/upcycle.h"

namespace sextant {

namespace {

constexpr int64_t kSliceBlock = int64_t{4} << 20;  // bytes

// How rows of one tensor of a file lie in one parameter.
struct Slot {
  const HfTensor& tensor;
  const Value& value;

  int64_t columns() const { return value.shape.rank() == 2 ? value.shape[1] : 1; }
  bool is_vector() const { return value.shape.rank() == 1; }
  bool transposed() const { return tensor.order == HfTensor::Order::transposed && !is_vector(); }
  GlobalShape file_shape() const {
    GlobalShape matrix = shape_of_slice();
    if (tensor.slices == 0) return matrix;
    return is_vector() ? GlobalShape{tensor.slices, matrix[0]} : GlobalShape{tensor.slices, matrix[0], matrix[1]};
  }
  // All of the file's tensor where it is no stack.
  GlobalShape shape_of_slice() const {
    if (is_vector()) return {tensor.rows_in_file()};
    return transposed() ? GlobalShape{columns(), tensor.rows_in_file()} : GlobalShape{tensor.rows_in_file(), columns()};
  }
  int64_t first_of_slice() const { return tensor.slice * shape_of_slice().count(); }  // in elements of the file
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

// Files of older days leave the architecture's prefix out ("wte.weight" for "transformer.wte.weight"); those that hold
// other models too have one more in front.
std::string name_in(const WeightsReader& source, const HfTensor& tensor, const ModelDef& def) {
  if (source.contains(tensor.name)) return tensor.name;
  if (def.hf_wrapper)
    if (std::string inner = fmt::format("{}{}", def.hf_wrapper->prefix, tensor.name); source.contains(inner))
      return inner;
  if (!tensor.name.starts_with(def.hf_prefix)) return tensor.name;
  std::string bare = tensor.name.substr(def.hf_prefix.size());
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

TensorView view_of(const WeightsReader& source, const std::string& name, const Slot& slot) {
  TensorView view = source.tensor(name);
  if (!(view.shape == slot.file_shape()))
    throw UserError({.place = view.place,
                     .got = fmt::format("shape {}", view.shape.text()),
                     .expected = fmt::format("{}, by the sizes in config.json", slot.file_shape().text()),
                     .hint = "the weights and config.json of this directory do not belong together"});
  return view;
}

// Rows of the parameter out of the file, whatever it holds them as. Quantised matrices are never transposed in files.
void load_from(const WeightsReader& source, const ModelDef& def, const Slot& slot, RowRange rows,
               std::span<float> destination) {
  std::string name = name_in(source, slot.tensor, def);
  if (!slot.is_vector()) {
    MatrixShape shape{slot.tensor.slices, slot.tensor.rows_in_file(), slot.columns()};
    if (auto mxfp4 = Mxfp4Weights::find(source, name, shape)) return mxfp4->load(slot.tensor.slice, rows, destination);
    if (auto fp8 = Fp8Weights::find(source, name, shape)) return fp8->load(slot.tensor.slice, rows, destination);
  }
  TensorView view = view_of(source, name, slot);
  view.shape = slot.shape_of_slice();
  int64_t bytes = view.shape.count() * bits_of(view.dtype) / 8;
  view.bytes = view.bytes.subspan(static_cast<size_t>(slot.tensor.slice * bytes), static_cast<size_t>(bytes));
  load_rows(view, rows, slot.transpose(), destination);
}

// A model with one such number computes no other: its text would be made of nothing, its training end after some steps.
void refuse_non_finite(const WeightsReader& source, const ModelDef& def, const Slot& slot, RowRange rows,
                       std::span<const float> elements) {
  // Without a branch for each element, so that the compiler makes SIMD of it.
  uint32_t finite = 1;
  for (float element : elements)
    finite &= static_cast<uint32_t>(std::abs(element) <= std::numeric_limits<float>::max());
  if (finite != 0) return;
  auto at = std::ranges::find_if(elements, [](float element) { return !std::isfinite(element); }) - elements.begin();
  int64_t row = rows.begin + at / slot.columns(), column = at % slot.columns();
  std::vector<int64_t> index;
  if (slot.tensor.slices > 0) index.push_back(slot.tensor.slice);
  index.push_back(slot.transposed() ? column : row);
  if (!slot.is_vector()) index.push_back(slot.transposed() ? row : column);
  std::string name = name_in(source, slot.tensor, def);
  throw UserError({.place = source.contains(name) ? source.tensor(name).place : name,
                   .got = fmt::format("element [{}] is {}", fmt::join(index, ", "), elements[static_cast<size_t>(at)]),
                   .expected = "finite weights",
                   .hint = "the model that was saved is damaged: use an earlier checkpoint of it"});
}

void load_piece(const WeightsReader& source, const ModelDef& def, const Slot& slot, const Piece& piece,
                std::span<float> local) {
  int64_t columns = slot.columns(), first = slot.row_in_file(piece.row);
  std::vector<float> rows(static_cast<size_t>(piece.rows * columns));
  load_from(source, def, slot, {first, first + piece.rows}, rows);
  refuse_non_finite(source, def, slot, {first, first + piece.rows}, rows);
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
    writer.write_elements(slot.tensor.name, slot.first_of_slice() + (first_line + l) * width + first_in_line, bytes);
  }
}

// All of a slice of the file's tensor, some MB at a time.
void save_slice(WeightsWriter& writer, const Slot& slot, FileDType dtype, const FloatMatrix& matrix) {
  GlobalShape shape = slot.shape_of_slice();
  int64_t width = row_length(shape), bytes_of_row = width * bits_of(dtype) / 8;
  int64_t step = std::max<int64_t>(1, kSliceBlock / std::max<int64_t>(1, bytes_of_row));
  for (int64_t begin = 0; begin < shape[0]; begin += step) {
    RowRange rows{begin, std::min(begin + step, shape[0])};
    std::vector<std::byte> block(static_cast<size_t>(rows.count() * bytes_of_row));
    store_rows(matrix, rows, slot.transpose(), dtype, block);
    writer.write_elements(slot.tensor.name, slot.first_of_slice() + begin * width, block);
  }
}

// Whether the piece is all of the file's tensor, or of its slice, element for element.
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

// Tensors in the files of every rank: all of the model, though a rank may hold only some stages.
std::vector<TensorSpec> tensors_in_file(const ModelSpec& spec, const std::vector<HfTensor>& tensors,
                                        const WeightsForm& form) {
  Graph model = build_model(spec, {.seq = 1}, single_rank_mesh());
  std::vector<TensorSpec> specs;
  for (const HfTensor& tensor : tensors) {
    const Value* value = model.find(tensor.parameter);
    BUG_IF(!value, "{} has no parameter {}", spec.architecture, tensor.parameter);
    if (tensor.file_row > 0 || tensor.slice > 0) continue;  // more of one that is there
    // Small steps of a parameter that follows a rule would be lost in a narrower type.
    bool narrow = form.dtype_of && value->is_trained();
    specs.push_back(
        {tensor.name, narrow ? form.dtype_of(tensor.name) : FileDType::f32, Slot{tensor, *value}.file_shape()});
  }
  return specs;
}

void write_weights(const StateView& state, const std::vector<HfTensor>& tensors, WeightsWriter writer) {
  for (const auto& [value, held] : tensors_by_value(state.program(), tensors)) {
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
          if (tensor.slices > 0) {
            save_slice(writer, slot, dtype, {rows, piece.columns});
            continue;
          }
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

// Whether the stacks of experts that are there have the shapes of that form. It is decided by more than one tensor:
// each alone may have the same dims in both.
bool stacks_fit(const WeightsReader& source, const ModelSpec& spec, const Graph& model, ExpertFiles files) {
  const ModelDef& def = model_of(spec);
  bool found = false;
  for (const HfTensor& tensor : tensors_in(spec, files)) {
    if (tensor.slices == 0 || tensor.slice > 0 || tensor.file_row > 0) continue;
    std::string name = name_in(source, tensor, def);
    if (!source.contains(name)) continue;
    found = true;
    if (!(source.tensor(name).shape == Slot{tensor, *model.find(tensor.parameter)}.file_shape())) return false;
  }
  return found;
}

}  // namespace

ExpertFiles expert_files_in(const WeightsReader& source, const ModelSpec& spec) {
  if (!spec.experts) return ExpertFiles::as_listed;
  const ModelDef& def = model_of(spec);
  for (const HfTensor& tensor : def.tensors(spec))
    if (tensor.stacked && tensor.stacked->slices > 0 && source.contains(name_in(source, tensor, def)))
      return ExpertFiles::as_listed;
  Graph model = build_model(spec, {.seq = 1}, single_rank_mesh());
  for (ExpertFiles files : {ExpertFiles::as_listed, ExpertFiles::stacked, ExpertFiles::stacked_transposed})
    if (stacks_fit(source, spec, model, files)) return files;
  // None: what is missing, or has another shape, is reported in the form that the directory is nearest to.
  for (const HfTensor& tensor : tensors_in(spec, ExpertFiles::stacked))
    if (tensor.slices > 0 && source.contains(name_in(source, tensor, def))) return ExpertFiles::stacked;
  return ExpertFiles::as_listed;
}

namespace {

// Weights that no tensor is for stay as they are.
void load_tensors(Bound& bound, const std::vector<HfTensor>& listed, const ModelDef& def, const WeightsReader& source) {
  for (const auto& [value, tensors] : tensors_by_value(bound.program(), listed)) {
    for (const Value* part : parts_of_weight(bound.program(), *value)) {
      std::vector<float> local(static_cast<size_t>(part->local.count()), 0.0f);
      for (const HfTensor& tensor : tensors) {
        if (tensor.copy) continue;
        Slot slot{tensor, *part};
        for (const Piece& held : held_pieces(bound, *part))
          if (Piece piece = slot.part_of(held); piece.rows > 0) load_piece(source, def, slot, piece, local);
      }
      write_weight(bound, *part, local);
    }
  }
}

}  // namespace

void load_weights(Bound& bound, const ModelSpec& spec, const WeightsReader& source) {
  load_tensors(bound, tensors_in(spec, expert_files_in(source, spec)), model_of(spec), source);
}

void load_upcycled_weights(Bound& bound, const ModelSpec& spec, const ModelSpec& dense, const WeightsReader& source) {
  load_tensors(bound, upcycled_tensors(spec, dense), model_of(dense), source);
}

void refuse_other_head(const ModelSpec& spec, const WeightsReader& source) {
  if (!spec.tied_head) return;
  ModelSpec untied = spec;
  untied.tied_head = false;
  const ModelDef& def = model_of(spec);
  std::string table;
  std::vector<std::string> heads{"lm_head.weight"};  // for all types in files of newer versions
  for (const HfTensor& tensor : def.tensors(untied)) {
    if (tensor.parameter == "embed.weight") table = name_in(source, tensor, def);
    if (tensor.parameter == "head.weight") heads.push_back(name_in(source, tensor, def));
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

void refuse_other_copies(const ModelSpec& spec, const WeightsReader& source) {
  const ModelDef& def = model_of(spec);
  std::vector<HfTensor> tensors = def.tensors(spec);
  for (const HfTensor& copy : tensors) {
    if (!copy.copy || !source.contains(name_in(source, copy, def))) continue;
    auto original = std::find_if(tensors.begin(), tensors.end(), [&](const HfTensor& tensor) {
      return !tensor.copy && tensor.parameter == copy.parameter;
    });
    BUG_IF(original == tensors.end(), "{} is a copy of nothing", copy.name);
    TensorView again = source.tensor(name_in(source, copy, def));
    std::string first = name_in(source, *original, def);
    if (source.contains(first) && !same_values(again, source.tensor(first)))
      throw UserError({.place = again.place,
                       .got = fmt::format("its values differ from those of {}", first),
                       .expected = "a copy of it: multi-token prediction shares embedding and head with the model",
                       .hint = "model.mtp.depths=0 trains without the modules of multi-token prediction"});
  }
}

std::string unread_layers(const ModelSpec& spec, const WeightsReader& source) {
  // Text before the layer number: `own` in our parameter names, `prefix` in the file's tensor names.
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
    unread += layer >= spec.layers + spec.mtp_depths ? 1 : 0;
  }
  if (unread == 0) return "";
  bool predicts_ahead = model_of(spec).takes("mtp.depths") && spec.mtp_depths == 0;
  return fmt::format("{}{} and later hold {} tensors that are not read: the model has {} layers{}", prefix,
                     spec.layers + spec.mtp_depths, unread, spec.layers + spec.mtp_depths,
                     predicts_ahead ? "; model.mtp.depths reads those of multi-token prediction" : "");
}

std::string unread_models(const ModelSpec& spec, const WeightsReader& source) {
  const std::optional<HfWrapper>& wrapper = model_of(spec).hf_wrapper;
  if (!wrapper) return "";
  int64_t unread = 0;
  for (const std::string& name : source.names())
    for (std::string_view prefix : wrapper->unread) unread += name.starts_with(prefix) ? 1 : 0;
  if (unread == 0) return "";
  return fmt::format("{}* hold {} tensors that are not read: of {} only the model for text is trained and written",
                     fmt::join(wrapper->unread, "* and "), unread, wrapper->model_type);
}

void save_weights(const StateView& state, const ModelSpec& spec, const std::filesystem::path& directory,
                  const WeightsForm& form, Share share) {
  std::vector<HfTensor> tensors = tensors_in(spec, form.experts);
  write_weights(state, tensors, WeightsWriter(directory, plan_weights(tensors_in_file(spec, tensors, form)), share));
}

void save_master_weights(const StateView& state, const ModelSpec& spec, const std::filesystem::path& file,
                         Share share) {
  std::vector<HfTensor> tensors = tensors_in(spec, ExpertFiles::as_listed);
  std::erase_if(tensors, [](const HfTensor& tensor) { return tensor.copy; });
  WeightsPlan plan;
  plan.shards.push_back({file.filename().string(), plan_safetensors(tensors_in_file(spec, tensors, {}))});
  write_weights(state, tensors, WeightsWriter(file.parent_path(), std::move(plan), share));
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
