// Training from a Hugging Face directory: what is refused because transformers would train it otherwise, and what of
// the directory is in the checkpoints.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkout.h"
#include "ckpt/convert.h"
#include "ckpt/safetensors_writer.h"
#include "ckpt/weights_reader.h"
#include "generate/generator.h"
#include "scratch_run.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kVocab = 97;

std::vector<float> values_of(const fs::path& directory, std::string_view name) {
  WeightsReader weights(directory);
  TensorView view = weights.tensor(name);
  std::vector<float> x(static_cast<size_t>(view.shape.count()));
  load_rows(view, {0, row_count(view.shape)}, Transpose::no, x);
  return x;
}

// A copy of a fixture with other entries in its config.json, and token files to train it on.
class Source {
 public:
  Source(std::string_view name, std::string_view fixture) : scratch_(name) {
    fs::copy(fs::path(checkout::kSources) / "tests/fixtures/models" / fixture, directory(),
             fs::copy_options::recursive);
    std::string tokens;
    for (int i = 0; i < 4000; ++i)
      tokens += {static_cast<char>(i % 3 == 2 ? i % kVocab : 5 + i % 3), '\0'};  // 5 and 6 are everywhere
    write_file_atomically(scratch_.root() / "train.bin", tokens);
  }
  fs::path directory() const { return scratch_.root() / "model"; }
  fs::path out(std::string_view name) const { return scratch_.root() / name; }

  json config() const { return json::parse(read_file(directory() / "config.json")); }
  void change(const json& entries) {
    json file = config();
    file.update(entries);
    write("config.json", file.dump());
  }
  void write(const std::string& name, std::string_view text) { write_file_atomically(directory() / name, text); }

