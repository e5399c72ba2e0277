#include "models/model.h"

#include <algorithm>

#include "base/error.h"

namespace sextant {

extern const Architecture kGpt2;
extern const Architecture kLlama;
extern const Architecture kNeox;
extern const Architecture kOpt;
extern const Architecture kBloom;
extern const Architecture kMpt;
extern const Architecture kPalm;
extern const Architecture kNemotron;

std::span<const Architecture> architectures() {
  static const Architecture kAll[] = {kGpt2, kLlama, kNeox, kOpt, kBloom, kMpt, kPalm, kNemotron};
  return kAll;
}

const Architecture& architecture_of(const ModelSpec& spec) {
  std::string known;
  for (const Architecture& a : architectures()) {
    if (a.name == spec.architecture) return a;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", a.name);
  }
  throw UserError({.place = "model.architecture",
                   .got = fmt::format("unknown architecture '{}'", spec.architecture),
                   .expected = fmt::format("one of {}", known)});
}

Graph build_model(const ModelSpec& spec, const Use& use, const Mesh& mesh) {
  int64_t seen = std::max(use.seq, use.cache_positions);
  if (spec.window > 0 && seen > spec.window)
    throw UserError(
        {.place = "model.window",
         .got = fmt::format("{} positions are more than the {} that a token of the model sees", seen, spec.window),
         .expected = fmt::format("at most {}: attention over a window is not there yet", spec.window),
         .hint = "ask for a shorter sequence or context"});
  return architecture_of(spec).build(spec, use, mesh);
}

int64_t parameter_count(const Graph& graph) {
  int64_t count = 0;
  for (const Value& value : graph.values)
    if (value.kind == ValueKind::parameter) count += value.shape.count();
  return count;
}

Mesh single_rank_mesh() {
  return {{{"pp", 1}, {"dp", 1}, {"cp", 1}, {"tp", 1}}};
}

}  // namespace sextant
