#include "train/save/run_checkpoint.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "base/path_error.h"
#include "ckpt/manifest.h"
#include "ckpt/model_directory.h"
#include "ckpt/model_weights.h"
#include "ckpt/staged_directory.h"
#include "models/hf_config.h"
#include "models/spec_fields.h"
#include "text/tokenizer_files.h"
#include "train/save/optimizer_file.h"
#include "train/save/share_hashing.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

nlohmann::ordered_json spike_json(const SpikeState& spike) {
  nlohmann::ordered_json json{
      {"rewinds", spike.rewinds}, {"lowered_from", spike.lowered_from}, {"lowered_through", spike.lowered_through}};
  // A string of four words for each step: a file of one number a line is no pleasure to read.
  for (const SpikeState::RecentStep& recent : spike.recent)
    json["recent"].push_back(
        fmt::format("{} {} {} {}", recent.step, recent.loss, recent.grad_norm, recent.skipped ? "skipped" : "applied"));
  return json;
}

}  // namespace

std::string run_state_json(const RunState& state) {
  nlohmann::ordered_json json{
      {"format", state.identity ? 2 : 1}, {"step", state.step}, {"samples", state.samples}, {"tokens", state.tokens}};
  for (const SkippedSamples& skipped : state.skipped)
    json["skipped_samples"].push_back({{"step", skipped.step}, {"first", skipped.first}, {"count", skipped.count}});
  if (state.spike != SpikeState{}) json["spike"] = spike_json(state.spike);
  if (state.validation_loss) json["validation_loss"] = *state.validation_loss;
  if (state.identity) {
    json["tokenizer"] = state.identity->tokenizer;
    json["data"] = state.identity->data;
    if (state.identity->model) json["model"] = *state.identity->model;
    json["config"] = state.identity->config;
  }
  return json.dump(2) + "\n";
}

namespace {

RunIdentity identity_from_json(const nlohmann::json& json, const fs::path& file) {
  auto refuse = [&](std::string_view key) {
    throw UserError({.place = file.string(),
                     .got = fmt::format("no usable \"{}\"", key),
                     .expected = "a run_state.json as Sextant writes it"});
  };
  for (const char* key : {"tokenizer", "data"})
    if (!json.contains(key) || !json[key].is_string()) refuse(key);
  if (!json.contains("config") || !json["config"].is_object()) refuse("config");
  RunIdentity identity{.tokenizer = json["tokenizer"], .data = json["data"], .model = {}, .config = {}};
  if (json.contains("model")) {
    if (!json["model"].is_string()) refuse("model");
    identity.model = json["model"].get<std::string>();
  }
  for (const auto& [key, value] : json["config"].items()) {
    if (!value.is_string()) refuse("config." + key);
    identity.config.emplace(key, value.get<std::string>());
  }
  // Versions without the key held the last tokens out.
  identity.config.emplace("data.validation_split", "\"tail\"");
  return identity;
}

// A number of a run_state.json that is a count.
int64_t count_in(const nlohmann::json& json, const char* key, const fs::path& file) {
  if (!json.is_object() || !json.contains(key) || !json[key].is_number_integer() || json[key].get<int64_t>() < 0)
    throw UserError({.place = file.string(),
                     .got = fmt::format("no usable \"{}\"", key),
                     .expected = "a run_state.json as Sextant writes it"});
  return json[key].get<int64_t>();
}

std::vector<SkippedSamples> skipped_from_json(const nlohmann::json& json, const fs::path& file) {
  std::vector<SkippedSamples> all;
  for (const nlohmann::json& one : json)
    all.push_back({count_in(one, "step", file), count_in(one, "first", file), count_in(one, "count", file)});
  return all;
}

SpikeState spike_from_json(const nlohmann::json& json, const fs::path& file) {
  SpikeState spike{.recent = {},
                   .lowered_from = count_in(json, "lowered_from", file),
                   .lowered_through = count_in(json, "lowered_through", file),
                   .rewinds = count_in(json, "rewinds", file)};
  if (!json.contains("recent")) return spike;
  for (const nlohmann::json& line : json["recent"]) {
    SpikeState::RecentStep recent;
    std::string word;
    std::istringstream words(line.is_string() ? line.get<std::string>() : "");
    words >> recent.step >> recent.loss >> recent.grad_norm >> word;
    recent.skipped = word == "skipped";
    bool in_order = spike.recent.empty() || spike.recent.back().step < recent.step;
    if (!words || !in_order || (word != "skipped" && word != "applied"))
      throw UserError({.place = file.string(),
                       .got = "no usable \"spike.recent\"",
                       .expected = "a run_state.json as Sextant writes it"});
    spike.recent.push_back(recent);
  }
  return spike;
}

}  // namespace

