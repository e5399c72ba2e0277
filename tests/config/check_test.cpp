#include "config/check.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "config/load.h"
#include "config/resolve.h"
#include "config/schema.h"
#include "models/hf_config.h"
#include "models/hf_type.h"
#include "models/models.h"
#include "models/presets.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

// The message about a small sound config with these overrides; "" when it is accepted.
std::string complaint_about(std::vector<std::string> overrides, std::string_view model = R"(
architecture = "llama"
layers = 2
hidden = 64
heads = 4
)") {
  try {
    parse_config("[model]\n" + std::string(model) + "[batch]\nseq = 64\n", "run.toml", overrides);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

std::string all_hf_types() {
  std::string types;
  for (const ModelDef* def : all_models())
    for (const HfType& type : def->hf_types) types += fmt::format("{}{}", types.empty() ? "" : ", ", type.model_type);
  return types;
}

ModelSpec resolved(std::vector<std::string> overrides) {
  return resolve_model(load_config("", overrides));
}

TEST(Check, SoundConfigs) {
  EXPECT_EQ(complaint_about({}), "");
  EXPECT_EQ(complaint_about({"mesh.dp=2", "mesh.pp=2", "mesh.tp=2", "mesh.cp=4"}), "");
  EXPECT_EQ(complaint_about({"pipeline.schedule=csv", "pipeline.file=s.csv"}), "");
  EXPECT_EQ(complaint_about({"optimizer.schedule=wsd", "optimizer.decay=80", "optimizer.warmup=20"}), "");
  EXPECT_EQ(complaint_about({"data.format=tokens-u16", "model.vocab=100"}), "");
}

TEST(Check, ModelShape) {
  EXPECT_EQ(complaint_about({"model.heads=7"}),
            "command line: model.heads=7: head_dim 9 is odd; expected an even head_dim, because RoPE turns pairs\n"
            "command line: model.heads=7: heads 7 does not divide hidden 64; expected a divisor of 64");
  EXPECT_EQ(complaint_about({"model.hidden=66"}),
            "run.toml:6:1 model.heads: heads 4 does not divide hidden 66; expected a divisor of 66");
  EXPECT_EQ(complaint_about({"model.kv_heads=3"}),
            "command line: model.kv_heads=3: kv_heads 3 does not divide heads 4; expected a divisor of 4");
  EXPECT_EQ(complaint_about({"model.head_dim=15"}),
            "command line: model.head_dim=15: head_dim 15 is odd; expected an even head_dim, because RoPE turns pairs");
  EXPECT_EQ(complaint_about({"model.hidden=60"}),
            "run.toml:6:1 model.heads: head_dim 15 is odd; expected an even head_dim, because RoPE turns pairs");
  EXPECT_EQ(complaint_about({"model.rope_scaling.low_freq_factor=5"}),
            "command line: model.rope_scaling.low_freq_factor=5: high_freq_factor 4 is below low_freq_factor 5");
  EXPECT_EQ(
      complaint_about({"model.architecture=gpt2", "model.kv_heads=2", "model.head_dim=8"}),
      "command line: model.kv_heads=2: kv_heads 2 differs from heads 4; expected equal numbers, because gpt2 has no "
      "grouped-query attention\n"
      "command line: model.head_dim=8: head_dim 8 is not hidden / heads; expected 16, because gpt2 supports only that");
  EXPECT_EQ(complaint_about({"model.architecture=gpt2", "model.rope_theta=5"}),
            "command line: model.rope_theta=5: gpt2 has learned positions and no RoPE; expected no such key");
}

TEST(Check, ModelIsNamed) {
  EXPECT_EQ(complaint_about({}, ""),
            "run.toml [model]: names no model; expected model.preset, model.from, or model.architecture with layers, "
            "hidden and heads");
  EXPECT_EQ(complaint_about({}, "architecture = \"gpt2\"\nhidden = 64\n"),
            "run.toml model.layers: is missing; expected an integer from 1 to 16384\n"
            "run.toml model.heads: is missing; expected an integer from 1 to 16384");
  EXPECT_EQ(complaint_about({}, "layers = 1\nhidden = 64\nheads = 2\n"),
            "run.toml model.architecture: is missing; expected " + expected_of(*find_key("model.architecture")));
  EXPECT_EQ(complaint_about({}, "preset = \"llama3.1-7b\"\n"),
            fmt::format("run.toml:2:1 model.preset: got \"llama3.1-7b\"; expected one of the {} presets that "
                        "`sextant list models` lists, such as gpt2 or llama3.1-8b\n"
                        "  hint: did you mean llama3.1-8b?",
                        presets().size()));
  EXPECT_EQ(complaint_about({}, "preset = \"switch-base\"\n").substr(0, 90),
            "run.toml:2:1 model.preset: got \"switch-base\": of models with experts only Mixtral, OLMoE, ");
}

TEST(Check, ArchitecturesKnowTheirOptions) {
  EXPECT_EQ(complaint_about({"model.architecture=bloom", "model.rope_theta=5"}),
            "command line: model.rope_theta=5: bloom has ALiBi and no RoPE; expected no such key");
  EXPECT_EQ(complaint_about({"model.architecture=mpt", "model.ffn=100"}),
            "command line: model.ffn=100: ffn 100 is not 4 hidden; expected 256, because mpt supports only 4·hidden");
  EXPECT_EQ(complaint_about({"model.architecture=neox", "model.rotary_fraction=0.2"}),
            "command line: model.rotary_fraction=0.2: 0.2 of head_dim 16 is 3 elements; expected an even number of "
            "them, because RoPE turns pairs");
  EXPECT_EQ(complaint_about({"model.rotary_fraction=0.5"}),
            "command line: model.rotary_fraction=0.5: llama turns whole heads; expected no rotary_fraction, or an "
            "architecture with it: neox, nemotron, phi3, glm4_moe");
  EXPECT_EQ(
      complaint_about({"model.architecture=opt", "model.qk_norm=true", "model.norm_eps=1e-6"}),
      "command line: model.norm_eps=1e-6: norm_eps 1e-06 is not 1e-05; expected 1e-05, because opt supports only that\n"
      "command line: model.qk_norm=true: opt has no norm of heads; expected no qk_norm, or an architecture with it: "
      "llama, llama4, glm4_moe");
  EXPECT_EQ(complaint_about({"model.window=32"}), "");
  EXPECT_EQ(complaint_about({"model.qkv_bias=true", "model.out_bias=true", "model.mlp_bias=true"}), "");
  EXPECT_EQ(complaint_about({"model.rope_scaling.type=yarn", "model.rope_scaling.factor=4"}), "");
}

// Only what a model type of Hugging Face has can be saved.
TEST(Check, OptionsThatNoModelTypeHasTogether) {
  EXPECT_EQ(
      complaint_about({"model.architecture=llama4", "model.attention_chunk=0", "model.experts.score=softmax",
                       "model.experts.normalise=true", "model.experts.shared_ffn=64"}),
      "command line: model.attention_chunk=0: llama4 has layers with chunked attention, and their size is not "
      "given; expected a number above 0\n"
      "command line: model.experts.shared_ffn=64: a shared width of 64; expected 256, as experts.ffn: llama4 has a "
      "shared expert as wide as the others\n"
      "command line: model.experts.score=softmax: llama4 scores experts by sigmoid; expected sigmoid\n"
      "command line: model.experts.normalise=true: llama4 takes the weights of a token's experts as they are; "
      "expected false");
  EXPECT_EQ(
      complaint_about({"model.qk_norm=true", "model.qkv_bias=true"}),
      "command line: model.qkv_bias=true: qkv_bias is given beside qk_norm, without out_bias; expected both biases "
      "or none: Qwen 3's attention_bias");
  EXPECT_EQ(complaint_about({"model.out_bias=true"}),
            "command line: model.out_bias=true: out_bias is given without qkv_bias; expected both, or qkv_bias alone");
  EXPECT_EQ(
      complaint_about({"model.mlp_bias=true", "model.window=32"}),
      "command line: model.mlp_bias=true: mlp_bias is given beside what makes it mistral; expected no mlp_bias, or "
      "neither qkv_bias alone, nor qk_norm, nor window");
  EXPECT_EQ(
      complaint_about({"model.window=32", "model.full_attention_every=2"}),
      "command line: model.full_attention_every=2: Mistral has the window in every layer; expected 0, or Qwen 2's "
      "qkv_bias or Qwen 3's qk_norm");
  EXPECT_EQ(complaint_about({"model.architecture=granite", "model.qkv_bias=true"}),
            "command line: model.qkv_bias=true: only one of qkv_bias and out_bias is true; expected both or none, as "
            "Hugging Face's attention_bias");
}

// Narrow gradients are not added up, and rows of less than the balanced load serve no routing.
TEST(Check, GradientsAndCapacityOfExperts) {
  auto about = [](std::vector<std::string> settings) {
    settings.insert(settings.begin(), {"model.architecture=mixtral", "model.ffn=96", "model.experts.count=4",
                                       "batch.sequences=4", "batch.microbatch=4"});
    return complaint_about(settings);
  };
  const std::string narrow = "train.expert_gradients=bf16";
  EXPECT_EQ(about({narrow}), "");
  for (std::vector<std::string> adds : {std::vector<std::string>{"batch.microbatch=2"},
                                        {"mesh.dp=2", "batch.microbatch=2"},
                                        {"mesh.cp=2"},
                                        {"mesh.dp=2", "mesh.ep=2", "batch.microbatch=2"}}) {
    adds.push_back(narrow);
    EXPECT_NE(about(adds).find("would be added up over microbatches or ranks; expected one microbatch in a step"),
              std::string::npos)
        << about(adds);
  }
  EXPECT_EQ(about({narrow, "optimizer.name=lion"}),
            "command line: train.expert_gradients=bf16: lion reads gradients in f32; expected adamw, or \"f32\"");
  EXPECT_EQ(complaint_about({"train.master_weights=bf16", "optimizer.name=lion"}),
            "command line: train.master_weights=bf16: lion does not round weights at random; expected adamw, or "
            "\"f32\"");
  EXPECT_EQ(complaint_about({"train.loss_scale.backoff=0.25"}),
            "command line: train.loss_scale.backoff=0.25: losses are not scaled; expected no such key, or "
            "train.loss_scale.initial above 0");
  EXPECT_NE(complaint_about({"train.loss_scale.initial=8", "train.loss_scale.backoff=1"}).find("a number below 1"),
            std::string::npos);
  EXPECT_NE(complaint_about({"optimizer.state=int8", "optimizer.name=muon"}).find("muon does not read state"),
            std::string::npos);
  EXPECT_EQ(complaint_about({narrow, "batch.sequences=4", "batch.microbatch=4"}),
            "command line: train.expert_gradients=bf16: llama has no experts; expected \"f32\"");
  EXPECT_EQ(about({"model.experts.drop_policy=position"}),
            "command line: model.experts.drop_policy=position: nothing is dropped; expected no such key, or "
            "model.experts.drop_above above 0");
  EXPECT_EQ(about({"mesh.dp=2", "mesh.ep=2", "batch.microbatch=2", "mesh.expert_capacity=0.5"}),
            "command line: mesh.expert_capacity=0.5: 0.5 times the balanced load is less than any routing sends; "
            "expected 1 or more, or 0 for the most that any routing sends");
}

// Settings that cannot give the same bits on every mesh are refused with train.reproducible=mesh.
TEST(Check, WhatCannotBeTheSameOnEveryMesh) {
  const std::string mesh = "train.reproducible=mesh";
  // Sequences need not divide by the ranks, but by the microbatch.
  EXPECT_EQ(complaint_about({mesh, "mesh.dp=3", "mesh.zero=3", "batch.sequences=8", "batch.microbatch=2"}), "");
  EXPECT_NE(complaint_about({"mesh.dp=3", "batch.sequences=8"}), "");
  EXPECT_NE(complaint_about({mesh, "batch.sequences=9", "batch.microbatch=2"}).find("multiple of microbatch 2"),
            std::string::npos);
  EXPECT_EQ(complaint_about({mesh, "optimizer.name=adafactor", "mesh.dp=2"}), "");
  for (const std::vector<std::string>& refused :
       {std::vector<std::string>{"optimizer.name=adafactor", "mesh.dp=2", "mesh.zero=1"},
        {"train.precision=fp8"},
        {"train.loss_scale.initial=8"}}) {
    std::vector<std::string> settings = refused;
    settings.insert(settings.begin(), mesh);
    EXPECT_NE(complaint_about(settings).find("or \"none\""), std::string::npos) << refused[0];
  }
  EXPECT_NE(complaint_about({mesh, "model.architecture=mixtral"}, "layers = 2\nhidden = 64\nheads = 4\n")
                .find("a model without experts"),
            std::string::npos);
}

TEST(Check, OptionsOfExperts) {
  auto about = [](std::vector<std::string> settings) {
    settings.insert(settings.begin(), {"model.architecture=mixtral", "model.ffn=96", "model.experts.count=4"});
    return complaint_about(settings);
  };
  EXPECT_EQ(about({}), "");
  EXPECT_EQ(about({"model.experts.per_token=5"}),
            "command line: model.experts.per_token=5: got 5; expected an integer from 1 to 4");
  EXPECT_EQ(about({"model.experts.ffn=48"}),
            "command line: model.experts.ffn=48: mixtral has experts as wide as its ffn; expected no experts.ffn, or "
            "an architecture with it: qwen2_moe, qwen3_moe, deepseek_moe, deepseek_v2, deepseek_v3, llama4, glm4_moe");
  EXPECT_EQ(about({"model.experts.normalise=false"}),
            "command line: model.experts.normalise=false: mixtral makes the weights of a token's experts sum to 1; "
            "expected no experts.normalise, or an architecture with it: olmoe, qwen2_moe, qwen3_moe, deepseek_moe, "
            "deepseek_v2, deepseek_v3, llama4, glm4_moe");
  EXPECT_EQ(about({"model.experts.every=2"}).substr(0, 72),
            "command line: model.experts.every=2: mixtral has experts in every layer;");
  EXPECT_EQ(about({"model.experts.shared_ffn=32"}).substr(0, 72),
            "command line: model.experts.shared_ffn=32: mixtral has no shared expert;");
  EXPECT_EQ(about({"train.recompute=latent"}),
            "command line: train.recompute=latent: mixtral has no latent attention; expected selective, which computes "
            "everything else again that latent does");
  EXPECT_EQ(complaint_about({"model.experts.count=4"}),
            "command line: model.experts.count=4: llama has no experts; expected no such key");
  EXPECT_EQ(about({"model.architecture=qwen3_moe", "model.experts.per_token=2", "model.experts.ffn=50", "mesh.tp=4"}),
            "command line: mesh.tp=4: experts.ffn 50 cannot be shared by 4 ranks; expected a divisor of 50");
  EXPECT_EQ(about({"mesh.ep=2"}),
            "command line: mesh.ep=2: ep 2 cannot be made of tp/etp 1, cp 1 and dp 1; expected 1");
  EXPECT_EQ(about({"mesh.ep=3", "mesh.dp=6"}).substr(0, 79),
            "command line: mesh.ep=3: 4 experts cannot be divided among 3 ranks; expected a ");
  EXPECT_EQ(about({"mesh.ep=2", "mesh.cp=4"}),
            "command line: mesh.ep=2: ep 2 cannot be made of tp/etp 1, cp 4 and dp 1; expected 1 or 4");
  EXPECT_NE(about({"mesh.ep=2", "mesh.tp=1048573", "mesh.dp=1048573", "mesh.etp=1"}).find("ep 2 cannot be made of"),
            std::string::npos);  // and not after counting to their product
  EXPECT_EQ(about({"mesh.tp=4", "mesh.etp=3"}),
            "command line: mesh.etp=3: etp 3 does not divide tp 4; expected 0, or a divisor of 4");
  EXPECT_EQ(about({"mesh.ep=2", "mesh.dp=2", "mesh.etp=2"}),
            "command line: mesh.etp=2: etp 2 does not divide tp 1; expected 0, or a divisor of 1");
}

TEST(Check, Mesh) {
  EXPECT_EQ(complaint_about({"mesh.dp=3"}),
            "command line: mesh.dp=3: sequences 8 is not a multiple of microbatch 1 × dp 3; expected a multiple of 3");
  EXPECT_EQ(
      complaint_about({"mesh.dp=1e6", "mesh.cp=32", "batch.sequences=1000000"}),
      "command line: mesh.dp=1e6: dp 1000000 × tp 1 × pp 1 × cp 32 makes 32000000 ranks; expected at most 16777216");
  EXPECT_EQ(complaint_about({"mesh.ep=2"}),
            "command line: mesh.ep=2: ep is 2, but the model has no experts; expected 1");
  EXPECT_EQ(complaint_about({"mesh.pp=8"}),
            "command line: mesh.pp=8: 8 stages × 1 chunks are more than the model's 2 layers; "
            "expected a layer or more in every chunk but the first and the last");
  EXPECT_EQ(complaint_about({"mesh.cp=3"}),
            "command line: mesh.cp=3: seq 64 cannot be cut into 6 equal pieces; expected a multiple of 6");
  EXPECT_EQ(complaint_about({"mesh.cp=3", "batch.seq=63", "mesh.ring_order=striped"}), "");
  EXPECT_EQ(complaint_about({"mesh.tp=3"}).substr(0, 67),
            "command line: mesh.tp=3: 4 heads cannot be shared by 3 ranks; expec");
  EXPECT_EQ(complaint_about({"mesh.zero=1", "mesh.dp=4", "mesh.zero_ranks=3"}),
            "command line: mesh.zero_ranks=3: zero_ranks 3 does not divide dp 4; expected a divisor of 4, or 0");
}

TEST(Check, Pipeline) {
  EXPECT_EQ(complaint_about({"pipeline.chunks=2"}),
            "command line: pipeline.chunks=2: 1f1b requires pipeline.chunks=1, got 2; expected 1\n"
            "  hint: interleaved, breadth-first, zbv, dualpipev, dualpipe take more");
  EXPECT_EQ(complaint_about({"pipeline.schedule=zbv"}),
            "command line: pipeline.schedule=zbv: zbv requires pipeline.chunks=2, got 1; expected 2");
  for (const char* schedule : {"dualpipev", "dualpipe"})
    EXPECT_EQ(complaint_about({fmt::format("pipeline.schedule={}", schedule)}),
              fmt::format("command line: pipeline.schedule={0}: {0} requires pipeline.chunks=2, got 1; expected 2",
                          schedule));
  EXPECT_EQ(complaint_about({"pipeline.schedule=combined-1f1b"}), "");
  EXPECT_EQ(
      complaint_about({"pipeline.deferred_gradients=cheap"}),
      "command line: pipeline.deferred_gradients=cheap: 1f1b defers no weight gradients; expected \"all\", or one of "
      "the schedules zb-h1, zbv, dualpipev, dualpipe");
  EXPECT_EQ(complaint_about({"pipeline.deferred_gradients=cheap", "mesh.pp=2", "pipeline.schedule=zb-h1"}), "");
  EXPECT_EQ(
      complaint_about({"pipeline.schedule=csv"}),
      "command line: pipeline.schedule=csv: csv names no file; expected pipeline.file with the path of the schedule");
  EXPECT_EQ(complaint_about({"pipeline.file=s.csv"}),
            "command line: pipeline.file=s.csv: a file is given, but the schedule is 1f1b; expected pipeline.schedule "
            "= \"csv\"");
}

TEST(Check, BatchAndOptimizer) {
  EXPECT_EQ(complaint_about({"batch.microbatch=3"}),
            "command line: batch.microbatch=3: sequences 8 is not a multiple of microbatch 3 × dp 1; expected a "
            "multiple of 3");
  EXPECT_EQ(complaint_about({"model.max_seq=32"}),
            "run.toml:8:1 batch.seq: seq 64 is longer than the model's max_seq 32; expected at most 32");
  EXPECT_EQ(complaint_about({"optimizer.min_lr=1"}),
            "command line: optimizer.min_lr=1: min_lr 1 is above lr 0.0003; expected at most 0.0003");
  EXPECT_EQ(
      complaint_about({"optimizer.warmup=101"}),
      "command line: optimizer.warmup=101: warmup 101 is longer than the 100 steps of the run; expected at most 100");
  EXPECT_EQ(complaint_about({"optimizer.schedule=wsd"}),
            "command line: optimizer.schedule=wsd: wsd has no decay; expected optimizer.decay, the steps of the fall "
            "at the end");
  EXPECT_EQ(complaint_about({"optimizer.decay=10"}),
            "command line: optimizer.decay=10: decay is given, but the schedule is cosine; expected optimizer.schedule "
            "= \"wsd\"\n"
            "  hint: the other schedules end with the last step");
  EXPECT_EQ(complaint_about({"optimizer.schedule=wsd", "optimizer.decay=60", "optimizer.warmup=50"}),
            "command line: optimizer.decay=60: warmup 50 and decay 60 are longer than the 100 steps of the run; "
            "expected at most 50");
}

TEST(Check, Retention) {
  EXPECT_EQ(complaint_about(
                {"checkpoint.keep_every=10", "checkpoint.keep_best=1", "checkpoint.every=20", "train.eval_every=10"}),
            "");
  EXPECT_EQ(complaint_about({"checkpoint.keep=0", "checkpoint.keep_every=10"}),
            "command line: checkpoint.keep_every=10: it has no effect where checkpoint.keep = 0 keeps all; expected "
            "checkpoint.keep of at least 1, or leave it out");
  for (const char* eval : {"train.eval_every=0", "train.eval_every=15"})
    EXPECT_NE(
        complaint_about({"checkpoint.keep_best=1", "checkpoint.every=20", eval}).find("train.eval_every that divides"),
        std::string::npos)
        << eval;
}

TEST(Check, Spikes) {
  EXPECT_EQ(complaint_about({"train.spike.action=skip", "train.spike.most_skips=3"}), "");
  EXPECT_EQ(complaint_about({"train.spike.action=none", "train.spike.most_skips=3"}), "");
  EXPECT_EQ(complaint_about({"train.spike.most_skips=3"}),
            "command line: train.spike.most_skips=3: train.spike.most_skips is given, but the action is none; expected "
            "train.spike.action = \"skip\"");
  EXPECT_EQ(complaint_about({"train.spike.action=skip", "train.spike.rate_steps=3"}),
            "command line: train.spike.rate_steps=3: train.spike.rate_steps is given, but the action is skip; expected "
            "train.spike.action = \"lower_rate\"");
  EXPECT_EQ(complaint_about({"train.spike.action=rewind", "checkpoint.every=0"}),
            "command line: train.spike.action=rewind: rewind needs checkpoints, and none is written before the end; "
            "expected checkpoint.every above 0");
}

TEST(Check, NameAndData) {
  EXPECT_EQ(complaint_about({"name=../x"}),
            "command line: name=../x: got \"../x\"; expected a name for a directory, without '/'");
  EXPECT_EQ(complaint_about({"data.train=[]"}),
            "command line: data.train=[]: names no data; expected files, or \"stories\"");
  EXPECT_EQ(complaint_about({"data.train=['a.txt', 'b.txt']", "data.weights=[1, 2, 3]"}),
            "command line: data.weights=[1, 2, 3]: 3 weights for 2 entries of data.train; expected one for each");
  EXPECT_NE(complaint_about({"data.weights=[1, 0]"}).find("a list of numbers above 0"), std::string::npos);
  EXPECT_EQ(complaint_about({"data.validation=v.txt", "data.validation_split=tail"}),
            "command line: data.validation_split=tail: is not used, because no part of the training data is held out; "
            "expected a data.validation_fraction above 0, without data.validation");
  EXPECT_EQ(complaint_about({"data.validation=v.txt", "data.validation_fraction=0.1"}),
            "command line: data.validation_fraction=0.1: is not used, because data.validation names files; expected "
            "one of the two");
  EXPECT_EQ(complaint_about({"data.validation_fraction=0", "train.eval_every=5"}),
            "command line: train.eval_every=5: there is no validation data to measure; expected data.validation, or a "
            "data.validation_fraction above 0");
  EXPECT_EQ(complaint_about({"data.tokenizer=t.json", "data.tokenizer_vocab=300"}),
            "command line: data.tokenizer_vocab=300: is not used, because data.tokenizer brings a tokenizer; expected "
            "one of the two\n"
            "  hint: data.tokenizer_vocab is the size of a tokenizer that is trained here: leave it out");
  EXPECT_EQ(
      complaint_about({"data.format=tokens-u16"}),
      "command line: data.format=tokens-u16: tokens-u16 files do not contain the size of the vocabulary; expected "
      "model.vocab or data.tokenizer");
}

TEST(Check, HandmadeConfigs) {
  RunConfig run;
  run.model.preset = "gpt2";
  EXPECT_TRUE(check(run).empty());
  run.batch.seq = 2048;
  ASSERT_EQ(check(run).size(), 1u);
  EXPECT_EQ(check(run)[0].text(),
            "batch.seq (default): seq 2048 is longer than the model's max_seq 1024; expected at most 1024");
}

TEST(Resolve, DerivesWhatIsNotGiven) {
  ModelSpec llama =
      resolved({"model.architecture=llama", "model.layers=2", "model.hidden=4096", "model.heads=32", "batch.seq=99"});
  EXPECT_EQ(llama.kv_heads, 32);
  EXPECT_EQ(llama.head_dim, 128);
  EXPECT_EQ(llama.ffn, 11008);  // Llama 7B
  EXPECT_EQ(llama.max_seq, 99);
  EXPECT_EQ(llama.vocab, 0);
  EXPECT_FALSE(llama.tied_head);
  EXPECT_EQ(llama.rope_scaling, std::nullopt);
  ModelSpec gpt2 = resolved({"model.architecture=gpt2", "model.layers=2", "model.hidden=64", "model.heads=4"});
  EXPECT_EQ(gpt2.ffn, 256);
  EXPECT_EQ(gpt2.head_dim, 16);
  EXPECT_TRUE(gpt2.tied_head);
}

TEST(Resolve, LaysFieldsOverThePreset) {
  ModelSpec expected = find_preset("llama3.1-8b")->spec;
  EXPECT_EQ(resolved({"model.preset=llama3.1-8b"}), expected);
  expected.layers = 3;
  expected.rope_scaling->factor = 16;
  expected.vocab = 0;
  EXPECT_EQ(resolved({"model.preset=llama3.1-8b", "model.layers=3", "model.rope_scaling.factor=16", "model.vocab=0"}),
            expected);
  EXPECT_EQ(resolved({"model.preset=llama3.1-8b", "model.rope_scaling.factor=1"}).rope_scaling, std::nullopt);
  // Preset values that follow from its other sizes follow from the new sizes.
  ModelSpec small = resolved({"model.preset=llama-7b", "model.hidden=96", "model.heads=6"});
  EXPECT_EQ(small.head_dim, 16);
  EXPECT_EQ(small.kv_heads, 6);
  EXPECT_EQ(small.ffn, 256);
}

class FromDirectory : public testing::Test {
 protected:
  FromDirectory() { fs::create_directories(dir_); }
  ~FromDirectory() override { fs::remove_all(dir_); }
  void write(const std::string& text) { std::ofstream(dir_ / "config.json") << text; }
  std::string from() const { return "model.from=" + dir_.string(); }

  fs::path dir_ = fs::path(testing::TempDir()) / "sextant_from_test";
};

TEST_F(FromDirectory, ShapeComesFromConfigJson) {
  ModelSpec expected = find_preset("llama3.2-1b")->spec;
  write(hf_config_json(expected));
  EXPECT_EQ(resolved({from()}), expected);
  expected.max_seq = 5000;
  expected.rope_theta = 1e6;
  EXPECT_EQ(resolved({from(), "model.max_seq=5000", "model.rope_theta=1e6"}), expected);
}

TEST_F(FromDirectory, WeightsDecideTheShape) {
  write(hf_config_json(find_preset("gpt2")->spec));
  EXPECT_EQ(complaint_about({from(), "model.layers=3", "model.max_seq=77", "model.preset=gpt2"}, ""),
            "command line: " + from() +
                ": model.preset is given too; expected one of the two\n"
                "command line: model.layers=3: is decided by the weights of model.from; expected one of the two\n"
                "command line: model.max_seq=77: is decided by the weights of model.from; expected one of the two");
}

TEST_F(FromDirectory, Unreadable) {
  std::string file = (dir_ / "config.json").string();
  EXPECT_EQ(complaint_about({from()}, ""),
            "command line: " + from() + ": file not found: " + file + "; expected a Hugging Face model directory");
  EXPECT_NE(complaint_about({"model.from=owner/name"}, "").find("(hf download owner/name --local-dir name)"),
            std::string::npos);
  std::ofstream(dir_ / "adapter_config.json") << R"({"peft_type": "LORA", "base_model_name_or_path": "owner/base"})";
  std::string adapter = complaint_about({from()}, "");
  EXPECT_NE(adapter.find("an adapter (LORA) of owner/base, without that model's weights"), std::string::npos)
      << adapter;
  EXPECT_NE(adapter.find("merge_and_unload"), std::string::npos) << adapter;
  write("{\"model_type\": \"mamba\"}");
  EXPECT_EQ(complaint_about({from()}, ""),
            file + " model_type: \"mamba\" is not supported; expected one of " + all_hf_types());
}

}  // namespace
}  // namespace sextant
