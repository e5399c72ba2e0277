#include "train/run_checkpoint.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "ckpt/convert.h"
#include "ckpt/model_directory.h"
#include "ckpt/model_weights.h"
#include "ckpt/staged_directory.h"
#include "models/hf_config.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kOptimizerFile = "optimizer.safetensors";

void save_optimizer(const Bound& bound, const fs::path& file) {
  std::vector<TensorSpec> specs;
  for (const Value& value : bound.program().values)
    if (value.kind == ValueKind::state) specs.push_back({value.path, file_dtype_of(value.dtype), value.shape});
  SafetensorsWriter writer(file, plan_safetensors(specs));
  std::vector<std::byte> bytes;
  for (const TensorSpec& spec : specs) {
    const Value& value = bound.program().at(spec.name);
    bytes.resize(static_cast<size_t>(value.local_bytes().n));
    bound.read(value, bytes);
    writer.write(spec.name, bytes);
  }
  writer.finish();
}

void load_optimizer(Bound& bound, const fs::path& file) {
  SafetensorsFile source(file);
  for (const Value& value : bound.program().values) {
    if (value.kind != ValueKind::state) continue;
    TensorView view = source.tensor(value.path);
    if (!(view.shape == value.shape) || view.dtype != file_dtype_of(value.dtype))
      throw UserError({.place = view.place, .got = fmt::format("{} {}", name_of(view.dtype), view.shape.text()),
                       .expected = fmt::format("{} {}", name_of(file_dtype_of(value.dtype)), value.shape.text())});
    bound.write(value, view.bytes);
  }
}

std::string state_json(const RunState& state) {
  nlohmann::ordered_json json{{"format", 1}, {"step", state.step}, {"samples", state.samples}, {"tokens", state.tokens}};
  return json.dump(2) + "\n";
}

RunState state_from_json(const fs::path& file) {
  nlohmann::json json = nlohmann::json::parse(read_file(file), nullptr, false);
  RunState state;
  auto read = [&](const char* key, int64_t& into) {
    if (!json.is_object() || !json.contains(key) || !json[key].is_number_integer() || json[key].get<int64_t>() < 0)
      throw UserError({.place = file.string(), .got = fmt::format("no usable \"{}\"", key),
                       .expected = "a run_state.json as Sextant writes it"});
    into = json[key].get<int64_t>();
  };
  read("step", state.step);
  read("samples", state.samples);
  read("tokens", state.tokens);
  return state;
}

void refuse_other_model(const fs::path& directory, ModelSpec spec) {
  std::string place = (directory / "config.json").string();
  ModelSpec saved = spec_from_hf_config(read_file(place), place);
  // Which tokens begin and end a text is the tokenizer's business and may be known to one side only; how weights were drawn
  // no longer matters.
  spec.bos_token = saved.bos_token;
  spec.eos_tokens = saved.eos_tokens;
  spec.init_std = saved.init_std;
  if (!(spec == saved))
    throw UserError({.place = place, .got = "this checkpoint holds another model than the config describes",
                     .expected = "the same [model] as when the run began",
                     .hint = "choose another --out, or go back to the config.toml in the run's directory"});
}

// What transformers' AutoTokenizer needs beside tokenizer.json.
std::string tokenizer_config(const Tokenizer& tokenizer, const ModelSpec& spec) {
  nlohmann::ordered_json json{{"tokenizer_class", "PreTrainedTokenizerFast"}, {"model_max_length", spec.max_seq}};
  if (auto eos = tokenizer.eos_id()) json["eos_token"] = std::string(tokenizer.token_bytes(*eos));
  return json.dump(2) + "\n";
}

}  // namespace

void save_run_checkpoint(const fs::path& directory, const CheckpointContent& content) {
  if (directory.has_parent_path()) {
    std::error_code error;
    fs::create_directories(directory.parent_path(), error);
    if (error) throw RunError(directory.parent_path().string(), fmt::format("cannot create: {}", error.message()));
  }
  StagedDirectory staged(directory, Existing::replace);
  ModelSpec spec = content.spec;
  if (content.tokenizer && content.tokenizer->eos_id() && spec.eos_tokens.empty())
    spec.eos_tokens = {static_cast<int64_t>(*content.tokenizer->eos_id())};
  write_file_atomically(staged.path() / "config.json", hf_config_json(spec));
  if (content.tokenizer) {
    write_file_atomically(staged.path() / "tokenizer.json", content.tokenizer->to_json());
    write_file_atomically(staged.path() / "tokenizer_config.json", tokenizer_config(*content.tokenizer, spec));
  }
  save_weights(content.bound, content.spec, staged.path());
  save_optimizer(content.bound, staged.path() / kOptimizerFile);
  write_file_atomically(staged.path() / kRunStateFile, state_json(content.state));
  staged.commit();
}

RunState load_run_checkpoint(const fs::path& directory, Bound& bound, const ModelSpec& spec) {
  refuse_other_model(directory, spec);
  RunState state = state_from_json(directory / kRunStateFile);
  load_weights(bound, spec, WeightsReader(directory));
  load_optimizer(bound, directory / kOptimizerFile);
  return state;
}

}  // namespace sextant
