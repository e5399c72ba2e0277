#include "cuda/operand_dtypes.h"

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "checkout.h"
#include "config/load.h"
#include "models/models.h"
#include "optim/optimizer.h"
#include "run/programs.h"
#include "run/resolve_spec.h"
#include "targets/cuda/cuda_target.h"

namespace sextant {

namespace {

using Settings = std::vector<std::string>;
using Input = std::pair<const OpDef*, size_t>;

// Runs that between them have every op that a trained model can have.
std::vector<std::pair<std::string, Settings>> runs() {
  std::vector<std::pair<std::string, Settings>> runs;
  for (const OptimizerDef* optimizer : all_optimizers())
    runs.push_back({"tiny-llama.toml", {"optimizer.name=" + std::string(optimizer->name)}});
  runs.push_back({"tiny-llama.toml", {"optimizer.name=sgd", "optimizer.momentum=0"}});
  runs.push_back({"tiny-llama.toml", {"optimizer.state=bf16"}});
  runs.push_back({"tiny-llama.toml", {"optimizer.state=int8"}});
  for (const ModelDef* model : all_models())
    runs.push_back({"tiny-gpt2.toml", {"model.architecture=" + std::string(model->name)}});
  for (const char* option :
       {"model.qk_norm=true", "model.qkv_bias=true", "train.spike.action=skip", "train.reproducible=mesh"})
    runs.push_back({"tiny-llama.toml", {option}});
  for (const char* file : {"tiny-llama.toml", "tiny-gpt2.toml"})
    for (const Settings& mesh : {Settings{"optimizer.z_loss=0.001"},
                                 {"model.dropout=0.1"},
                                 {"mesh.dp=2", "mesh.zero=3"},
                                 {"mesh.tp=4"},
                                 {"mesh.cp=2"},
                                 {"mesh.pp=2", "pipeline.schedule=zbv", "pipeline.chunks=2", "model.layers=4"}})
      runs.push_back({file, mesh});
  for (const Settings& experts : {Settings{"model.experts.z_loss=0.001"},
                                  {"model.experts.balance_loss=0.01", "model.experts.balance_scope=sequence"},
                                  {"model.experts.drop_above=1"},
                                  {"mesh.dp=4", "mesh.ep=4", "mesh.expert_capacity=1", "batch.microbatch=2"}})
    runs.push_back({"tiny-moe.toml", experts});
  runs.push_back({"tiny-moe.toml", {"model.architecture=gpt_oss", "mesh.dp=4", "mesh.ep=4", "batch.microbatch=2"}});
  // With sequences longer than a step of the queries' growth, in every second layer.
  runs.push_back(
      {"tiny-moe.toml", {"model.architecture=llama4", "model.no_rope_every=2", "model.temperature_positions=8"}});
  for (const char* precision : {"train.precision=fp8", "train.precision=fp8-block"})
    runs.push_back({"tiny-llama.toml", {precision, "log.tensor_stats_every=1"}});
  runs.push_back({"tiny-llama.toml", {"train.precision=fp16"}});
  return runs;
}

void record(const Program& program, std::map<Input, bool>& f32) {
  for (const Region& region : program.regions)
    for (const Op& op : region.ops)
      for (size_t i = 0, order = 0; i < op.inputs.size(); ++i) {
        if (op.inputs[i] == kNoValue) continue;
        if (op.attrs.has("in_order") && program.values[op.inputs[i]].path.find(".order.") != std::string::npos) {
          ++order;  // examples have no order of slots among their inputs
          continue;
        }
        bool here = program.values[op.inputs[i]].dtype == DType::f32;
        auto [at, first] = f32.emplace(Input{op.def, i - order}, here);
        at->second = at->second && here;
      }
}

std::map<Input, bool> find() {
  std::map<Input, bool> f32;
  for (auto& [file, settings] : runs()) {
    Settings all{"train.precision=bf16", "device=cuda"};
    all.insert(all.end(), settings.begin(), settings.end());
    RunConfig run = load_config(std::filesystem::path(checkout::kSources) / "configs" / file, all);
    RunPrograms programs = lower_run(run, resolve_spec(run), cuda_target(Determinism::fast), Checks::none).programs;
    for (const auto* of : {&programs.train, &programs.measure})
      for (const Program& program : *of) record(program, f32);
  }
  return f32;
}

}  // namespace

bool stays_f32(const OpDef& def, size_t input) {
  static const std::map<Input, bool> f32 = find();
  auto at = f32.upper_bound({&def, input});  // of an op with any number of inputs: the last that a run gave it
  if (at == f32.begin() || (--at)->first.first != &def) return false;
  return at->second;
}

}  // namespace sextant
