// OptimizerDef: everything anybody may ask about an optimizer, as one record: the settings it reads, what it keeps for
// each weight, and the ops of one step. The update, checkpoints, plans and resume read this record; nobody else knows
// an optimizer by its name. Each optimizer is one file of this folder and one line of optimizers.def.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "optim/settings.h"

namespace sextant {

// A weight as optimizers see it.
struct OptimizedWeight {
  GlobalShape shape;
  // Rows of each tensor that is packed in it (q|k|v, gate|up): what an optimizer does to a whole tensor, it does to
  // each of these, so that packing does not show in the result. One entry where nothing is packed.
  std::vector<int64_t> packed_rows;
  bool in_block = true;  // of the repeated blocks of the model alone: neither embedding, head nor final norm
  // Of the tensor that checkpoints store it in, which may be more than it: the same on every mesh.
  int64_t stored_elements = 0;
  bool whole_blocks = true;  // no rank's part of a row ends inside a block of kStateBlock (see state_blocks_whole)

  bool is_matrix() const { return shape.rank() >= 2; }
};

// Of every parameter of a graph that is trained, by its id.
std::map<ValueId, OptimizedWeight> optimized_weights(const Graph& graph);

inline constexpr std::string_view kAbsmaxSuffix = "_absmax";

// Neighbours in a row that share a scale where states are kept in 8 bits; the last ones of a row may be fewer.
inline constexpr int64_t kStateBlock = 256;

// Whether ranks that hold parts of a weight hold whole blocks of its rows.
bool state_blocks_whole(const GlobalShape& weight, const Layout& layout, const Mesh& mesh);

// A tensor that an optimizer keeps for a weight from step to step. It is saved, resumed and planned.
struct OptimizerState {
  std::string_view name;  // "adam_m": that of weight W is called adam_m.W
  enum class Extent : uint8_t {
    elements,  // of the weight's shape, and sharded like the update
    rows,      // a number per row, whole on every rank
    columns,   // a row for each packed tensor with a number per column, whole on every rank
    blocks,    // a number per block of a row, sharded like the update
  } extent = Extent::elements;
  enum class Range : uint8_t { any, not_negative } range = Range::any;  // refused on resume outside of it
  // f32, bf16, or u8: codes of the map of the range (base/dynamic_map.h), whose scales are the state of extent `blocks`
  // with kAbsmaxSuffix behind the name.
  DType dtype = DType::f32;

  std::string path_of(std::string_view weight) const { return std::string(name) + "." + std::string(weight); }
  GlobalShape shape_for(const OptimizedWeight& weight) const;
};

// The interface through which an optimizer writes one weight's step. Ops are appended in order; layouts are inferred
// afterwards, from the rows of each op.
class UpdateScope {
 public:
  virtual ~UpdateScope() = default;
  virtual const OptimizedWeight& weight() const = 0;
  virtual const OptimizerSettings& settings() const = 0;  // every field that the definition has a default for is there

  // The weight, its gradient and its states (in the order of OptimizerDef::states) in the layout of the update.
  virtual ValueId value() const = 0;
  virtual ValueId gradient() const = 0;
  virtual ValueId state(int i) const = 0;
  virtual ValueId low_bits() const = 0;    // of a weight that is computed with in 16 bits; else kNoValue
  virtual bool rounds_weight() const = 0;  // whether the step ends in bf16 numbers, rounded at random
  // Whose elements an op that rounds at random works on: attrs `key` and `first_row` (exec/rounding_bits.h).
  virtual Attrs rounding() const = 0;
  // Scalars of the step: learning rate, factor of gradient clipping (0: the step is skipped), number from 1 on.
  virtual ValueId lr() const = 0;
  virtual ValueId scale() const = 0;
  virtual ValueId step() const = 0;

  // Appends an op that works towards the step; its outputs.
  virtual std::vector<ValueId> emit(const OpDef& def, std::vector<ValueId> inputs, Attrs attrs) = 0;
  // Appends the op that writes the weight, which is its first input and its first output. Low bits are added behind
  // the inputs where there are any.
  virtual void write(const OpDef& def, std::vector<ValueId> inputs, Attrs attrs) = 0;

  virtual double weight_decay() const = 0;  // of this weight: 0 where it does not decay
};

struct OptimizerDef {
  std::string_view name;     // optimizer.name
  std::string_view summary;  // one noun phrase, for the reference of the config
  // The settings that it reads, with their defaults where the config sets none. Fields that are not set are not read.
  OptimizerSettings defaults;
  // Which weights decay: matrices, unless the file says otherwise.
  bool (*decays)(const OptimizedWeight&) = [](const OptimizedWeight& weight) { return weight.is_matrix(); };
  // Abilities of some optimizers; configs that ask them of another are refused.
  bool reads_narrow_gradients = false;   // gradients of experts in bf16 (train.expert_gradients)
  bool rounds_weights = false;           // bf16 weights, rounded at random (train.master_weights)
  bool runs_on_host = false;             // with its states in f32 (offload.optimizer)
  bool sums_need_whole_weights = false;  // its exact sums depend on where the shards of a weight begin
  std::vector<OptimizerState> (*states)(const OptimizedWeight&, const OptimizerSettings&);
  void (*update)(UpdateScope&);
};

namespace optimizers {
#define OPTIMIZER(name) extern const OptimizerDef name;
#include "optim/optimizers.def"
#undef OPTIMIZER
}  // namespace optimizers

std::span<const OptimizerDef* const> all_optimizers();
const OptimizerDef* find_optimizer(std::string_view name);  // null when there is none

// The words of optimizer.name.
inline constexpr ChoiceText kOptimizerNames[] = {
#define OPTIMIZER(name) {#name, ""},
#include "optim/optimizers.def"
#undef OPTIMIZER
};

// Those for which it holds: "adamw or lion".
std::string optimizers_with(bool OptimizerDef::*ability);

// An optimizer with the settings of a run.
struct Optimizer {
  const OptimizerDef* def = &optimizers::adamw;
  OptimizerSettings settings = {};  // where one is not set, the definition's default holds
  double clip = 1.0;                // largest gradient norm; 0 = off
  bool rounds_weights = false;      // weights are bf16 numbers without low bits: train.master_weights = "bf16"
  // Whether feed "norm_limit" says, step by step, above which gradient norm the update is left out.
  bool norm_limit = false;

  OptimizerSettings resolved() const;
  std::vector<OptimizerState> states(const OptimizedWeight& weight) const { return def->states(weight, resolved()); }
};

// The settings with the definition's defaults where they say nothing; those that it does not read stay unset.
OptimizerSettings with_defaults(const OptimizerDef& def, const OptimizerSettings& given);

// The names of the settings that the optimizer reads.
std::vector<std::string_view> settings_of(const OptimizerDef& def);

}  // namespace sextant
