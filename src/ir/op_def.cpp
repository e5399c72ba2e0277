#include "ir/op_def.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "ir/signature.h"

namespace sextant {

std::function<Cost(const Attrs&, std::span<const TensorType>, std::span<const TensorType>)> streaming_cost(
    double flops_per_element) {
  return [flops_per_element](const Attrs&, std::span<const TensorType> in, std::span<const TensorType> out) {
    Cost cost;
    for (const TensorType& t : in) cost.read += t.bytes();
    for (const TensorType& t : out) cost.written += t.bytes();
    cost.flops = {flops_per_element * static_cast<double>(out.empty() ? 0 : out[0].shape.count())};
    return cost;
  };
}

namespace {

// Attrs that passes may set on ops of any kind.
constexpr std::array<std::string_view, 6> kAttrsOfAnyOp{"accumulate", "into",    "starts",
                                                        "kept_wide",  "checked", kPricedIn};

std::string types_text(std::span<const TensorType> types) {
  std::string out;
  for (const TensorType& t : types)
    out += fmt::format("{}{}{}", out.empty() ? "" : ", ", name_of(t.dtype), t.shape.text());
  return out;
}

// Reads the sizes of the letters off the inputs, and refuses sizes that disagree.
class LetterSizes {
 public:
  LetterSizes(const OpDef& def, std::span<const TensorType> inputs) : def_(def), inputs_(inputs) {}

  void read(const Operand& operand, const GlobalShape& shape) {
    if (operand.letters == "*") {
      if (any_.rank() == 0) any_ = shape;
      if (!(any_ == shape)) mismatch(operand);
      return;
    }
    if (static_cast<int>(operand.letters.size()) != shape.rank()) mismatch(operand);
    for (int dim = 0; dim < shape.rank(); ++dim) {
      auto [at, fresh] = sizes_.emplace(operand.letters[static_cast<size_t>(dim)], shape[dim]);
      if (!fresh && at->second != shape[dim]) mismatch(operand);
    }
  }

  GlobalShape shape_of(const Operand& operand) const {
    if (operand.letters == "*") return any_;
    std::vector<int64_t> dims;
    for (char letter : operand.letters) {
      auto at = sizes_.find(letter);
      BUG_IF(at == sizes_.end(), "{}: no input fixes dim '{}' of {}", def_.name, letter, operand.name);
      dims.push_back(at->second);
    }
    return GlobalShape(std::move(dims));
  }

 private:
  [[noreturn]] void mismatch(const Operand& operand) const {
    BUG("[{}] {} does not fit '{}': inputs are {}", def_.name, operand.name, def_.operands, types_text(inputs_));
  }

  const OpDef& def_;
  std::span<const TensorType> inputs_;
  std::map<char, int64_t> sizes_;
  GlobalShape any_;
};

}  // namespace

TensorTypes infer_types(const OpDef& def, const Attrs& attrs, std::span<const TensorType> inputs) {
  const Signature& signature = signature_of(def);
  // The buffer that an op was told to add onto or to overwrite stands behind the declared inputs.
  bool writes_onto_last = attrs.integer_or("accumulate", 0) != 0 || attrs.integer_or("into", 0) != 0;
  if (writes_onto_last && !inputs.empty()) inputs = inputs.first(inputs.size() - 1);
  size_t required = 0;
  for (const Operand& operand : signature.inputs) required += operand.count == Operand::Count::one;
  BUG_IF(inputs.size() < required, "[{}] expects '{}', got {} inputs", def.name, def.operands, inputs.size());
  for (const auto& [name, value] : attrs.entries()) {
    bool known = std::ranges::count(kAttrsOfAnyOp, name) > 0 || std::ranges::count(def.attrs, name) > 0;
    BUG_IF(!known, "[{}] has no attr '{}'", def.name, name);
  }
  LetterSizes sizes(def, inputs);
  std::vector<const Operand*> operands = signature.operands_of(ranks_of(inputs));
  for (size_t i = 0; i < inputs.size(); ++i) {
    bool declared = i < signature.inputs.size() || signature.inputs.back().count == Operand::Count::repeated;
    BUG_IF(!declared, "[{}] expects '{}', got {} inputs", def.name, def.operands, inputs.size());
    if (operands[i]->count != Operand::Count::repeated) sizes.read(*operands[i], inputs[i].shape);
  }
  TensorTypes outputs;
  if (def.shape) {
    outputs = def.shape(attrs, inputs);
  } else {
    // One that may be left out is there if the attr of its name is set.
    for (const Operand& operand : signature.outputs)
      if (operand.count != Operand::Count::optional || attrs.integer_or(operand.name, 0) != 0)
        outputs.push_back({inputs[0].dtype, sizes.shape_of(operand)});
  }
  if (attrs.integer_or("narrow_gradient", 0) == 0)
    for (int i : def.wide)
      if (auto at = static_cast<size_t>(i); at < outputs.size()) outputs[at].dtype = wide_of(outputs[at].dtype);
  return outputs;
}

}  // namespace sextant
