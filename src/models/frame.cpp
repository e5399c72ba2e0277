#include "models/frame.h"

namespace sextant {

Frame open_frame(Builder& b, const Use& use) {
  Frame frame{.tokens = b.feed("tokens", DType::i32, {use.batch, use.seq})};
  if (use.documents) frame.begins = b.feed("begins", DType::i32, {use.batch, use.seq});
  if (use.kind == Use::Kind::generate) {
    frame.cache = CachePosition{b.feed("start", DType::i32, {}), use.cache_positions};
    frame.at = b.feed("at", DType::i32, {});
  }
  return frame;
}

void close_frame(Builder& b, const Use& use, const Frame& frame, ValueId x, ValueId head) {
  if (use.kind == Use::Kind::loss) {
    ValueId targets = b.feed("targets", DType::i32, {use.batch, use.seq});
    b.feed("loss_scale", wide_of(use.dtype), {});  // the gradient of the loss: 1/tokens of the global batch
    b.fetch(b.op(ops::head_loss, "head", {b.gathered(x), head, targets}, {{"z_loss", use.z_loss}}), "loss");
    return;
  }
  ValueId last = b.op(ops::take_position, "last", {x, frame.at});
  b.fetch(b.op(ops::linear, "head", {last, head}), "logits");
}

}  // namespace sextant
