// What a model file of this folder provides: the Graph of a ModelSpec, and where its weights stand in a Hugging Face
// directory. A new architecture is one file and one line in model.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/plan.h"
#include "models/spec.h"

namespace sextant {

// What the Graph is for.
struct Use {
  enum class Kind : uint8_t {
    loss,      // feeds tokens, targets [batch, seq]; fetches loss (a sum over tokens)
    generate,  // feeds tokens [batch, seq], start, at; fetches logits [batch, 1, vocab] of position `at`; keeps caches
  } kind = Kind::loss;
  int64_t batch = 1;
  int64_t seq = 1;
  double z_loss = 0;            // loss only
  int64_t cache_positions = 0;  // generate only
  bool documents = false;       // loss only: feeds begins [batch, seq] too, where each token's document begins
  DType dtype = DType::f32;
  Parallel parallel = {};
};

// Rows of one tensor of a Hugging Face file, and the rows of a parameter that they are: most often all of the tensor,
// and several times a part of it where the file mixes what we keep apart (q, k and v of each head in turn).
struct HfTensor {
  std::string name;       // "model.layers.0.self_attn.q_proj.weight"
  std::string parameter;  // "layers.0.attn.qkv.weight"
  int64_t first_row = 0;  // of the parameter
  int64_t rows = 0;
  enum class Order : uint8_t { as_is, transposed } order = Order::as_is;  // GPT-2 files hold [in, out]
  int64_t file_row = 0;   // the first of these rows in the file's tensor
  int64_t file_rows = 0;  // all rows of the file's tensor; 0 = these
  float file_less = 0;    // what the file leaves off every element: Nemotron's hold the weights of norms less 1

  int64_t rows_in_file() const { return file_rows > 0 ? file_rows : rows; }
};

struct Architecture {
  std::string_view name;
  Graph (*build)(const ModelSpec& spec, const Use& use, const Mesh& mesh);
  std::vector<HfTensor> (*tensors)(const ModelSpec& spec);
  std::string_view hf_prefix;  // older files leave this out of every name
};

std::span<const Architecture> architectures();
const Architecture& architecture_of(const ModelSpec& spec);  // UserError for an unknown one

Graph build_model(const ModelSpec& spec, const Use& use, const Mesh& mesh);

// Exact, from the Graph's own parameters.
int64_t parameter_count(const Graph& graph);

// One rank: every axis has size 1.
Mesh single_rank_mesh();

}  // namespace sextant
