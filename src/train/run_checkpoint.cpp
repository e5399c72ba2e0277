#include "train/run_checkpoint.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "ckpt/convert.h"
#include "ckpt/model_directory.h"
#include "ckpt/model_weights.h"
#include "ckpt/slices.h"
#include "ckpt/staged_directory.h"
#include "models/hf_config.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kOptimizerFile = "optimizer.safetensors";

// The state of a parameter, by the names that the update gives its values.
constexpr std::string_view kStateNames[] = {"adam_m.", "adam_v."};

// The low halves of weights are states too, but in files the weights are whole.
bool is_saved(const Value& value) {
  return value.kind == ValueKind::state && std::any_of(std::begin(kStateNames), std::end(kStateNames), [&](std::string_view name) {
           return value.path.starts_with(name);
         });
}

// Every state of the model, whichever rank holds it.
std::vector<TensorSpec> optimizer_tensors(const ModelSpec& spec) {
  std::vector<TensorSpec> specs;
  for (const Value& value : build_model(spec, {.seq = 1}, single_rank_mesh()).values)
    if (value.kind == ValueKind::parameter)
      for (std::string_view name : kStateNames)
        specs.push_back({std::string(name) + value.path, file_dtype_of(value.dtype), value.shape});
  return specs;
}

void save_optimizer(const StateView& values, const ModelSpec& spec, const fs::path& file, Share share) {
  SafetensorsWriter writer(file, plan_safetensors(optimizer_tensors(spec)), share);
  std::vector<std::byte> local;
  for (const Value& value : values.program().values) {
    if (!is_saved(value) || !is_writer(values, value)) continue;
    local.resize(static_cast<size_t>(value.local_bytes().n));
    values.read(value, local);
    int64_t width = value.shape.rank() == 2 ? value.shape[1] : 1, element = size_of(value.dtype);
    for (const Piece& piece : held_pieces(values, value)) {
      // Whole rows that lie one behind the other are one write.
      bool dense = piece.columns == width && piece.stride == width;
      int64_t lines = dense ? 1 : piece.rows, length = dense ? piece.rows * width : piece.columns;
      for (int64_t line = 0; line < lines; ++line)
        writer.write_elements(value.stored_path(), (piece.row + line) * width + piece.column,
                              std::span(local).subspan(static_cast<size_t>((piece.at + line * piece.stride) * element),
                                                       static_cast<size_t>(length * element)));
    }
  }
  writer.finish();
}

void load_optimizer(Bound& bound, const ModelSpec& spec, const fs::path& file) {
  SafetensorsFile source(file);
  std::map<std::string, GlobalShape> whole;
  for (const TensorSpec& tensor : optimizer_tensors(spec)) whole.emplace(tensor.name, tensor.shape);
  std::vector<std::byte> local;
  for (const Value& value : bound.program().values) {
    if (!is_saved(value)) continue;
    TensorView view = source.tensor(value.stored_path());
    if (!(view.shape == whole.at(value.stored_path())) || view.dtype != file_dtype_of(value.dtype))
      throw UserError({.place = view.place, .got = fmt::format("{} {}", name_of(view.dtype), view.shape.text()),
                       .expected = fmt::format("{} {}", name_of(file_dtype_of(value.dtype)), whole.at(value.stored_path()).text())});
    local.assign(static_cast<size_t>(value.local_bytes().n), std::byte{0});
    int64_t width = value.shape.rank() == 2 ? value.shape[1] : 1, element = size_of(value.dtype);
    for (const Piece& piece : held_pieces(bound, value))
      for (int64_t line = 0; line < piece.rows; ++line)
        std::memcpy(local.data() + (piece.at + line * piece.stride) * element,
                    view.bytes.data() + ((piece.row + line) * width + piece.column) * element,
                    static_cast<size_t>(piece.columns * element));
    bound.write(value, local);
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
  // Every step reads at least one sample, and every sample has at least one token; more than this no run reads in its life.
  constexpr int64_t kMost = int64_t{1} << 60;
  if (state.step > state.samples || state.samples > state.tokens || state.tokens > kMost)
    throw UserError({.place = file.string(),
                     .got = fmt::format("step {} after {} samples and {} tokens", state.step, state.samples, state.tokens),
                     .expected = "a run_state.json as Sextant writes it",
                     .hint = "the file is damaged: go on from an older checkpoint (checkpoint.resume), or start afresh in another --out"});
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

namespace {

// What one rank writes for all: everything but the tensors.
void write_descriptions(const fs::path& directory, const CheckpointContent& content) {
  ModelSpec spec = content.spec;
  if (content.tokenizer && content.tokenizer->eos_id() && spec.eos_tokens.empty())
    spec.eos_tokens = {static_cast<int64_t>(*content.tokenizer->eos_id())};
  write_file_atomically(directory / "config.json", hf_config_json(spec));
  if (content.tokenizer) {
    write_file_atomically(directory / "tokenizer.json", content.tokenizer->to_json());
    write_file_atomically(directory / "tokenizer_config.json", tokenizer_config(*content.tokenizer, spec));
  }
  write_file_atomically(directory / kRunStateFile, state_json(content.state));
}

void create_parent(const fs::path& directory) {
  if (!directory.has_parent_path()) return;
  std::error_code error;
  fs::create_directories(directory.parent_path(), error);
  if (error) throw RunError(directory.parent_path().string(), fmt::format("cannot create: {}", error.message()));
}

}  // namespace

void save_run_checkpoint(const fs::path& directory, const CheckpointContent& content, Crew& crew) {
  std::optional<StagedDirectory> staged;
  if (crew.leads()) {
    create_parent(directory);
    staged.emplace(directory, Existing::replace);
    write_descriptions(staged->path(), content);
  }
  fs::path place = crew.from_leader(staged ? staged->path().string() : std::string());
  Share share = crew.size() == 1 ? Share::whole : Share::part;
  save_weights(content.values, content.spec, place, {}, share);
  save_optimizer(content.values, content.spec, place / kOptimizerFile, share);
  crew.barrier();  // every rank has flushed its part
  if (staged) staged->commit();
  crew.barrier();  // nobody goes on, and perhaps looks for it, before it is there
}

RunState load_run_checkpoint(const fs::path& directory, Bound& bound, const ModelSpec& spec) {
  refuse_other_model(directory, spec);
  RunState state = state_from_json(directory / kRunStateFile);
  load_weights(bound, spec, WeightsReader(directory));
  load_optimizer(bound, spec, directory / kOptimizerFile);
  return state;
}

}  // namespace sextant
