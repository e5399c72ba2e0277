#include "validate/foreign.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "config/mesh_axes.h"
#include "cost/software_profile_file.h"
#include "ir/plan.h"
#include "models/model.h"
#include "validate/foreign_experts.h"

namespace sextant {

namespace {

struct DeviceName {
  std::string_view begins, machine;
};
// Longer beginnings first.
constexpr std::array kDevices{
    DeviceName{"V100-32GB-SXM3", "dgx2-v100"},
    DeviceName{"V100", "v100-sxm2"},
    DeviceName{"A100-40GB-PCIe", "a100-40-pcie"},
    DeviceName{"A100-40GB", "a100-40-sxm"},
    DeviceName{"A100", "a100-80-sxm"},
    DeviceName{"A800", "a800"},
    DeviceName{"H100-96GB-HBM2e-500W", "h100-96-500w"},
    DeviceName{"H100", "h100-sxm"},
    DeviceName{"H800", "h800"},
    DeviceName{"H200", "h200"},
    DeviceName{"GB200", "gb200-nvl72"},
    DeviceName{"GB300", "gb300-nvl72"},
    DeviceName{"B200", "b200"},
    DeviceName{"B300", "b300"},
    DeviceName{"MI300X", "mi300x"},
    DeviceName{"MI355X", "mi355x"},
    DeviceName{"TPU v5p", "tpu-v5p"},
    DeviceName{"TPU v4", "tpu-v4"},
};

// The architecture that a source's word means; null where there is none.
const ModelDef* model_published_as(std::string_view word) {
  for (const ModelDef* def : all_models())
    if (std::find(def->published_as.begin(), def->published_as.end(), word) != def->published_as.end()) return def;
  return nullptr;
}

// "zero1 over 8 GPUs (hybrid)": the ranks that share optimizer state; 0 when it does not say.
int64_t shard_group(std::string_view schedule) {
  size_t at = schedule.find("over ");
  if (at == std::string_view::npos) return 0;
  int64_t ranks = 0;
  std::string_view rest = schedule.substr(at + 5);
  auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), ranks);
  return error == std::errc{} ? ranks : 0;
}

// Operand formats of the blocks' GEMMs, by the row's word for its precision; nullopt where it is not priced.
std::optional<Products> products_published_as(std::string_view precision) {
  struct Word {
    std::string_view begins;
    Products products;
  };
  // Longer beginnings first. A plain "fp8" of Megatron's summaries is the recipe of its time: one scale for a tensor.
  constexpr std::array kWords{Word{"bf16", Products::as_held},
                              Word{"fp16", Products::as_held},
                              Word{"fp8-delayed", Products::fp8_delayed},
                              Word{"fp8(amp)", Products::fp8_delayed},  // Transformer Engine's default
                              Word{"fp8(TE)", Products::fp8_delayed},
                              Word{"fp8-mx", Products::mxfp8},
                              Word{"mxfp8", Products::mxfp8},
                              Word{"fp8-block128", Products::fp8_blocks},
                              Word{"fp8 (blockwise)", Products::fp8_blocks},
                              Word{"fp8-cs", Products::fp8_current},
                              Word{"fp8-rowwise", Products::fp8_current},
                              Word{"fp8-tensorwise", Products::fp8_current},
                              Word{"nvfp4", Products::nvfp4},
                              Word{"fp8", Products::fp8_current}};
  if (precision.find("grouped GEMM only") != std::string_view::npos) return std::nullopt;
  for (const Word& word : kWords)
    if (precision.starts_with(word.begins)) return word.products;
  return std::nullopt;
}

