#include "validate/foreign_experts.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "models/model.h"
#include "models/model_flops.h"
#include "models/presets.h"

namespace sextant {

namespace {

struct PublishedModel {
  std::string_view begins, preset;
};
// Longer beginnings first.
constexpr std::array kPublishedModels{
    PublishedModel{"Mixtral-8x22B-G8T8", ""},
    PublishedModel{"Mixtral-8x22B", "mixtral-8x22b-v0.3"},
    PublishedModel{"Mixtral-8x7B", "mixtral-8x7b"},
    PublishedModel{"Qwen2-57B", "qwen2-57b-a14b"},
    PublishedModel{"Qwen3 30B", "qwen3-30b-a3b"},
    PublishedModel{"Qwen3 235B", "qwen3-235b-a22b"},
    PublishedModel{"DeepSeek-V3 16B", ""},
    PublishedModel{"DeepSeek-V3", "deepseek-v3"},
    PublishedModel{"Kimi K2", "kimi-k2"},
    PublishedModel{"GPT-OSS 20B", "gpt-oss-20b"},
    PublishedModel{"GPT-OSS 120B", "gpt-oss-120b"},
    PublishedModel{"OLMoE-1B-7B", "olmoe-1b-7b"},
    PublishedModel{"Llama 4 Scout", "llama4-scout"},
    PublishedModel{"Llama 4 Maverick", "llama4-maverick"},
    PublishedModel{"GLM-4.5 Air", "glm-4.5-air"},
    PublishedModel{"GLM-4.5", "glm-4.5"},
};

struct OneModel {
  std::string_view begins, why_not;
};
// Models that are not converted, and what is missing.
constexpr std::array kOthers{
    OneModel{"DeepSeek-V4", "DeepSeek V4 is not supported: its attention"},
    OneModel{"JetMoE", "experts of attention are not supported"},
    OneModel{"Gemma-4", "Gemma 4 is not supported yet"},
};

const Preset* preset_published_as(std::string_view model) {
  for (const PublishedModel& each : kPublishedModels)
    if (model.starts_with(each.begins)) return each.preset.empty() ? nullptr : find_preset(each.preset);
  return nullptr;
}

bool mentions(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

// "1 (20480, gated)": the width where there is one; 0 for none.
int64_t shared_width(const std::string& words, int64_t expert) {
  int64_t count = 0, width = 0;
  auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), count);
  size_t open = words.find('(');
  if (open != std::string::npos) std::from_chars(words.data() + open + 1, words.data() + words.size(), width);
  return error != std::errc{} ? 0 : width > 0 ? width : count * expert;
}

// The plainest model with experts: Mixtral's, with the row's numbers.
PublishedExperts plain_experts(const PublishedRun& row) {
  PublishedExperts out;
  if (row.arch != "moe") {
    out.why_not = fmt::format("architecture {} is not supported yet", row.arch);
    return out;
  }
  out.spec = find_preset("mixtral-8x7b")->spec;
  bool known = row.experts && row.experts_per_token;
  // Grok-1 as released: eight experts, two for a token.
  if (!known && !row.model.starts_with("Grok-1")) out.why_not = "the number of experts is not given";
  if (!known) out.assumed.emplace_back("experts=8, 2 for a token");
  out.spec.experts->count = row.experts.value_or(8);
  out.spec.experts->per_token = row.experts_per_token.value_or(2);
  out.spec.experts->ffn = row.ffn.value_or(0);
  return out;
}

// Whether the module of multi-token prediction was trained: where a source has both rates, its count of floating-point
// operations tells; else it was, as in the released model.
int64_t mtp_published_as(const PublishedRun& row, ModelSpec spec) {
  if (mentions(row.model, "w/o MTP")) return 0;
  if (!row.tflops_per_gpu || !row.tokens_per_s_per_gpu || *row.tokens_per_s_per_gpu <= 0) return 1;
  double published = *row.tflops_per_gpu * 1e12 / *row.tokens_per_s_per_gpu;
  auto away = [&](int64_t depths) {
    spec.mtp_depths = depths;
    return std::abs(model_flops_per_token(spec, *row.seq).causal - published);
  };
  return away(1) < away(0) ? 1 : 0;
}

}  // namespace