  TrainResult train_to(std::string_view name, std::vector<std::string> more = {}) const {
    std::vector<std::string> settings{"model.from=" + directory().string(),
                                      fmt::format("data.train={}", (scratch_.root() / "train.bin").string()),
                                      "data.format=tokens-u16",
                                      "batch.seq=16",
                                      "batch.sequences=4",
                                      "train.steps=2",
                                      "train.threads=1",
                                      "train.eval_every=0",
                                      "optimizer.lr=1e-3"};
    settings.insert(settings.end(), more.begin(), more.end());
    return train(load_config("", settings), out(name), cpu_ranks());
  }
  std::string complaint(std::vector<std::string> more = {}) const { return complaint_of("refused", std::move(more)); }
  std::string complaint_of(std::string_view out, std::vector<std::string> more) const {
    try {
      train_to(out, std::move(more));
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }

 private:
  ScratchRun scratch_;
};

std::vector<double> rates_in(const fs::path& directory) {
  json file = json::parse(read_file(directory / "config.json"));
  return {file["resid_pdrop"], file["attn_pdrop"], file["embd_pdrop"]};
}

// GPT-2's config.json is silent about its rates: 0.1 each.
TEST(SourceModel, DropoutIsThatOfTheDirectory) {
  Source source("dropout", "gpt2");
  json file = source.config();
  for (const char* key : {"resid_pdrop", "attn_pdrop", "embd_pdrop"}) file.erase(key);
  source.write("config.json", file.dump());
  TrainResult own = source.train_to("run");
  EXPECT_EQ(rates_in(own.checkpoint), (std::vector{0.1, 0.1, 0.1}));
  EXPECT_EQ(source.train_to("run", {"train.steps=3"}).step, 3);  // which goes on with them

  TrainResult without = source.train_to("without", {"model.dropout=0"});
  EXPECT_EQ(rates_in(without.checkpoint), (std::vector{0.0, 0.0, 0.0}));
  EXPECT_NE(without.loss, own.loss);
  TrainResult given = source.train_to("given", {"model.dropout=0.1"});
  EXPECT_EQ(given.loss, own.loss);
  EXPECT_EQ(rates_in(source.train_to("some", {"model.attention_dropout=0.3"}).checkpoint),
            (std::vector{0.1, 0.3, 0.1}));
  // A directory that we wrote is trained with its rates again.
  std::string written = "model.from=" + given.checkpoint.string();
  EXPECT_EQ(source.train_to("again", {written}).loss,
            source.train_to("again-given", {written, "model.dropout=0.1"}).loss);
}

// They are part of the run's config: a finished run refuses others, one that goes on names them.
TEST(SourceModel, OtherDropoutRatesInTheDirectoryAreAChangeOfTheRun) {
  Source source("dropout-changed", "gpt2");
  source.change({{"resid_pdrop", 0.1}});
  source.train_to("run");
  source.change({{"resid_pdrop", 0.2}});
  EXPECT_NE(source.complaint_of("run", {}).find("model.hidden_dropout 0.1 -> 0.2"), std::string::npos);
  source.change({{"resid_pdrop", 2}});
  EXPECT_EQ(source.complaint(), fmt::format("{} resid_pdrop: got 2; expected a dropout rate, from 0 to below 1",
                                            (source.directory() / "config.json").string()));
  EXPECT_EQ(source.train_to("chosen", {"model.dropout=0"}).step, 2);
}

// The weights of a run that goes on are its checkpoint's: another model.from would be in its config.toml only.
TEST(SourceModel, AnotherModelIsRefusedWhereARunGoesOn) {
  Source source("another-source", "llama");
  fs::path copy = source.out("copy"), other = source.out("other");
  for (const fs::path& place : {copy, other}) fs::copy(source.directory(), place, fs::copy_options::recursive);
  auto change_last_weight = [](const fs::path& directory) {
    std::string bytes = read_file(directory / "model.safetensors");
    bytes.end()[-2] = static_cast<char>(bytes.end()[-2] ^ 1);
    write_file_atomically(directory / "model.safetensors", bytes);
  };
  change_last_weight(other);
  std::string from_other = "model.from=" + other.string();
  source.train_to("run");
  std::string config = read_file(source.out("run") / "config.toml");
  for (const char* steps : {"train.steps=2", "train.steps=3"}) {  // all steps are done, and one is left
    std::string complaint = source.complaint_of("run", {from_other, steps});
    EXPECT_NE(complaint.find(fmt::format("\"{}\", but the run in {} began from \"{}\"; expected model.from = \"{}\"",
                                         other.string(), (source.out("run") / "step-000002").string(),
                                         source.directory().string(), source.directory().string())),
              std::string::npos)
        << complaint;
    EXPECT_NE(complaint.find("choose another --out"), std::string::npos) << complaint;
  }
  EXPECT_EQ(read_file(source.out("run") / "config.toml"), config);
  EXPECT_FALSE(fs::exists(source.out("run") / "step-000003"));
  // The same weights elsewhere are the same model; without a hash in the checkpoint, the same path is.
  EXPECT_EQ(source.train_to("run", {"model.from=" + copy.string(), "train.steps=3"}).step, 3);
  EXPECT_EQ(source.train_to("run", {from_other, "train.steps=4", "checkpoint.accept_changed=model"}).step, 4);
  change_last_weight(other);
  change_last_weight(source.directory());
  EXPECT_NE(source.complaint_of("run", {from_other, "train.steps=5"})
                .find(fmt::format("the weights in \"{}\" are not those", other.string())),
            std::string::npos);
  fs::remove(other / "model.safetensors");
  EXPECT_EQ(source.train_to("run", {from_other, "train.steps=5"}).step, 5);
  EXPECT_NE(source.complaint_of("run", {"train.steps=6"}).find("but the run in"), std::string::npos);
}

TEST(SourceModel, DrawnWeightsAreAnotherModelThanThoseOfADirectory) {
  Source source("drawn-source", "llama");
  fs::path drawn = source.out("drawn");
  std::vector<std::string> settings{fmt::format("data.train={}", (source.directory() / "../train.bin").string()),
                                    "data.format=tokens-u16",
                                    "model.architecture=llama",
                                    "model.vocab=97",
                                    "model.layers=2",
                                    "model.hidden=48",
                                    "model.heads=4",
                                    "model.kv_heads=2",
                                    "model.ffn=80",
                                    "model.max_seq=64",
                                    "batch.seq=16",
                                    "batch.sequences=4",
                                    "train.steps=2",
                                    "train.threads=1",
                                    "train.eval_every=0"};
  train(load_config("", settings), drawn, cpu_ranks());
  std::string complaint = source.complaint_of("drawn", {"train.steps=3"});
  EXPECT_NE(complaint.find("began from drawn weights; expected no model.from"), std::string::npos) << complaint;
  source.train_to("run");
  settings.emplace_back("train.steps=3");
  EXPECT_THROW(train(load_config("", settings), source.out("run"), cpu_ranks()), UserError);
}

TEST(SourceModel, OtherHeadOfATiedModelIsRefused) {
  Source source("head", "llama");
  double own = source.train_to("own").loss;
  source.change({{"tie_word_embeddings", true}});
  std::string complaint = source.complaint();
  EXPECT_NE(complaint.find("lm_head.weight"), std::string::npos) << complaint;
  EXPECT_NE(complaint.find("model.tied_head=false uses the head in the file"), std::string::npos) << complaint;
  EXPECT_EQ(source.train_to("chosen", {"model.tied_head=false"}).loss, own);
  EXPECT_EQ(json::parse(read_file(source.out("chosen") / "step-000002/config.json"))["tie_word_embeddings"], false);
  EXPECT_NE(source.train_to("ignored", {"model.tied_head=true"}).loss, own);
  source.change({{"tie_word_embeddings", false}});
  EXPECT_NE(source.complaint({"model.tied_head=true"}).find("is decided by the weights of model.from"),
            std::string::npos);
}

TEST(SourceModel, EqualHeadOfATiedModelIsAccepted) {
  Source source("equal-head", "llama3");
  // The same values in another type.
  SafetensorsFile file(source.directory() / "model.safetensors");
  std::vector<TensorSpec> specs;
  for (const TensorEntry& tensor : file.tensors()) specs.push_back({tensor.name, tensor.dtype, tensor.shape});
  TensorView table = file.tensor("model.embed_tokens.weight");
  specs.push_back({"lm_head.weight", FileDType::f64, table.shape});
  std::vector<float> values = values_of(source.directory(), "model.embed_tokens.weight");
  auto write = [&] {
    std::vector<double> head(values.begin(), values.end());
    SafetensorsWriter writer(source.directory() / "new.safetensors", plan_safetensors(specs));
    for (const TensorEntry& tensor : file.tensors()) writer.write(tensor.name, file.tensor(tensor.name).bytes);
    writer.write("lm_head.weight", std::as_bytes(std::span(head)));
    writer.finish();
    fs::rename(source.directory() / "new.safetensors", source.directory() / "model.safetensors");
  };
  double expected = source.train_to("without").loss;
  write();
  EXPECT_EQ(source.train_to("with").loss, expected);
  values.back() += 0.5f;
  write();
  EXPECT_NE(source.complaint().find("lm_head.weight"), std::string::npos);
}

// Checkpoints hold experts as the directory did, also those of a run that resumes from a checkpoint.
TEST(SourceModel, ExpertsStayStacked) {
  Source source("stacked", "mixtral");
  double one_by_one = source.train_to("one_by_one").loss;
  fs::copy_file(fs::path(checkout::kSources) / "tests/fixtures/expert_files/mixtral/model.safetensors",
                source.directory() / "model.safetensors", fs::copy_options::overwrite_existing);
  EXPECT_EQ(source.train_to("stacked").loss, one_by_one);
  std::vector<std::string> names = WeightsReader(source.directory()).names();
  EXPECT_EQ(WeightsReader(source.out("stacked") / "step-000002").names(), names);
  source.train_to("stacked", {"train.steps=3", "mesh.tp=2"});
  EXPECT_EQ(WeightsReader(source.out("stacked") / "step-000003").names(), names);
  source.train_to("one_by_one", {"train.steps=3", "checkpoint.accept_changed=model"});  // the same weights, stored anew
  // Written by two ranks, each with a part of every expert; the last step has a learning rate of 0.
  std::vector<float> stack = values_of(source.out("stacked") / "step-000003", "model.layers.1.mlp.experts.down_proj");
  for (size_t e = 0; e < 5; ++e) {
    std::vector<float> own = values_of(source.out("one_by_one") / "step-000003",
                                       fmt::format("model.layers.1.block_sparse_moe.experts.{}.w2.weight", e));
    EXPECT_TRUE(std::equal(own.begin(), own.end(), stack.begin() + static_cast<std::ptrdiff_t>(e * own.size()))) << e;
  }
}

// A Mixtral of which every expert is the dense MLP and whose weights sum to 1 computes what the dense model does.
TEST(SourceModel, AnUpcycledModelBeginsAsItsDenseParent) {
  Source source("upcycled", "llama");
  std::vector<std::string> once{"train.steps=1"};  // with a learning rate of 0
  double dense = source.train_to("dense", once).loss;
  std::vector<std::string> experts{"train.steps=1", "model.architecture=mixtral", "model.experts.count=5",
                                   "model.experts.per_token=3", "model.experts.balance_loss=0"};
  EXPECT_NEAR(source.train_to("experts", experts).loss, dense, 1e-6 * dense);
  experts.emplace_back("mesh.tp=2");
  EXPECT_NEAR(source.train_to("on_two", experts).loss, dense, 1e-6 * dense);
  fs::path made = source.out("experts") / "step-000001";
  EXPECT_EQ(json::parse(read_file(made / "config.json"))["model_type"], "mixtral");
  for (auto [part, of_dense] : {std::pair{"w1", "gate_proj"}, {"w3", "up_proj"}, {"w2", "down_proj"}})
    for (int e : {0, 4})
      EXPECT_EQ(values_of(made, fmt::format("model.layers.1.block_sparse_moe.experts.{}.{}.weight", e, part)),
                values_of(source.directory(), fmt::format("model.layers.1.mlp.{}.weight", of_dense)));
  std::vector<float> router = values_of(made, "model.layers.1.block_sparse_moe.gate.weight");
  EXPECT_NE(router.front(), router.back());
}

TEST(SourceModel, Qwen3BecomesQwen3Moe) {
  Source source("upcycled-qwen3", "qwen3");
  double dense = source.train_to("dense", {"train.steps=1"}).loss;
  double loss = source
                    .train_to("experts", {"train.steps=1", "model.architecture=qwen3_moe", "model.experts.count=4",
                                          "model.experts.per_token=2", "model.experts.balance_loss=0"})
                    .loss;
  EXPECT_NEAR(loss, dense, 1e-6 * dense);
}

// Its shared expert is drawn: the dense model has no weights for it.
TEST(SourceModel, Qwen2BecomesQwen2Moe) {
  Source source("upcycled-qwen2", "qwen2");
  source.train_to("experts", {"train.steps=1", "model.architecture=qwen2_moe", "model.experts.count=3",
                              "model.experts.per_token=2", "model.experts.shared_ffn=16"});
  fs::path made = source.out("experts") / "step-000001";
  EXPECT_EQ(values_of(made, "model.layers.0.mlp.experts.2.up_proj.weight"),
            values_of(source.directory(), "model.layers.0.mlp.up_proj.weight"));
  EXPECT_EQ(values_of(made, "model.layers.0.self_attn.k_proj.bias"),
            values_of(source.directory(), "model.layers.0.self_attn.k_proj.bias"));
  std::vector<float> shared = values_of(made, "model.layers.0.mlp.shared_expert.up_proj.weight");
  EXPECT_NE(shared.front(), shared.back());
}

TEST(SourceModel, WhatCannotBeUpcycledIsRefused) {
  Source qwen3("not-upcycled", "qwen3"), llama("not-upcycled-llama", "llama");
  std::string complaint = qwen3.complaint({"model.architecture=mixtral"});
  EXPECT_NE(complaint.find("mixtral has no place for model.layers.0.self_attn.q_norm.weight"), std::string::npos)
      << complaint;
  complaint = llama.complaint({"model.architecture=olmoe"});
  EXPECT_NE(complaint.find("olmoe has layers.0.attn.k_norm.weight, for which llama has no weights"), std::string::npos)
      << complaint;
  complaint = llama.complaint({"model.architecture=mixtral", "model.experts.ffn=8"});
  EXPECT_NE(complaint.find("model.experts.ffn"), std::string::npos) << complaint;
  EXPECT_NE(llama.complaint({"model.architecture=gpt2"}).find("is decided by the weights of model.from"),
            std::string::npos);
}

TEST(SourceModel, AdapterIsRefused) {
  Source source("adapter", "llama");
  source.write("adapter_config.json", R"({"peft_type": "LORA"})");
  std::string complaint = source.complaint();
  EXPECT_NE(complaint.find("adapter_config.json: PEFT adapters are not supported"), std::string::npos) << complaint;
  EXPECT_NE(complaint.find("merge the adapter into the model first"), std::string::npos) << complaint;
}

TEST(SourceModel, PaddingRowStaysAsItIs) {
  Source source("padding", "llama");
  source.change({{"pad_token_id", 5}});
  std::vector<float> before = values_of(source.directory(), "model.embed_tokens.weight");
  size_t width = before.size() / kVocab;
  for (const char* mesh : {"mesh.tp=1", "mesh.tp=2"}) {
    std::string out = fmt::format("run-{}", mesh);
    fs::path saved =
        source.train_to(out, {"optimizer.weight_decay=0", mesh, fmt::format("mesh.dp={}", mesh[8])}).checkpoint;
    std::vector<float> after = values_of(saved, "model.embed_tokens.weight");
    auto row = [&](const std::vector<float>& x, size_t r) {
      return std::vector<float>(x.begin() + r * width, x.begin() + (r + 1) * width);
    };
    EXPECT_EQ(row(after, 5), row(before, 5)) << mesh;
    EXPECT_NE(row(after, 6), row(before, 6)) << mesh;
    EXPECT_EQ(json::parse(read_file(saved / "config.json"))["pad_token_id"], 5);
  }
}

TEST(SourceModel, MistralAndUnknownKeysSurvive) {
  Source source("mistral", "llama");
  source.change({{"model_type", "mistral"},
                 {"architectures", {"MistralForCausalLM"}},
                 {"sliding_window", nullptr},
                 {"torch_dtype", "bfloat16"},
                 {"custom", "kept"}});
  source.write("generation_config.json", R"({ "eos_token_id": [2, 3] })");
  source.write("special_tokens_map.json", R"({ "pad_token": "x" })");
  for (const char* steps : {"train.steps=2", "train.steps=3"}) {  // the second resumes from the first
    json saved = json::parse(read_file(source.train_to("run", {steps}).checkpoint / "config.json"));
    EXPECT_EQ(saved["model_type"], "mistral");
    EXPECT_EQ(saved["architectures"], json({"MistralForCausalLM"}));
    EXPECT_EQ(saved["custom"], "kept");
    EXPECT_EQ(saved["torch_dtype"], "float32");  // of the tensors beside it
  }
  for (const char* name : {"generation_config.json", "special_tokens_map.json"})
    EXPECT_EQ(read_file(source.out("run") / "step-000003" / name), read_file(source.directory() / name)) << name;
}

// A directory with a tokenizer, made by training for a step.
class WithTokenizer {
 public:
  explicit WithTokenizer(std::string_view name) : scratch_(name) {
    scratch_.run("first", {"train.steps=1", "train.eval_every=0", "optimizer.warmup=0"});
    take_first();
  }
  // Of a tokenizer that is there already.
  WithTokenizer(std::string_view name, const fs::path& tokenizer) : scratch_(name) {
    std::vector<std::string> settings{"model.architecture=llama",
                                      "model.layers=1",
                                      "model.hidden=32",
                                      "model.heads=2",
                                      "data.train=stories",
                                      "data.stories_bytes=60000",
                                      fmt::format("data.tokenizer={}", tokenizer.string()),
                                      fmt::format("data.cache={}", (root() / "cache").string()),
                                      "batch.seq=16",
                                      "batch.sequences=2",
                                      "train.steps=1",
                                      "train.threads=1",
                                      "train.eval_every=0"};
    train(load_config("", settings), root() / "first", cpu_ranks());
    take_first();
  }
  void take_first() { fs::rename(scratch_.root() / "first/step-000001", directory()); }
  fs::path directory() const { return scratch_.root() / "model"; }
  fs::path root() const { return scratch_.root(); }
  void write(const std::string& name, std::string_view text) {
    fs::create_directories((directory() / name).parent_path());
    write_file_atomically(directory() / name, text);
  }
  // tokenizer.json with another name for <|endoftext|>.
  std::string with_end_token(std::string_view other) const {
    std::string text = read_file(directory() / "tokenizer.json"), name = "<|endoftext|>";
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at))
      text.replace(at, name.size(), other);
    return text;
  }
  fs::path train_to(std::string_view name, std::vector<std::string> more = {}) const {
    std::string lines = "{\"text\": \"One day\"}\n";
    for (int i = 0; i < 60; ++i) lines += "{\"text\": \"One day a small dog went to the town.\"}\n";
    write_file_atomically(scratch_.root() / "text.jsonl", lines);
    std::vector<std::string> settings{"model.from=" + directory().string(),
                                      fmt::format("data.train={}", (root() / "text.jsonl").string()),
                                      fmt::format("data.cache={}", (root() / "cache").string()),
                                      "batch.seq=16",
                                      "batch.sequences=2",
                                      "train.steps=1",
                                      "train.threads=1",
                                      "train.eval_every=0",
                                      "data.validation_fraction=0"};
    settings.insert(settings.end(), more.begin(), more.end());
    return train(load_config("", settings), root() / name, cpu_ranks()).checkpoint;
  }
  // The ids of the token file that was made last.
  std::vector<uint16_t> tokens() const {
    fs::path newest;
    for (const fs::directory_entry& entry : fs::directory_iterator(root() / "cache"))
      if (entry.path().filename().string().starts_with("text-")) newest = entry.path() / "train.bin";
    std::string bytes = read_file(newest);
    std::vector<uint16_t> ids(bytes.size() / 2);
    std::memcpy(ids.data(), bytes.data(), ids.size() * 2);
    return ids;
  }

 private:
  ScratchRun scratch_;
};

