// OpDef: everything the passes may ask about a kind of op, as one record of pure functions. Each op file of ops/ fills
// this record in the order of its fields; nothing switches on op kind.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/attrs.h"
#include "ir/cost.h"
#include "ir/message.h"
#include "ir/op.h"
#include "ir/value.h"

namespace sextant {

struct Graph;

struct TensorType {
  DType dtype = DType::f32;
  GlobalShape shape;
  Bytes bytes() const { return {shape.count() * size_of(dtype)}; }
  bool operator==(const TensorType&) const = default;
};

using TensorTypes = std::vector<TensorType>;

// An output that shares the bytes of an input.
struct Alias {
  enum class Rule : uint8_t {
    may,   // the kernel allows in == out; memory does so where the input ends here
    must,  // the op updates its input in place: optimizer state, caches, accumulated gradients
    view,  // the output is the input's bytes under another layout; nothing is done
  };
  int output = 0;
  int input = 0;
  Rule rule = Rule::may;
};

// The interface through which `backward` emits ops. Gradients of outputs come in, gradients of inputs go out.
class BackwardScope {
 public:
  virtual ~BackwardScope() = default;
  virtual const Op& op() const = 0;
  ValueId input(int i) const { return op().inputs[static_cast<size_t>(i)]; }
  ValueId output(int i) const { return op().outputs[static_cast<size_t>(i)]; }
  int input_count() const { return static_cast<int>(op().inputs.size()); }
  virtual ValueId output_gradient(int i) const = 0;  // kNoValue where nothing downstream needs it
  virtual bool needs_gradient(int i) const = 0;      // whether input i leads to a parameter

  struct Emission {
    const OpDef& def;
    std::vector<ValueId> inputs;
    // For each output of the emitted op the forward input whose gradient it is, or kForwardOutput - i when the emitted
    // op also yields output i of the forward op, which then need not run in training.
    std::vector<int> gradient_of;
    Attrs attrs = {};
    Phase phase = Phase::input_gradient;
  };
  static constexpr int kForwardOutput = -1;
  virtual void emit(const Emission& emission) = 0;
  // The gradient of input i is this value itself: no op is needed.
  virtual void pass(int i, ValueId gradient) = 0;
};

// Inputs from which tests, layout checks and benchmarks are generated.
struct Example {
  std::string name;
  TensorTypes inputs;
  Attrs attrs;
  int64_t integers_below = 2;  // integer inputs are drawn from [0, integers_below)
  bool distinct = false;       // those along the last dim all differ: see distinct_integer