RunState parse_run_state(std::string_view text, const fs::path& file) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  RunState state;
  state.step = count_in(json, "step", file);
  state.samples = count_in(json, "samples", file);
  state.tokens = count_in(json, "tokens", file);
  if (json.contains("skipped_samples")) state.skipped = skipped_from_json(json["skipped_samples"], file);
  if (json.contains("spike")) state.spike = spike_from_json(json["spike"], file);
  if (json.contains("validation_loss") && json["validation_loss"].is_number())
    state.validation_loss = json["validation_loss"].get<double>();
  // Every step reads at least one sample, and every sample has at least one token; more than this no run reads in its
  // life.
  constexpr int64_t kMost = int64_t{1} << 60;
  bool in_range = std::ranges::all_of(state.skipped, [](const SkippedSamples& s) { return s.count <= kMost / 1024; });
  if (!in_range || state.step > state.samples || state.samples > kMost ||
      state.samples - state.skipped_samples() > state.tokens || state.tokens > kMost)
    throw UserError(
        {.place = file.string(),
         .got = fmt::format("step {} after {} samples and {} tokens", state.step, state.samples, state.tokens),
         .expected = "a run_state.json as Sextant writes it",
         .hint = "the file is damaged: go on from an older checkpoint (checkpoint.resume), or start afresh in another "
                 "--out"});
  if (json.contains("format") && json["format"] == 2) state.identity = identity_from_json(json, file);
  return state;
}

namespace {

// UserError where these weights are those of another model: each field that differs, with both values.
void refuse_other_model(const fs::path& directory, const ModelSpec& spec) {
  std::string place = (directory / "config.json").string();
  std::string text;
  for (const FieldDifference& field : function_differences(spec, spec_from_hf_config(read_file(place), place)))
    text += fmt::format("{}{} {} differs from the checkpoint's {}", text.empty() ? "" : ", ", field.name, field.first,
                        field.second);
  if (text.empty()) return;
  throw UserError({.place = place,
                   .got = text,
                   .expected = "the same [model] as when the run began",
                   .hint = "choose another --out, or go back to the config.toml in the run's directory"});
}

// Content of tokenizer_config.json, which AutoTokenizer of transformers needs in addition to the tokenizer itself.
std::string tokenizer_config(const Tokenizer& tokenizer, const ModelSpec& spec) {
  bool sentencepiece = tokenizer.to_files().front().name == kSentencePieceFile;
  nlohmann::ordered_json json{{"tokenizer_class", sentencepiece ? "LlamaTokenizer" : "PreTrainedTokenizerFast"},
                              {"model_max_length", spec.max_seq}};
  if (sentencepiece) {
    json["add_bos_token"] = !tokenizer.prefix_ids().empty();
    json["add_eos_token"] = !tokenizer.suffix_ids().empty();
  }
  if (auto eos = tokenizer.eos_id()) json["eos_token"] = std::string(tokenizer.token_bytes(*eos));
  return json.dump(2) + "\n";
}

}  // namespace