std::string lower_case(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

// "dp, tp or pp"
std::string always_told() {
  std::vector<std::string_view> names;
  for (const MeshAxis& axis : kMeshAxes)
    if (axis.always_told) names.push_back(axis.name());
  std::string_view last = names.back();
  names.pop_back();
  return fmt::format("{} or {}", fmt::join(names, ", "), last);
}

// Converts a row to a run and checks its requirements one after the other.
class RunConverter {
 public:
  RunConverter(const PublishedRun& row, const std::vector<SoftwareProfile>& profiles)
      : row_(row), profiles_(profiles) {}

  ConvertedRun run() {
    ConvertedRun out;
    out.why_not = fill();
    out.run = std::move(run_);
    return out;
  }

 private:
  std::string fill() {
    if (!row_.dense() && !row_.has_experts()) return "state-space layers are not expressed yet";
    std::optional<Products> products = products_published_as(row_.precision);
    if (!products) return fmt::format("precision {} is not supported yet", row_.precision);
    if (!row_.unreadable.empty()) return fmt::format("{} is not a number", row_.unreadable);
    if (!row_.layers || !row_.hidden || !row_.heads || !row_.seq) return "the model's shape is not given";
    if (!row_.mesh()) return fmt::format("{} is not given", always_told());
    // Models with experts, and pipelines, run in microbatches of one sequence where a source does not say.
    bool one_sequence = row_.has_experts() || row_.size(&MeshSection::pp).value_or(1) > 1;
    if (!row_.batch || (!row_.microbatch && !one_sequence)) return "the batch is not given";
    if (!row_.microbatch) assume("microbatch=1");
    if (ranks_as_double(*row_.mesh()) < 1 ||
        std::min({*row_.layers, *row_.hidden, *row_.heads, *row_.seq, *row_.batch, row_.microbatch.value_or(1)}) < 1)
      return "a size of the model, mesh or batch is 0";
    if (row_.dense() && row_.ep.value_or(1) > 1) return "expert parallelism of a model without experts";
    if (row_.model.find("LoRA") != std::string::npos) return "low-rank adapters are not supported yet";
    run_.machine = machine_for_gpu(row_.gpu);
    if (run_.machine.empty()) return fmt::format("no machine file for {}", row_.gpu);
    const SoftwareProfile* profile = profile_for_source(profiles_, row_.source, said());
    if (!profile) return fmt::format("no profile for '{}'", row_.source);
    run_.profile = *profile;
    run_.profile.products = *products;
    if (row_.has_experts()) {
      apply_words_of_experts(row_, run_.profile);
      run_.expert_imbalance = imbalance_published_as(row_);
      if (run_.expert_imbalance > 1) assume(fmt::format("imbalance={}", run_.expert_imbalance));
    }
    for (auto step : {&RunConverter::model, &RunConverter::mesh, &RunConverter::batch})
      if (std::string problem = (this->*step)(); !problem.empty()) return problem;
    recompute();
    run_.config.train.eval_every = 0;
    run_.config.checkpoint.every = 0;
    run_.config.train.precision = Precision::bf16;
    return {};
  }

  // Text that a profile's `matches` may match, beside the source.
  std::string said() const {
    return fmt::format("model={}; gpu={}; gpus={}; pp={}; precision={}; {} | {}", row_.model, row_.gpu,
                       row_.gpus.value_or(0), row_.size(&MeshSection::pp).value_or(1), row_.precision, row_.schedule,
                       row_.how_known);
  }

  void assume(std::string what) { run_.assumed.push_back(std::move(what)); }

  std::string model() {
    if (row_.has_experts()) {
      PublishedExperts published = experts_published_as(row_);
      run_.spec = std::move(published.spec);
      for (std::string& what : published.assumed) assume(std::move(what));
      return published.why_not;
    }
    const ModelDef* def = model_published_as(row_.arch);
    if (!def) return fmt::format("architecture {} is not supported yet", row_.arch);
    ModelSpec& m = run_.spec;
    m = def->defaults;
    m.architecture = def->name;
    m.layers = *row_.layers, m.hidden = *row_.hidden, m.heads = *row_.heads;
    m.kv_heads = row_.kv_heads.value_or(m.heads);
    m.head_dim = m.hidden / m.heads;
    m.ffn = row_.ffn ? *row_.ffn : default_ffn(def->name, m.hidden);
    if (!row_.ffn) assume(fmt::format("ffn={}", m.ffn));
    m.vocab = row_.vocab.value_or(51200);
    if (!row_.vocab) assume("vocab=51200");
    m.max_seq = *row_.seq;
    m.tied_head = def->defaults.tied_head || published_count_is_tied(m);
    if (!def->free_heads) m.kv_heads = m.heads;
    if (auto problems = problems_of(m); !problems.empty())
      return fmt::format("{}: {}", problems[0].fields[0], problems[0].got);
    return {};
  }

  // Whether the count of parameters that a source gives has the vocabulary in it once.
  bool published_count_is_tied(const ModelSpec& untied) const {
    if (!row_.params_b || !row_.vocab || !problems_of(untied).empty()) return false;
    double all = static_cast<double>(parameter_count(build_model(untied, {}, single_rank_mesh())));
    double head = static_cast<double>(untied.vocab * untied.hidden), published = *row_.params_b * 1e9;
    return std::abs(all - head - published) < std::abs(all - published);
  }

  std::string mesh() {
    MeshSection& m = run_.config.mesh;
    m = *row_.mesh();
    double ranks = ranks_as_double(m);
    if (ranks > static_cast<double>(kMaxRanks)) return fmt::format("a mesh of {:.0f} ranks", ranks);
    int64_t gpus = row_.gpus.value_or(ranks_of(m));
    if (ranks_of(m) != gpus) return fmt::format("{} is not {} devices", sizes_text(m, " · "), gpus);
    m.zero = std::min<int64_t>(row_.zero.value_or(0), 3);
    if (!row_.zero) assume("zero=0");
    if (m.zero > 0 && m.dp == 1 && m.cp == 1) m.zero = 0;
    // Pipelines that share gradients or weights (FSDP without resharding after forward, as in torchtitan's
    // parallelize_llama.py) reduce and gather them once in a step, not for every microbatch as ours would.
    if (m.zero >= 2 && m.pp > 1) m.zero = 1, assume("zero=1");
    int64_t group = m.zero > 0 ? shard_group(row_.schedule) : 0;
    if (group > 1 && m.dp % group == 0 && group < m.dp) m.zero_ranks = group;
    m.sequence_parallel = row_.seq_parallel == "yes" && m.tp > 1;
    if (m.tp > 1 && row_.seq_parallel.empty() && run_.profile.sequence_parallel)
      m.sequence_parallel = true, assume("sequence_parallel");
    if (m.cp > 1) m.context = ContextMode::ring;
    if (row_.has_experts())
      if (std::string problem = expert_mesh(m); !problem.empty()) return problem;
    if (run_.spec.heads % m.tp != 0) return fmt::format("{} heads on tp {}", run_.spec.heads, m.tp);
    return {};
  }

  std::string expert_mesh(MeshSection& m) {
    m.ep = std::max<int64_t>(row_.ep.value_or(1), 1);
    if (!row_.ep) assume("ep=1");
    m.etp = row_.etp.value_or(run_.profile.experts_whole ? 1 : 0);
    if (!row_.etp && m.tp > 1) assume(fmt::format("etp={}", m.etp > 0 ? m.etp : m.tp));
    // The rows that its exact sizes are shares of (cost/routed_rows.h).
    m.expert_dispatch = run_.spec.experts->per_token >= m.ep ? ExpertDispatch::gather : ExpertDispatch::rows;
    if (run_.spec.experts->count % m.ep != 0) return fmt::format("{} experts on ep {}", run_.spec.experts->count, m.ep);
    return expert_mesh_of(m).error;
  }

  // Sources that say "interleaved" and not in how many chunks: as many as the software makes by itself, else one layer
  // in each, or few, where stages have as many. Embedding and head count as a layer each where the layers alone cannot
  // be dealt out.
  int64_t chunks_of(int64_t pp) {
    if (row_.chunks || row_.schedule.find("interleaved") == std::string::npos) return row_.chunks.value_or(1);
    if (run_.profile.interleaved_chunks > 0) {
      assume(fmt::format("vpp={}", run_.profile.interleaved_chunks));
      return run_.profile.interleaved_chunks;
    }
    constexpr int64_t kMostAssumed = 8, kEnds = 2;
    int64_t units = run_.spec.layers % pp == 0 ? run_.spec.layers : run_.spec.layers + kEnds, chunks = 1;
    if (units % pp == 0)
      for (int64_t each = 1; each <= std::min(units / pp, kMostAssumed); ++each)
        chunks = units / pp % each == 0 ? each : chunks;
    assume(fmt::format("vpp={}", chunks));
    return chunks;
  }

  std::string batch() {
    BatchSection& b = run_.config.batch;
    const MeshSection& m = run_.config.mesh;
    b = {.sequences = *row_.batch, .microbatch = row_.microbatch.value_or(1), .seq = *row_.seq};
    if (b.sequences % (b.microbatch * m.dp) != 0)
      return fmt::format("a batch of {} is not a multiple of microbatch {} × dp {}", b.sequences, b.microbatch, m.dp);
    int64_t microbatches = b.sequences / (b.microbatch * m.dp), chunks = chunks_of(m.pp);
    PipelineSection& p = run_.config.pipeline;
    p.schedule = ScheduleKind::one_f_one_b;
    if (m.pp == 1) return {};
    std::string schedule = lower_case(row_.schedule);
    if (schedule.find("zb-2p") != std::string::npos || schedule.find("zb-h2") != std::string::npos)
      return "schedule ZB-2p is not supported yet";
    if (schedule.starts_with("dualpipe")) {
      p.schedule = ScheduleKind::dualpipev, p.chunks = 2;
      assume("schedule=dualpipev");
    } else if (schedule.starts_with("zbv"))
      p.schedule = ScheduleKind::zbv, p.chunks = 2;
    else if (schedule.starts_with("zb"))
      p.schedule = ScheduleKind::zb_h1;
    if (chunks > 1 && p.schedule == ScheduleKind::one_f_one_b) {
      if (microbatches % m.pp != 0)
        return fmt::format("interleaving needs microbatches in multiples of pp ({} and {})", microbatches, m.pp);
      p.schedule = ScheduleKind::interleaved, p.chunks = chunks;
    }
    return row_.has_experts() && p.schedule != ScheduleKind::dualpipev ? layers_of_experts() : layers_of_dense();
  }

  // Embedding and head count as a layer each where the layers alone cannot be dealt out, as in Megatron and DeepSpeed.
  std::string layers_of_dense() {
    int64_t stages = run_.config.mesh.pp * run_.config.pipeline.chunks;
    constexpr int64_t kEnds = 2;  // which may have stages of their own
    if (run_.spec.layers + kEnds < stages) return fmt::format("{} layers on {} stages", run_.spec.layers, stages);
    if (run_.spec.layers % stages == 0 || (run_.spec.layers + kEnds) % stages != 0) return {};
    run_.config.pipeline.layers = fmt::format("{}", fmt::join(layers_of_stages(run_.spec.layers, stages), ","));
    return {};
  }

  std::string layers_of_experts() {
    int64_t stages = run_.config.mesh.pp * run_.config.pipeline.chunks;
    std::vector<int64_t> layers = layers_of_stages(run_.spec.layers, stages);
    for (size_t i = 0; i < layers.size(); ++i)
      if (layers[i] < (i == 0 || i + 1 == layers.size() ? 0 : 1))
        return fmt::format("{} layers on {} stages", run_.spec.layers, stages);
    run_.config.pipeline.layers = fmt::format("{}", fmt::join(layers, ","));
    return {};
  }

  // "Selective" of Megatron computes attention's scores again, or the modules that it names; elsewhere it computes
  // cheap ops again.
  void recompute() {
    std::string wanted = row_.recompute.empty() ? run_.profile.recompute : row_.recompute;
    if (row_.recompute.empty()) assume("recompute=" + wanted);
    RecomputeMode& mode = run_.config.train.recompute;
    mode = RecomputeMode::none;
    if (wanted.starts_with("full")) mode = RecomputeMode::full;
    if (wanted.find("mla_up_proj") != std::string::npos && run_.spec.latent) {
      mode = RecomputeMode::latent;
      return;
    }
    if (wanted.starts_with("alternate") || (wanted.starts_with("selective") && run_.profile.selective_is_half)) {
      mode = RecomputeMode::alternate;
      return;
    }
    if (wanted.starts_with("selective")) {
      // Ours of all cheap ops would gather again what tensor-parallel ranks hold parts of, which Megatron's does not.
      if (wanted.find("moe_act") != std::string::npos && run_.config.mesh.tp == 1)
        mode = RecomputeMode::selective;
      else if (wanted.find("layernorm") != std::string::npos)
        mode = RecomputeMode::norms;
      else if (run_.profile.selective_is_attention)
        run_.profile.recompute_attention = run_.profile.attention == AttentionKernel::unfused;
      else
        mode = RecomputeMode::selective;
    }
  }

  const PublishedRun& row_;
  const std::vector<SoftwareProfile>& profiles_;
  ForeignRun run_;
};

}  // namespace

std::string machine_for_gpu(std::string_view gpu) {
  for (const DeviceName& device : kDevices)
    if (gpu.starts_with(device.begins)) return std::string(device.machine);
  return {};
}

ConvertedRun to_run_config(const PublishedRun& row, const std::vector<SoftwareProfile>& profiles) {
  return RunConverter(row, profiles).run();
}

}  // namespace sextant
