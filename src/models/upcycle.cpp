#include "models/upcycle.h"

#include <fmt/format.h>

#include <map>

#include "base/error.h"
#include "models/model.h"

namespace sextant {

namespace {

bool is_drawn(std::string_view path) {
  return path.find(".mlp.router.") != std::string_view::npos || path.find(".mlp.shared.") != std::string_view::npos;
}

[[noreturn]] void refuse_pair(const ModelSpec& spec, const ModelSpec& dense, std::string got) {
  throw UserError(
      {.place = "model.architecture",
       .got = std::move(got),
       .expected = fmt::format("an architecture with experts that is as {} in everything else", dense.architecture),
       .hint = fmt::format("{} is what model.from holds and {} what it was to become; Llama and Mistral become "
                           "mixtral, Qwen 2 qwen2_moe and Qwen 3 qwen3_moe",
                           dense.architecture, spec.architecture)});
}

std::map<std::string, int64_t> rows_of_parameters(const ModelSpec& spec) {
  std::map<std::string, int64_t> rows;
  for (const Value& value : build_model(spec, {.seq = 1}, single_rank_mesh()).values)
    if (value.kind == ValueKind::parameter) rows.emplace(value.path, value.shape[0]);
  return rows;
}

}  // namespace

ModelSpec upcycled_spec(const ModelSpec& dense, const ModelDef& target) {
  ModelSpec spec = dense;
  spec.architecture = target.name;
  spec.hf_type.clear();
  spec.experts = target.defaults.experts;
  spec.experts->ffn = dense.ffn;
  if (!target.takes("qk_norm")) spec.qk_norm = false;  // it has such a norm always or never
  return spec;
}

std::vector<HfTensor> upcycled_tensors(const ModelSpec& spec, const ModelSpec& dense) {
  std::map<std::string, int64_t> missing = rows_of_parameters(spec);
  std::vector<HfTensor> tensors;
  auto place = [&](HfTensor tensor) {
    auto found = missing.find(tensor.parameter);
    if (found == missing.end())
      refuse_pair(spec, dense, fmt::format("{} has no place for {}", spec.architecture, tensor.name));
    found->second -= tensor.rows;
    tensors.push_back(std::move(tensor));
  };
  for (const HfTensor& tensor : model_of(dense).tensors(dense)) {
    constexpr std::string_view kMlp = ".mlp.";
    size_t mlp = tensor.parameter.find(kMlp);
    HfTensor of_expert = tensor;
    if (mlp != std::string::npos) of_expert.parameter.insert(mlp + kMlp.size(), "experts.");
    if (mlp == std::string::npos || !missing.contains(of_expert.parameter)) {
      place(tensor);
      continue;
    }
    int64_t rows = tensor.parameter.find(".gate_up.") != std::string::npos ? 2 * dense.ffn : dense.hidden;
    for (int64_t e = 0; e < spec.experts->count; ++e) {
      place(of_expert);
      of_expert.first_row += rows;
    }
  }
  for (const auto& [path, rows] : missing)
    if (rows != 0 && !is_drawn(path))
      refuse_pair(spec, dense,
                  fmt::format("{} has {}, for which {} has no weights of that size", spec.architecture, path,
                              dense.architecture));
  return tensors;
}

}  // namespace sextant
