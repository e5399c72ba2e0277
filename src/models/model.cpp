#include "models/model.h"

#include "base/error.h"

namespace sextant {

extern const Architecture kGpt2;
extern const Architecture kLlama;

std::span<const Architecture> architectures() {
  static const Architecture kAll[] = {kGpt2, kLlama};
  return kAll;
}

const Architecture& architecture_of(const ModelSpec& spec) {
  std::string known;
  for (const Architecture& a : architectures()) {
    if (a.name == spec.architecture) return a;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", a.name);
  }
  throw UserError({.place = "model.architecture", .got = fmt::format("unknown architecture '{}'", spec.architecture),
                   .expected = fmt::format("one of {}", known)});
}

Graph build_model(const ModelSpec& spec, const Use& use, const Mesh& mesh) {
  return architecture_of(spec).build(spec, use, mesh);
}

int64_t parameter_count(const Graph& graph) {
  int64_t count = 0;
  for (const Value& value : graph.values)
    if (value.kind == ValueKind::parameter) count += value.shape.count();
  return count;
}

Mesh single_rank_mesh() { return {{{"pp", 1}, {"dp", 1}, {"cp", 1}, {"tp", 1}}}; }

}  // namespace sextant
