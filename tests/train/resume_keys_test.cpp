// Every key of the schema, tried: given, saved, resumed unchanged, and resumed without it, which is accepted or refused
// as the key's row says (Key::on_resume). A key that needs others beside it gets them from kBeside.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/resolve.h"
#include "config/schema.h"
#include "models/models.h"
#include "models/spec_fields.h"
#include "scratch_run.h"

namespace sextant {
namespace {

using Settings = std::vector<std::string>;

constexpr std::string_view kFile = "tiny-llama.toml";

// Keys that name a file, a device, another run or a whole model: tests of their own resume with them.
constexpr std::string_view kTriedElsewhere[] = {"name",
                                                "device",
                                                "model.preset",
                                                "model.from",
                                                "model.architecture",
                                                "pipeline.file",
                                                "data.train",
                                                "data.weights",
                                                "data.validation",
                                                "data.tokenizer",
                                                "data.text_key",
                                                "data.cache",
                                                "data.format",
                                                "checkpoint.at_end",
                                                "model.other_tokenizer",
                                                "checkpoint.resume",
                                                "checkpoint.accept_changed",
                                                "checkpoint.local_dir",
                                                "log.prometheus",
                                                "offload.path",
                                                "train.steps",
                                                "data.end_of_text",
                                                "data.stories_bytes",
                                                "train.threads",
                                                "offload.to",
                                                "optimizer.decay"};

// Options of which each architecture takes one value alone, or two only together: tests/config/saved_models_test.cpp.
constexpr std::string_view kNoChoiceAlone[] = {"model.experts.group_top", "model.experts.correction_bias",
                                               "model.experts.score", "model.out_bias"};

const std::map<std::string_view, Settings>& beside() {
  static const std::map<std::string_view, Settings> all{
      {"mesh.ep", {"mesh.dp=2"}},
      {"mesh.etp", {"mesh.tp=2"}},
      {"mesh.expert_capacity", {"mesh.dp=2", "mesh.ep=2"}},
      {"mesh.zero_ranks", {"mesh.dp=2", "mesh.zero=1"}},
      {"mesh.ring_order", {"mesh.cp=2"}},
      {"pipeline.schedule", {"mesh.pp=2"}},
      {"pipeline.chunks", {"pipeline.schedule=breadth-first"}},
      {"pipeline.layers", {"mesh.pp=2"}},
      {"pipeline.deferred_gradients", {"mesh.pp=2", "pipeline.schedule=zb-h1"}},
      {"optimizer.decay", {"optimizer.schedule=wsd"}},
      {"optimizer.schedule", {}},
      {"optimizer.momentum", {"optimizer.name=sgd"}},
      {"optimizer.nesterov", {"optimizer.name=sgd", "optimizer.momentum=0.9"}},
      {"optimizer.beta2_decay", {"optimizer.name=adafactor"}},
      {"optimizer.update_clip", {"optimizer.name=adafactor"}},
      {"optimizer.min_rms", {"optimizer.name=adafactor"}},
      {"optimizer.ns_steps", {"optimizer.name=muon"}},
      {"optimizer.adjust_lr", {"optimizer.name=muon"}},
      {"optimizer.adamw_lr_ratio", {"optimizer.name=muon"}},
      {"train.expert_gradients", {"batch.sequences=1"}},
      {"train.loss_scale.growth_interval", {"train.loss_scale.initial=8"}},
      {"train.loss_scale.growth_factor", {"train.loss_scale.initial=8"}},
      {"train.loss_scale.backoff", {"train.loss_scale.initial=8"}},
      {"train.loss_scale.minimum", {"train.loss_scale.initial=8"}},
      {"train.spike.action", {"checkpoint.every=1"}},
      {"train.spike.most_skips", {"train.spike.action=skip"}},
      {"train.spike.rewind_steps", {"train.spike.action=rewind", "checkpoint.every=1"}},
      {"train.spike.skip_steps", {"train.spike.action=rewind", "checkpoint.every=1"}},
      {"train.spike.most_rewinds", {"train.spike.action=rewind", "checkpoint.every=1"}},
      {"train.spike.rate_factor", {"train.spike.action=lower_rate"}},
      {"train.spike.rate_steps", {"train.spike.action=lower_rate"}},
      {"train.eval_sequences", {"train.eval_every=1"}},
      {"offload.weights", {"offload.optimizer=true", "train.precision=bf16"}},
      {"offload.working_weights", {"offload.optimizer=true"}},
      {"offload.activations", {"model.layers=4"}},
      {"checkpoint.keep_every", {"checkpoint.every=1"}},
      {"checkpoint.keep_best", {"checkpoint.every=1", "train.eval_every=1"}},
      {"checkpoint.replication", {"checkpoint.local_every=1"}},
      {"checkpoint.replication_jump", {"checkpoint.local_every=1", "mesh.dp=2"}},
      {"batch.seq", {"model.max_seq=64"}},
      {"train.check_microbatch_every", {"mesh.dp=2"}},
      {"log.tensor_stats_format", {"log.tensor_stats_every=1"}},
      {"log.grad_noise_scale", {"mesh.dp=2"}},
      {"model.temperature_strength", {"model.temperature_positions=8"}},
      {"model.full_attention_first", {"model.window=8"}},
      {"model.full_attention_every", {"model.window=8"}},
      {"model.experts.keep_groups", {"model.experts.groups=2"}},
      {"model.experts.drop_policy", {"model.experts.drop_above=1"}},
      {"model.mtp.loss_weight", {"model.mtp.depths=1"}},
  };
  return all;
}

Settings beside_of(std::string_view key) {
  if (auto found = beside().find(key); found != beside().end()) return found->second;
  if (key.starts_with("model.rope_scaling.") && key != "model.rope_scaling.factor") {
    std::string type = key.find("_freq") != key.npos ? "llama3" : key.ends_with(".type") ? "" : "yarn";
    Settings more{"model.rope_scaling.factor=2"};
    if (!type.empty()) more.push_back("model.rope_scaling.type=" + type);
    return more;
  }
  return {};
}

Settings model_of(const ModelDef& def, const std::string& hidden) {
  Settings settings{fmt::format("model.architecture={}", def.name), "model.layers=2", "model.hidden=" + hidden,
                    "model.heads=4"};
  if (def.has_experts) settings.insert(settings.end(), {"model.experts.count=4", "model.experts.per_token=2"});
  if (def.takes("experts.groups"))
    settings.insert(settings.end(),
                    {"model.experts.groups=1", "model.experts.keep_groups=1", "model.experts.group_top=1"});
  if (!def.free_heads) settings.emplace_back("model.kv_heads=4");
  if (!def.free_ffn) settings.push_back(fmt::format("model.ffn={}", 4 * std::stoi(hidden)));
  if (def.takes("latent"))
    settings.insert(settings.end(),
                    {"model.kv_heads=4", "model.head_dim=24", "model.latent.q_rank=16", "model.latent.kv_rank=16",
                     "model.latent.rope_dim=8", "model.latent.value_dim=16"});
  return settings;
}

std::vector<std::string> values_of(const Key& key) {
  std::vector<std::string> values;
  for (std::string_view word : words_of(key)) values.emplace_back(word);
  if (key.kind == Kind::flag) values = {"true", "false"};
  if (key.kind == Kind::integer) values = {"2", "1", "3", "4", "8", "32", "48", "96", "257", "600", "100000"};
  if (key.kind == Kind::number) values = {"0.5", "2", "0.25", "16", "1e-6", "0.9", "100", "-0.5"};
  if (key.name == "model.vocab") values = {"600"};
  if (key.name == "optimizer.warmup") values = {"1"};
  if (key.name == "optimizer.name") values = {"lion"};
  if (key.name == "pipeline.layers") values = {"1,1"};
  if (key.name == "log.on_event") values = {"true"};
  return values;
}

struct Tried {
  Settings base, with_key;
};

// Of a field that weights depend on, a value that says what holds without it is none.
bool makes_a_difference(const Key& key, const RunConfig& with, const RunConfig& without) {
  if (key.get(with) == key.get(without)) return false;
  if (!key.model_field || key.on_resume() == OnResume::accepted) return true;
  return !function_differences(resolve_model(with), resolve_model(without)).empty();
}

// Settings with the key, whose value is another than without it, that config and model take.
std::optional<Tried> settings_with(const ScratchRun& scratch, const Key& key) {
  const Settings more = beside_of(key.name);
  auto config_of = [&](const Settings& settings) -> std::optional<RunConfig> {
    try {
      return scratch.config(kFile, settings);
    } catch (const UserError&) {
      return std::nullopt;
    }
  };
  for (const ModelDef* def : all_models())
    for (const char* hidden : {"64", "48"}) {
      Settings base = model_of(*def, hidden);
      base.insert(base.end(), {"batch.sequences=2", "batch.microbatch=1", "batch.seq=32", "optimizer.warmup=0",
                               "train.eval_every=0", "train.check_replicas_every=0"});
      base.insert(base.end(), more.begin(), more.end());
      std::optional<RunConfig> without = config_of(base);
      if (!without) continue;
      for (const std::string& value : values_of(key)) {
        Settings given = base;
        given.push_back(fmt::format("{}={}", key.name, value));
        std::optional<RunConfig> with = config_of(given);
        if (with && makes_a_difference(key, *with, *without)) return Tried{base, given};
      }
    }
  return std::nullopt;
}

std::optional<std::string> refusal(const ScratchRun& scratch, Settings settings, int steps) {
  settings.push_back(fmt::format("train.steps={}", steps));
  try {
    scratch.run("run", settings, kFile);
    return std::nullopt;
  } catch (const UserError& error) {
    return error.what();
  }
}

void try_key(const Key& key) {
  if (std::ranges::count(kTriedElsewhere, key.name) + std::ranges::count(kNoChoiceAlone, key.name) > 0) return;
  ScratchRun scratch("resume-keys");
  std::optional<Tried> tried = settings_with(scratch, key);
  ASSERT_TRUE(tried) << key.name << ": no value that a config takes: add what it needs to beside()";
  const std::string shown = tried->with_key.back();
  ASSERT_EQ(refusal(scratch, tried->with_key, 1), std::nullopt) << shown;
  EXPECT_EQ(refusal(scratch, tried->with_key, 2), std::nullopt) << shown << ": resumed unchanged";
  std::optional<std::string> without = refusal(scratch, tried->base, 3);
  EXPECT_EQ(without.has_value(), key.on_resume() == OnResume::refused)
      << shown << ": resumed without it: " << without.value_or("accepted");
}

// In parts, for ctest's shards.
class ResumeKeys : public testing::TestWithParam<size_t> {};
constexpr size_t kParts = 6;
INSTANTIATE_TEST_SUITE_P(OfTheSchema, ResumeKeys, testing::Range<size_t>(0, kParts));

TEST_P(ResumeKeys, ResumeUnchangedAndAsTheirRowsSayChanged) {
  for (size_t i = GetParam(); i < schema().size(); i += kParts) try_key(schema()[i]);
}

}  // namespace
}  // namespace sextant
