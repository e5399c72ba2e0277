// The blocks models are made of: each a function that adds ops to a Builder and returns the value that comes out.
#pragma once

#include <cstdint>
#include <optional>

#include "nn/builder.h"

namespace sextant {

enum class Bias : uint8_t { none, added };

struct Linear {
  std::string name;  // "qkv": weight at NAME.weight, bias at NAME.bias
  int64_t outputs = 0;
  double init_std = 0.02;
  Bias bias = Bias::none;
  TensorSplit split = TensorSplit::whole;
  std::vector<int64_t> segments = {};
};
ValueId linear(Builder& b, ValueId x, const Linear& spec);

// The initial spread of a weight that writes into the residual stream: smaller the more blocks there are, so that their
// sum stays in scale (Radford et al. 2019).
double residual_std(double init_std, int64_t layers);

// factor·x; x itself where that is 1.
ValueId scaled(Builder& b, ValueId x, std::string_view name, double factor);

ValueId rms_norm(Builder& b, ValueId x, std::string_view name, double eps);
ValueId layer_norm(Builder& b, ValueId x, std::string_view name, double eps, Bias bias = Bias::added);

struct Heads {
  int64_t query = 0;
  int64_t key_value = 0;
  int64_t dim = 0;
  int64_t value_dim = 0;  // of values, where that is another; 0 = dim
  int64_t width_of_values() const { return value_dim > 0 ? value_dim : dim; }
  std::vector<int64_t> segments() const { return {query * dim, key_value * dim, key_value * width_of_values()}; }
  int64_t packed_width() const { return (query + key_value) * dim + key_value * width_of_values(); }
  Attrs attrs() const;
};

// The packed q|k|v rows of attention, weights at qkv.weight. Where there are more ranks to share the heads than
// key-value heads, every rank makes the one that its query heads read: `heads` is what attention sees then, key-value
// heads repeated.
struct Packed {
  ValueId rows = kNoValue;
  Heads heads;
};
struct PackedLinear {
  Heads heads;
  double init_std = 0.02;
  Bias bias = Bias::none;
};
Packed packed_qkv(Builder& b, ValueId x, const PackedLinear& spec);

// Latent attention (DeepSeek-V2): queries, and keys and values, are made from narrow normed rows, of which every
// tensor-parallel rank computes all; what follows is split by heads. The last shared_dim elements of a key are the same
// for all heads. Weights at q_a, q_a_norm, q_b (at q where queries have no narrow rows), kv_a, kv_a_norm, kv_b.
struct LatentLinear {
  Heads heads;
  int64_t q_rank = 0;  // width of the narrow rows of queries; 0 = queries come from x itself
  int64_t kv_rank = 0;
  int64_t shared_dim = 0;
  double norm_eps = 1e-6;
  double init_std = 0.02;
};
Packed latent_qkv(Builder& b, ValueId x, const LatentLinear& spec);

// Every head of q and k to a root mean square of 1, times a weight; weights at q_norm.weight and k_norm.weight.
ValueId qk_norm(Builder& b, const Packed& qkv, double eps);

// Queries grow by 1 + strength·ln(1 + s) behind s steps of so many positions (ops/attention_temperature.cpp).
struct Temperature {
  int64_t positions = 0;
  double strength = 0;
};

struct Rope {
  double theta = 10000;
  int64_t dims = 0;          // how many elements of each head turn; 0 = all
  int64_t first = 0;         // which is the first of them
  bool interleaved = false;  // neighbours turn together, not elements half of them apart
  // Attributes of the op (ops/rope.cpp), where there are any; 0 and empty = not given.
  double scale_factor = 0, low_freq_factor = 0, high_freq_factor = 0;
  int64_t original_max_positions = 0;
  struct Ramp {
    double begin = 0, end = 0;
  };
  std::optional<Ramp> ramp;
  std::vector<double> frequency_divisors;
  double attention_factor = 1;
};

// The same over the whole width of q and of k, all heads together: weights as wide as these.
ValueId qk_norm_wide(Builder& b, const Packed& qkv, const Heads& stored, double eps);

// The weight at sinks: one logit for each query head.
ValueId attention_sinks(Builder& b, const Heads& heads, double init_std);

// Where generation stands: the first new position, and how many the caches hold.
struct CachePosition {
  ValueId start = kNoValue;
  int64_t capacity = 0;
};

enum class Alibi : uint8_t { none, added };

// The attributes of ops that leave elements out (ops/dropout.cpp); each place of a model has a site of its own.
struct Dropout {
  double rate = 0;
  int64_t site = 0;
  void add_to(Attrs& attrs) const {
    attrs.set("dropout", rate);
    attrs.set("site", site);
  }
};

// Attention over packed q|k|v rows; with a cache position, over the cache "cache.PATH".
struct Attention {
  Heads heads;
  std::optional<Rope> rope;
  std::optional<double> unit_heads_eps = {};  // behind RoPE, heads of q and k to a root mean square of 1
  std::optional<Temperature> temperature = {};
  Alibi alibi = Alibi::none;
  std::optional<CachePosition> cache;
  ValueId begins = kNoValue;  // where each token's document begins; kNoValue: all earlier tokens are seen
  double scale = 0;           // of scores; 0 = 1/sqrt(head size)
  int64_t window = 0;         // how many tokens a token sees, itself among them; 0 = all before it
  int64_t chunk = 0;          // sequences are cut into chunks of so many positions that see only themselves; 0 = whole
  Dropout dropout = {};       // of the softmax; with a rate above 0, keys are there
  ValueId dropout_keys = kNoValue;
  ValueId sinks = kNoValue;  // a logit for each head that joins every softmax (ops/attention_sinks.cpp)
};
ValueId attention(Builder& b, ValueId qkv, const Attention& spec);

// Normed rows up to `inner` wide, through a function of single elements, and down again: weights at up and down. What
// comes out is still to be added to the residual stream.
struct Mlp {
  const OpDef& activation;
  Attrs activation_attrs = {};
  int64_t inner = 0;
  double init_std = 0.02, down_std = 0.02;
  Bias bias = Bias::none;
};
ValueId mlp(Builder& b, ValueId normed, const Mlp& spec);

// The same with a gate: `activation` takes gate|up of 2·inner and gives inner. Weights at gate_up and down.
ValueId gated_mlp(Builder& b, ValueId normed, const Mlp& spec);

// Experts in place of a gated MLP: a router chooses some for each token, and what they give is added up by their
// weights. Weights at router, experts.gate_up and experts.down, of which the latter hold all experts' one below the
// other.
struct ClampedSwiglu {  // ops/weighted_clamped_swiglu.cpp: rows of gate_up are pairs of gate and up
  double limit = 0, alpha = 0;
};
struct ExpertMlp {
  int64_t experts = 0, per_token = 0, inner = 0;
  Attrs routing;  // of the op route, besides top_k
  // With a bias of scores where experts are chosen, at router.correction: how fast it follows the load
  // (Value::balance_speed).
  std::optional<double> bias_update_speed = {};
  double init_std = 0.02, down_std = 0.02;
  Bias router_bias = Bias::none, bias = Bias::none;  // the latter of both linears
  std::optional<ClampedSwiglu> clamped = {};         // none: SwiGLU, gate above up
  // The tensor that the routing weights multiply; `input` is for SwiGLU without biases only.
  enum class WeightOn : uint8_t { output, input } weight_on = WeightOn::output;
  // Slots that an expert takes of each sequence (ops/drop_slots.cpp).
  struct Drop {
    int64_t capacity;
    bool by_weight;
  };
  std::optional<Drop> drop = {};
  // Of the weights: f32, or as narrow as what they are computed from, where every rank has all experts and a step has
  // one microbatch.
  enum class Gradients : uint8_t { wide, narrow } gradients = Gradients::wide;
};

// Sums over tokens for each expert: its scores, and the number of its slots. Partial over all ranks.
struct ExpertLoad {
  ValueId scores = kNoValue, counts = kNoValue;
};

struct ExpertOutput {
  ValueId rows = kNoValue;
  ValueId logits = kNoValue, experts = kNoValue;  // of the router, and its choice
  ValueId dropped = kNoValue;                     // how many slots were, where some may be
  ValueId counted_for = kNoValue;                 // the parameter whose update reads the experts' load
};
ExpertOutput expert_mlp(Builder& b, ValueId normed, const ExpertMlp& spec);
// The load of the experts; in training its counts are added up over a step.
ExpertLoad expert_load(Builder& b, const ExpertOutput& output, const ExpertMlp& spec);
// A row for each sequence.
ExpertLoad sequence_load(Builder& b, const ExpertOutput& output, const ExpertMlp& spec);

}  // namespace sextant