namespace {

// One rank writes these files for all ranks: everything but the tensors.
void write_descriptions(const fs::path& directory, const CheckpointContent& content) {
  ModelSpec spec = content.spec;
  const ModelFiles& files = content.files;
  // The model's own ids belong to its own tokenizer.
  bool own = std::ranges::any_of(kTokenizerSources, [&](const char* name) { return files.has_tokenizer_file(name); });
  if (content.tokenizer && content.tokenizer->eos_id() && (spec.eos_tokens.empty() || !own))
    spec.eos_tokens = {static_cast<int64_t>(*content.tokenizer->eos_id())};
  write_file_atomically(directory / "config.json",
                        hf_config_json(spec, files.config, dtype_of(content.dtype).value(), content.dropout));
  write_model_files(files, directory);
  if (content.tokenizer && !own)
    for (const TokenizerFile& file : content.tokenizer->to_files())
      write_file_atomically(directory / file.name, file.content);
  if (content.tokenizer && !files.has_tokenizer_file("tokenizer_config.json"))
    write_file_atomically(directory / "tokenizer_config.json", tokenizer_config(*content.tokenizer, spec));
  write_file_atomically(directory / kRunStateFile, run_state_json(content.state));
}

void create_parent(const fs::path& directory) {
  if (!directory.has_parent_path()) return;
  std::error_code error;
  fs::create_directories(directory.parent_path(), error);
  if (error) throw RunError(directory.parent_path().string(), fmt::format("cannot create: {}", error.message()));
}

// The work, and what went wrong with it; that another rank has ended the run, and our own mistakes, are not for this.
std::string failure_of(const std::function<void()>& work) {
  try {
    work();
    return "";
  } catch (const RunEnded&) {
    throw;
  } catch (const Bug&) {
    throw;
  } catch (const std::bad_alloc&) {
    return "out of memory";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

bool has_this_tokenizer(const fs::path& directory, const Tokenizer& tokenizer) {
  std::optional<fs::path> path = find_tokenizer(directory);
  if (!path) return false;
  try {
    return Tokenizer(read_tokenizer_file(*path)).to_files() == tokenizer.to_files();
  } catch (const UserError&) {
    return false;  // of a kind that cannot have tokenized our data
  }
}

}  // namespace

ModelFiles files_to_keep(const fs::path& directory, const Tokenizer* tokenizer) {
  ModelFiles files = read_model_files(directory);
  if (!tokenizer) return files;
  if (!has_this_tokenizer(directory, *tokenizer)) {
    files.tokenizer.clear();
    files.generation.clear();  // its ids are those of the other tokenizer
  }
  return files;
}

std::string save_run_checkpoint(const fs::path& directory, const CheckpointContent& content, HostGroup& group) {
  std::optional<StagedDirectory> staged;
  std::string failure = group.first_text(failure_of([&] {
    if (!group.leads()) return;
    create_parent(directory);
    staged.emplace(directory, Existing::replace);
    write_descriptions(staged->path(), content);
  }));
  if (!failure.empty()) return failure;
  fs::path place = group.from_leader(staged ? staged->path().string() : std::string());
  Share share = group.size() == 1 ? Share::whole : Share::part;
  std::vector<TensorSpec> states = optimizer_tensors(content.values, content.spec, content.optimizer, group);
  failure = group.first_text(failure_of([&] {
    WeightsForm form{.dtype_of = [&](std::string_view) { return content.dtype; }, .experts = content.experts};
    save_weights(content.values, content.spec, place, form, share);
    if (content.dtype != FileDType::f32)
      save_master_weights(content.values, content.spec, place / kMasterWeightsFile, share);
    save_optimizer(content.values, states, place / kOptimizerFile, share);
  }));  // and every rank has flushed its part
  if (!failure.empty()) return failure;
  content.values.verify_checksums();
  std::string listed;
  failure = group.first_text(failure_of([&] {
    if (staged) listed = manifest_json(list_files(place));
  }));
  if (!failure.empty()) return failure;
  Manifest manifest = parse_manifest(group.from_leader(listed), kManifestFile);
  failure = group.first_text(failure_of([&] {
    add_hashes(place, manifest, share_among(group));
    if (staged) write_file_atomically(place / kManifestFile, manifest_json(manifest));
  }));
  if (!failure.empty()) return failure;
  // Nobody goes on, and perhaps looks for it, before it is there.
  return group.first_text(failure_of([&] {
    if (staged) staged->commit();
  }));
}

int64_t RunState::skipped_samples() const {
  int64_t sum = 0;
  for (const SkippedSamples& one : skipped) sum += one.count;
  return sum;
}

RunState read_run_state(const fs::path& directory) {
  return parse_run_state(read_file(directory / kRunStateFile), directory / kRunStateFile);
}

RunState load_run_checkpoint(const fs::path& directory, Bound& bound, const ModelSpec& spec,
                             const Optimizer& optimizer) {
  refuse_other_model(directory, spec);
  RunState state = read_run_state(directory);
  fs::path master = directory / kMasterWeightsFile;
  load_weights(bound, spec, WeightsReader(is_there(master) ? master : directory));
  load_optimizer(bound, spec, optimizer, directory / kOptimizerFile);
  return state;
}

}  // namespace sextant
