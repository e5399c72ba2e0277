#include "train/save/snapshot.h"

#include <cstring>

#include "base/error.h"

namespace sextant {

bool is_checkpointed(const Value& value) {
  return value.kind == ValueKind::parameter || value.kind == ValueKind::low_bits || value.kind == ValueKind::state;
}

int64_t snapshot_bytes(const Program& program) {
  int64_t bytes = 0;
  for (const Value& value : program.values)
    if (is_checkpointed(value)) bytes += value.local_bytes().n;
  return bytes;
}

Snapshot::Snapshot(const StateView& source) : source_(source) {
  int64_t at = 0;
  for (const Value& value : source.program().values) {
    place_.push_back(is_checkpointed(value) ? at : -1);
    if (is_checkpointed(value)) at += value.local_bytes().n;
  }
  copy_.resize(static_cast<size_t>(at));
}

void Snapshot::take() {
  for (const Value& value : program().values) {
    int64_t at = place_[static_cast<size_t>(value.id)];
    if (at >= 0)
      source_.read(value,
                   std::span(copy_).subspan(static_cast<size_t>(at), static_cast<size_t>(value.local_bytes().n)));
  }
  source_.verify_checksums();
}

void Snapshot::read(const Value& value, std::span<std::byte> destination, int64_t offset) const {
  int64_t at = place_[static_cast<size_t>(value.id)];
  BUG_IF(at < 0, "{} is not part of a checkpoint", value.path);
  std::memcpy(destination.data(), copy_.data() + at + offset, destination.size());
}

}  // namespace sextant
