// Results of our executor for a Hugging Face directory and a batch: loss, logits and gradients under the names of the
// file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "ckpt/convert.h"
#include "ckpt/model_weights.h"
#include "ckpt/safetensors.h"
#include "exec/cpu/cpu_executor.h"
#include "models/hf_config.h"
#include "models/model.h"
#include "passes/lower.h"

namespace sextant {

// A bound program with the weights of a directory in it.
struct Loaded {
  Loaded(const std::filesystem::path& directory, const Use& use, const LowerOptions& options)
      : spec(spec_from_hf_config(read_file(directory / "config.json"), "config.json")),
        executor(make_cpu_executor(2)),
        program(lower(build_model(spec, use, single_rank_mesh()), executor->target(), options)),
        arena(executor->allocate(program.arena_bytes)),
        bound(executor->bind(program, *arena)) {
    load_weights(*bound, spec, WeightsReader(directory));
  }
  std::vector<float> read(std::string_view path) const {
    const Value& value = program.at(path);
    std::vector<float> x(static_cast<size_t>(value.shape.count()));
    bound->read(value, std::as_writable_bytes(std::span(x)));
    return x;
  }

  ModelSpec spec;
  std::unique_ptr<Executor> executor;
  Program program;
  std::unique_ptr<Arena> arena;
  std::unique_ptr<Bound> bound;
};

struct Batch {
  int64_t rows = 0, seq = 0;
  std::vector<int32_t> tokens, targets;  // a negative target does not count
  int64_t counted() const {
    return std::count_if(targets.begin(), targets.end(), [](int32_t t) { return t >= 0; });
  }
};

// Tensors of the fixtures' expected.safetensors.
inline std::vector<float> floats(const TensorView& view) {
  std::vector<float> x(static_cast<size_t>(view.shape.count()));
  load_rows(view, {0, row_count(view.shape)}, Transpose::no, x);
  return x;
}

inline std::vector<int32_t> integers(const TensorView& view) {
  std::vector<int32_t> x(static_cast<size_t>(view.shape.count()));
  std::memcpy(x.data(), view.bytes.data(), view.bytes.size());
  return x;
}

inline Batch fixture_batch(const SafetensorsFile& file) {
  GlobalShape shape = file.tensor("input_ids").shape;
  return {shape[0], shape[1], integers(file.tensor("input_ids")), integers(file.tensor("targets"))};
}

// TRAINING of make_model_fixtures.py, by which train_losses were made.
constexpr float kFixtureLearningRate = 1e-3f;
inline Optimizer fixture_optimizer() {
  return {.settings = {.eps = 1e-4}, .clip = 1.0};
}

struct BatchDropout {
  DropoutRates rates;
  std::vector<uint64_t> keys;  // one per row, where there are rates
};

struct NamedTensor {
  GlobalShape shape;
  std::vector<float> values;
};
using NamedTensors = std::map<std::string, NamedTensor>;

// Adds rows of a parameter's gradient to what the file would hold, transposed where the file is.
inline void add_file_gradient(const Loaded& model, const HfTensor& tensor, NamedTensors& results) {
  std::vector<float> packed = model.read("grad." + tensor.parameter);
  const Value& value = model.program.at(tensor.parameter);
  int64_t columns = value.shape.rank() == 2 ? value.shape[1] : 1, all_rows = tensor.rows_in_file();
  bool flipped = tensor.order == HfTensor::Order::transposed;
  NamedTensor& out = results["grad." + tensor.name];
  flipped = flipped && value.shape.rank() == 2;
  if (out.values.empty()) {
    std::vector<int64_t> dims{all_rows};
    if (value.shape.rank() == 2) dims.insert(flipped ? dims.begin() : dims.end(), columns);
    if (tensor.slices > 0) dims.insert(dims.begin(), tensor.slices);
    out.shape = GlobalShape(dims);
    out.values.resize(static_cast<size_t>(out.shape.count()));
  }
  int64_t slice = tensor.slice * all_rows * columns;
  for (int64_t r = 0; r < tensor.rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      int64_t row = tensor.file_row + r, at = slice + (flipped ? c * all_rows + row : row * columns + c);
      out.values[static_cast<size_t>(at)] = packed[static_cast<size_t>((tensor.first_row + r) * columns + c)];
    }
}

// "loss" (mean over counted targets) and "grad.NAME" for every tensor of the file.
inline NamedTensors loss_and_gradients(const std::filesystem::path& directory, const Batch& batch, double z_loss,
                                       RecomputeMode recompute, const BatchDropout& dropout = {}) {
  LowerOptions options{.train = Optimizer{}};
  options.plan.recompute = recompute;
  Loaded model(directory, {.batch = batch.rows, .seq = batch.seq, .z_loss = z_loss, .dropout = dropout.rates}, options);
  if (dropout.rates.any()) model.bound->write(model.program.at("dropout_keys"), std::as_bytes(std::span(dropout.keys)));
  model.bound->write(model.program.at("tokens"), std::as_bytes(std::span(batch.tokens)));
  model.bound->write(model.program.at("targets"), std::as_bytes(std::span(batch.targets)));
  float scale = 1.0f / static_cast<float>(batch.counted());
  write_value(*model.bound, model.program.at("loss_scale"), scale);
  if (const Value* balance = model.program.find("balance_scale")) write_value(*model.bound, *balance, 1.0f);
  model.bound->run({.region = RegionKind::forward});
  model.bound->run({.region = RegionKind::backward});
  NamedTensors results;
  float loss = read_value<float>(*model.bound, model.program.at("loss")) * scale;
  if (const Value* balance = model.program.find("balance_loss")) loss += read_value<float>(*model.bound, *balance);
  results["loss"] = {{1}, {loss}};
  for (const HfTensor& tensor : model_of(model.spec).tensors(model.spec))
    if (model.program.at(tensor.parameter).is_trained()) add_file_gradient(model, tensor, results);
  return results;
}

// Logits [rows, seq, vocab] through the generation Program, `block` positions at a time (the last position of each
// block only; the others stay zero).
inline NamedTensor cached_logits(const std::filesystem::path& directory, const Batch& batch, int64_t block) {
  Loaded model(directory, {.kind = Use::Kind::generate, .batch = 1, .seq = block, .cache_positions = batch.seq}, {});
  NamedTensor logits{{batch.rows, batch.seq, model.spec.vocab}, {}};
  logits.values.resize(static_cast<size_t>(logits.shape.count()));
  for (int64_t row = 0; row < batch.rows; ++row) {
    for (int64_t start = 0; start < batch.seq; start += block) {
      auto tokens =
          std::span(batch.tokens).subspan(static_cast<size_t>(row * batch.seq + start), static_cast<size_t>(block));
      model.bound->write(model.program.at("tokens"), std::as_bytes(tokens));
      write_value(*model.bound, model.program.at("start"), static_cast<int32_t>(start));
      write_value(*model.bound, model.program.at("at"), static_cast<int32_t>(block - 1));
      run_schedule(*model.bound);
      std::vector<float> at = model.read("logits");
      std::copy(at.begin(), at.end(), logits.values.begin() + (row * batch.seq + start + block - 1) * model.spec.vocab);
    }
  }
  return logits;
}

}  // namespace sextant