TEST(SourceModel, FilesOfTheDirectoryAreInEveryCheckpoint) {
  WithTokenizer source("files");
  source.write("tokenizer_config.json",
               R"({"eos_token": "<|endoftext|>", "pad_token": "a", "chat_template": "{{ x }}"})");
  source.write("chat_template.jinja", "{{ messages }}");
  source.write("additional_chat_templates/tool.jinja", "{{ tools }}");
  source.write("generation_config.json", R"({"eos_token_id": [0, 7], "temperature": 0.6})");
  source.write("tokenizer.json", read_file(source.directory() / "tokenizer.json") + "\n\n");  // its own spacing
  for (const char* steps : {"train.steps=1", "train.steps=2"}) {  // the second resumes from the first
    fs::path saved = source.train_to("run", {steps, "checkpoint.every=1", "checkpoint.background=false"});
    for (const char* name : {"tokenizer_config.json", "chat_template.jinja", "additional_chat_templates/tool.jinja",
                             "generation_config.json", "tokenizer.json"})
      EXPECT_EQ(read_file(saved / name), read_file(source.directory() / name)) << name << " " << steps;
  }
  // With another tokenizer its own files are written, and no ids of the model's.
  write_file_atomically(source.root() / "other.json", source.with_end_token("</s>"));
  fs::path other = source.train_to("other", {fmt::format("data.tokenizer={}", (source.root() / "other.json").string()),
                                             "data.end_of_text=5", "model.other_tokenizer=true"});
  EXPECT_FALSE(fs::exists(other / "generation_config.json"));
  EXPECT_FALSE(fs::exists(other / "chat_template.jinja"));
  EXPECT_EQ(json::parse(read_file(other / "config.json"))["eos_token_id"], 5);
}