  // Element i of an integer input with so many along its last dim.
  int64_t distinct_integer(int64_t i, int64_t last) const { return (i % last * 5 + i / last) % integers_below; }
};

enum class Recompute : uint8_t {
  allowed,
  first,       // before all others: little work, and for a narrow output
  with_input,  // wherever its first input is, so that what it makes of a gathered value is not kept in its place
  never,       // has effects, or reads what changes: must run once
};

enum class LayoutRule : uint8_t {
  rows,  // the listed rows, and the implied ones
  free,  // the op is a change of layout: any state in, any state out
};

// Behaviour of an op of the update on a pipeline rank that has only some of its inputs.
enum class MissingInputs : uint8_t {
  not_run,   // it runs where all of them are
  left_out,  // it works on those that the rank has
};

// Where an op of the update runs when several pipeline ranks hold its parameter.
enum class HeldBySeveral : uint8_t {
  all_ranks,
  first_only,  // it counts the parameter once for the whole model
};

enum class Accumulate : uint8_t {
  unsupported,
  supported,  // with attr accumulate=1 output 0 is added onto what its buffer holds
};

// How often the operands of an op that only streams cross memory in software that writes it in elementary operations,
// against once in one kernel of ours. Counted kernel by kernel in each software's source.
struct Passes {
  double bytes = 1;  // times the op's own bytes
  double kernels = 1;
  bool operator==(const Passes&) const = default;
};
struct PassesElsewhere {
  Passes compiled = {}, jit = {},
         eager = {};  // torch.compile, torch.jit and fused extensions, one kernel per operation
  bool operator==(const PassesElsewhere&) const = default;
};

// Whether an op finds rows of a table, its last input, by tokens, or adds up the gradients of such rows.
enum class TokenLookup : uint8_t { none, rows, gradients };

// Attr of an op that is priced in a format which it is not run in (Target::priced_formats): that format's name.
inline constexpr std::string_view kPricedIn = "priced_in";

struct OpDef {
  std::string_view name;
  std::string_view contract;  // the formula, in one or two sentences
  // "x[b s i], w[o i], bias?[o] -> y[b s o]": a letter is a dim, equal letters are equal sizes. `?` marks an input that
  // may be left out, `...` one that may be repeated, `*` stands for any dims (the same wherever it appears).
  std::string_view operands;
  std::vector<std::string_view> attrs;  // the names it understands
  // Output types from input types. Null: dtypes of the first input, shapes by the letters.
  std::function<TensorTypes(const Attrs&, std::span<const TensorType>)> shape;
  // Outputs (indices) that are sums or statistics, and so kept in f32 where the operands are 16-bit floats.
  std::vector<int> wide;
  // Layout rows for one axis. "b": split along letter b (operands without it are R as inputs, P as outputs); "*": along
  // any dim of `*`; or written out: "x:S(i) w:S(i) bias:P -> y:P". All-R and all-I rows hold for every op and are not
  // listed.
  std::vector<std::string_view> rows;
  // State of an output that does not have the letter along which a row splits: a partial sum, a partial maximum
  // (kPartialMax), or the same value on every rank (kReplicated).
  AxisState without_letter = kPartial;
  LayoutRule layout_rule = LayoutRule::rows;
  // For rows whose local work is not the same op on local shapes: the ops that do it, made from the op with its
  // layouts. The op itself where nothing differs.
  std::function<std::vector<Op>(Graph&, const Op&)> localize;
  std::function<void(BackwardScope&)> backward;  // null: no gradient flows
  std::function<Cost(const Attrs&, std::span<const TensorType> in, std::span<const TensorType> out)> cost;
  // The message that the op sends to other ranks, from its rank's types; null: none.
  std::function<std::optional<Message>(const Attrs&, std::span<const TensorType> in, std::span<const TensorType> out)>
      message;
  std::vector<Alias> alias;
  std::function<std::vector<Alias>(const Attrs&)> alias_by_attrs;  // instead of `alias`, where attrs decide
  Recompute recompute = Recompute::allowed;
  Accumulate accumulate = Accumulate::unsupported;
  MissingInputs missing_inputs = MissingInputs::not_run;
  HeldBySeveral held_by_several = HeldBySeveral::all_ranks;
  PassesElsewhere passes = {};
  // Softmax attention over packed q|k|v, which is input 0; where documents begin is its input of i32, if there is one.
  bool attends = false;
  bool gated = false;  // the activation of a gated MLP, forward: one half of the input times a function of the other
  TokenLookup lookup = TokenLookup::none;
  std::vector<Example> examples;
  bool holds_inputs =
      false;  // it returns before it has read its inputs: they must stay as they are (messages under way)
  bool between_spaces = false;  // its operands may be in different spaces; those of other ops are all in one
};

// Each operand once through memory, `flops_per_element` for every element of the first output: what most small ops
// cost.
std::function<Cost(const Attrs&, std::span<const TensorType>, std::span<const TensorType>)> streaming_cost(
    double flops_per_element);

// Output types by the definition's own rule. Never throws UserError: a mismatch is a BUG of the builder, named by op
// and shapes.
TensorTypes infer_types(const OpDef& def, const Attrs& attrs, std::span<const TensorType> inputs);

}  // namespace sextant