std::vector<int64_t> layers_of_stages(int64_t layers, int64_t stages) {
  auto of = [&](int64_t units) { return std::vector<int64_t>(static_cast<size_t>(stages), units / stages); };
  if (layers % stages == 0) return of(layers);
  if (stages > 1 && (layers + 2) % stages == 0) {
    std::vector<int64_t> out = of(layers + 2);
    --out.front(), --out.back();
    return out;
  }
  std::vector<int64_t> out = of(layers + stages - 1);
  int64_t over = out.front() * stages - layers;
  int64_t from_last = std::min(over, out.back());
  out.back() -= from_last, out.front() -= over - from_last;
  return out;
}

PublishedExperts experts_published_as(const PublishedRun& row) {
  for (const OneModel& other : kOthers)
    if (row.model.starts_with(other.begins)) return {.spec = {}, .why_not = std::string(other.why_not)};
  PublishedExperts out;
  const Preset* preset = preset_published_as(row.model);
  if (preset)
    out.spec = preset->spec;
  else
    out = plain_experts(row);
  if (!out.why_not.empty()) return out;
  ModelSpec& m = out.spec;
  m.layers = *row.layers, m.hidden = *row.hidden, m.heads = *row.heads;
  if (!m.latent) m.kv_heads = row.kv_heads.value_or(preset ? m.kv_heads : m.heads);
  if (m.latent) m.kv_heads = m.heads;
  if (!preset) m.head_dim = m.hidden / m.heads, m.ffn = row.ffn.value_or(4 * m.hidden);
  m.vocab = row.vocab.value_or(m.vocab);
  m.max_seq = std::max(m.max_seq, *row.seq);
  if (!preset && !row.shared_experts.empty()) m.experts->shared_ffn = shared_width(row.shared_experts, m.experts->ffn);
  // In DualPipe our stages would have the module beside as many layers as others, which its makers' cannot have had.
  bool dualpipe = row.schedule.starts_with("DualPipe") || row.schedule.starts_with("dualpipe");
  if (row.model.starts_with("DeepSeek-V3") && dualpipe)
    out.assumed.emplace_back("without its module of multi-token prediction");
  else if (row.model.starts_with("DeepSeek-V3"))
    m.mtp_depths = mtp_published_as(row, m);
  if (auto problems = problems_of(m); !problems.empty())
    out.why_not = fmt::format("{}: {}", problems[0].fields[0], problems[0].got);
  return out;
}

double imbalance_published_as(const PublishedRun& row) {
  // Of real routing on eight ranks of experts: the same runs with forced balance were 1.21 times as fast where experts
  // matter most (Megatron-MoE-ModelZoo, Qwen3-235B). Assumed for all.
  constexpr double kRealRouting = 1.3;
  std::string words = row.balance + " " + row.schedule;
  constexpr std::string_view kCapacity = "capacity ";
  if (!mentions(words, "real routing")) return 1;
  size_t at = words.find(kCapacity);
  if (at == std::string::npos) return kRealRouting;
  double factor = 0;  // rows up to the capacity are filled up
  const char* begin = words.data() + at + kCapacity.size();
  auto [end, error] = std::from_chars(begin, words.data() + words.size(), factor);
  return error == std::errc{} && factor >= 1 ? factor : kRealRouting;
}

void apply_words_of_experts(const PublishedRun& row, SoftwareProfile& profile) {
  std::string words = row.dispatcher + " " + row.schedule;
  if (mentions(words, "deepep") || mentions(words, "DeepEP") || mentions(words, "hybridep") ||
      mentions(words, "HybridEP"))
    profile.token_copies = TokenCopies::each_node;
  if (mentions(words, "alltoall")) profile.token_copies = TokenCopies::each_expert;
  if (mentions(words, "EP overlap") && !mentions(words, "no EP overlap") && !mentions(words, "EP overlap off"))
    profile.overlap_experts = true;
  if (mentions(words, "CUDA graphs") || mentions(words, "full CUDA graph")) profile.host_s_per_kernel = 0;
  profile.repeats_experts = mentions(row.recompute, "moe") && !mentions(row.recompute, "moe_act");
}

}  // namespace sextant
