#include "train/gradient_hashes.h"

#include "base/hash.h"

namespace sextant {

void GradientHashes::after(const OpRun& run) {
  if (!run.op.attrs.names("axes").empty()) return;  // sums over ranks
  for (size_t i = 0; i < run.outputs.size(); ++i) {
    const Value& value = program_[run.op.outputs[i]];
    if (value.kind != ValueKind::fetch && !is_to_be_summed(value)) continue;
    const Tensor& made = run.outputs[i];
    ContentHash hash;
    hash.add({made.as<const std::byte>(), static_cast<size_t>(made.count() * size_of(made.dtype))});
    values_.push_back(hash.value());
    paths_.push_back(value.path);
  }
}

// Over data-parallel ranks, each of which has a term of its own: gradients of weights, as ops make them.
bool GradientHashes::is_to_be_summed(const Value& value) const {
  for (int axis = 0; axis < program_.mesh.axis_count(); ++axis)
    if (program_.mesh.role(axis) == AxisRole::data && value.layout.at(axis) == kPartial) return true;
  return false;
}

}  // namespace sextant