TEST(SourceModel, EndOfTextIsWhatTheDirectorySays) {
  WithTokenizer source("ends");
  source.write("tokenizer.json", source.with_end_token("<stop>"));
  for (const char* name : {"config.json", "tokenizer_config.json"}) {
    json file = json::parse(read_file(source.directory() / name));
    file.erase("eos_token_id");
    file.erase("eos_token");
    source.write(name, file.dump());
  }
  auto complaint = [&](std::vector<std::string> more) -> std::string {
    try {
      source.train_to("refused", std::move(more));
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(
      complaint({}).find("the end-of-document token is unknown; expected eos_token in a tokenizer_config.json beside "
                         "it\n  hint: data.end_of_text names its id"),
      std::string::npos)
      << complaint({});
  EXPECT_NE(complaint({"data.end_of_text=60000"}).find("an id below"), std::string::npos);

  // Each way of saying it is a file of tokens of its own: nothing of another choice is taken from the cache.
  uint32_t stop = *Tokenizer::load(source.directory() / "tokenizer.json").token_id("<stop>");
  auto end_of_first = [&](std::string_view out, std::vector<std::string> more) {
    fs::remove_all(source.root() / "cache");
    source.train_to(out, std::move(more));
    return source.tokens().at(Tokenizer::load(source.directory() / "tokenizer.json").encode("One day").size());
  };
  EXPECT_EQ(end_of_first("given", {"data.end_of_text=9"}), 9);
  source.write("tokenizer_config.json", R"({"eos_token": "<stop>"})");
  EXPECT_EQ(end_of_first("stated", {}), stop);
  auto caches = [&] { return std::distance(fs::directory_iterator(source.root() / "cache"), {}); };
  auto before = caches();
  source.train_to("other", {"data.end_of_text=9"});
  source.write("tokenizer_config.json", R"({"eos_token": "a"})");
  source.train_to("third");
  EXPECT_EQ(caches(), before + 2);
}

TEST(SourceModel, GenerateStopsAtTheEndsOfGenerationConfig) {
  WithTokenizer source("stop");
  auto executor = make_cpu_executor(1);
  auto text = [&] {
    std::vector<uint32_t> tokens;
    GenerateOptions options{.sampling = {.temperature = 0}, .max_tokens = 4};
    StopReason reason = Generator(source.directory(), *executor, 32).generate("One day", options, [&](uint32_t t) {
      tokens.push_back(t);
    });
    return std::pair(reason, tokens);
  };
  auto [reason, tokens] = text();
  ASSERT_EQ(reason, StopReason::max_tokens);
  source.write("generation_config.json", fmt::format("{{\"eos_token_id\": [4000, {}]}}", tokens.front()));
  EXPECT_EQ(text(), std::pair(StopReason::stop_token, std::vector<uint32_t>{}));
}

// Directories of Llama 1 and 2 may have nothing but tokenizer.model.
TEST(SourceModel, TrainsFromADirectoryThatHasOnlyTokenizerModel) {
  fs::path fixture = fs::path(checkout::kSources) / "tests/fixtures/tokenizer/sentencepiece/bpe.model";
  WithTokenizer source("sentencepiece", fixture);
  ASSERT_FALSE(fs::exists(source.directory() / "tokenizer.json"));
  EXPECT_EQ(read_file(source.directory() / "tokenizer.model"), read_file(fixture));
  source.write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer", "eos_token": "</s>"})");
  fs::path saved = source.train_to("run");
  // Ids that the sentencepiece library gives for the first document, between the begin and the end token.
  const std::vector<uint16_t> expected{1, 863, 910, 586, 265, 865, 905, 2};
  std::vector<uint16_t> tokens = source.tokens();
  ASSERT_GT(tokens.size(), expected.size());
  EXPECT_EQ(std::vector<uint16_t>(tokens.begin(), tokens.begin() + 8), expected);
  for (const char* name : {"tokenizer.model", "tokenizer_config.json"})
    EXPECT_EQ(read_file(saved / name), read_file(source.directory() / name)) << name;
  EXPECT_FALSE(fs::exists(saved / "tokenizer.json"));
}

TEST(SourceModel, TokenFilesNeedNoTokenizerThatWeCanRead) {
  Source source("word-piece", "llama");
  source.write("tokenizer.json", R"({"version": "1.0", "model": {"type": "WordPiece", "vocab": {"a": 0}}})");
  fs::path saved = source.train_to("run").checkpoint;
  EXPECT_EQ(read_file(saved / "tokenizer.json"), read_file(source.directory() / "tokenizer.json"));
  EXPECT_EQ(source.train_to("run", {"train.steps=3"}).step, 3);  // and goes on
  source.write("text.jsonl", "{\"text\": \"a\"}\n");
  std::string complaint = source.complaint(
      {"data.format=jsonl", fmt::format("data.train={}", (source.directory() / "text.jsonl").string())});
  EXPECT_NE(complaint.find("a WordPiece model; expected a BPE or Unigram model"), std::string::npos) << complaint;
}

}  // namespace
}  // namespace sextant
