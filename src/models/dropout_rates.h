// The probabilities with which training leaves elements out, by place in the model.
#pragma once

namespace sextant {

struct DropoutRates {
  double hidden = 0;     // of what attention and MLP add to the residual stream
  double attention = 0;  // of attention's weights, after the softmax
  double embedding = 0;  // of embeddings, with their positions
  bool any() const { return hidden > 0 || attention > 0 || embedding > 0; }
  bool operator==(const DropoutRates&) const = default;
};

}  // namespace sextant
