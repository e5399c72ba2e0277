// ModelDef: everything anybody may ask about an architecture, as one record. Each model file of this folder fills it in
// the order of its fields; nobody else switches on the architecture.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/plan.h"
#include "models/dropout_rates.h"
#include "models/spec.h"

namespace sextant {

// The purpose for which a Graph is built, with its sizes and options.
struct Use {
  enum class Kind : uint8_t {
    // Feeds tokens, targets [batch, seq]; fetches loss (a sum over tokens). With multi-token prediction, for each depth
    // k
    // from 1 (ir/mtp_paths.h): feeds tokens.k, those k behind, and targets.k; fetches mtp_loss.k with the gradient
    // mtp_scale.k.
    loss,
    generate,  // feeds tokens [batch, seq], start, at; fetches logits [batch, 1, vocab] of position `at`; keeps caches
  } kind = Kind::loss;
  int64_t batch = 1;
  int64_t seq = 1;
  double z_loss = 0;            // loss only
  int64_t cache_positions = 0;  // generate only
  bool documents = false;       // loss only: feeds begins [batch, seq] too, where each token's document begins
  bool mtp = true;              // loss only: with the modules of multi-token prediction, where the spec has any
  DropoutRates dropout = {};    // training only: with any, feeds dropout_keys [batch] too (exec/dropout_mask.h)
  DType dtype = DType::f32;
  DType expert_gradients = DType::f32;  // training only: those of experts' weights, f32 or as dtype
  Parallel parallel = {};
};

// Where rows of an expert are in files that hold the matrices of all experts as one tensor of three dims.
struct StackedRows {
  std::string name;               // "model.layers.0.mlp.experts.gate_up_proj"
  int64_t slice = 0, slices = 0;  // 0 slices: a tensor that only has another name in such files
  int64_t file_row = 0, file_rows = 0;
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
  // Where the file's tensor is a stack of matrices: which of so many these rows are in; 0 slices = it is no stack.
  int64_t slice = 0, slices = 0;
  std::optional<StackedRows> stacked = {};  // for the matrices of experts, which files hold one by one or as a stack
  bool copy = false;                        // the file holds these rows a second time: they are written, but not read
  float file_less = 0;  // what the file leaves off every element: Nemotron's hold the weights of norms less 1

  int64_t rows_in_file() const { return file_rows > 0 ? file_rows : rows; }
};

struct HfType;  // models/hf_type.h

// A model type of Hugging Face that has the architecture for text, beside models for images or sound: those are not
// read. What is written is the model for text alone, under its own type.
struct HfWrapper {
  std::string_view model_type;           // "llama4"
  std::string_view section;              // where the config.json of the model for text stands: "text_config"
  std::string_view prefix;               // in front of the names of its tensors: "language_model."
  std::vector<std::string_view> unread;  // what the names of all other tensors begin with
};

// A published model. The values are those of the config.json that its authors released, or of the paper where there is
// none. The architecture of the spec is filled in by presets().
struct Preset {
  std::string_view name;   // "llama3.1-8b"
  std::string_view about;  // whose it is, one noun phrase
  ModelSpec spec;
};

// How a model knows where a token stands.
enum class Positions : uint8_t { learned, rotary, alibi };

struct ModelDef {
  std::string_view name;   // model.architecture, "llama"
  std::string_view about;  // the models that it covers
  // The words that tables of published runs have for it.
  std::vector<std::string_view> published_as = {};

  // Choices that the architecture leaves to its spec.
  Positions positions = Positions::learned;
  bool free_heads = false;  // kv_heads and head_dim may be given
  bool free_ffn = true;     // else the MLP is 4 hidden wide
  bool free_eps = true;     // else norms have an eps of 1e-5
  bool has_experts = false;
  std::vector<std::string_view> options = {};  // the optional fields of ModelSpec (spec.cpp lists them) it computes

  // Values of fields that are not given; sizes of 0 follow from the others.
  ModelSpec defaults;
  int64_t (*ffn_of)(int64_t hidden) = nullptr;                                         // null: 4 hidden
  void (*check)(const ModelSpec& spec, std::vector<SpecProblem>& problems) = nullptr;  // what it adds to problems_of

  Graph (*build)(const ModelSpec& spec, const Use& use, const Mesh& mesh) = nullptr;

  // Hugging Face directories.
  std::vector<HfTensor> (*tensors)(const ModelSpec& spec) = nullptr;
  std::string_view hf_prefix;  // older files leave this out of every name
  std::vector<HfType> hf_types;
  std::string_view (*hf_type_of)(const ModelSpec& spec) = nullptr;  // null: the only one
  std::optional<HfWrapper> hf_wrapper = {};

  std::vector<Preset> (*presets)() = nullptr;

  bool takes(std::string_view option) const;
};

}  // namespace sextant
