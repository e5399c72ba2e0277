#include "models/presets.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>

#include "models/hf_config.h"
#include "models/model.h"

namespace sextant {
namespace {

// Elements in the released weights, a tied matrix counted once: as published, and where no exact number is (GPT-3,
// MT-NLG, OPT, MPT, Nemotron), as transformers counts a model of the same config.json.
const std::map<std::string_view, int64_t> kPublishedCounts = {
    {"gpt2", 124'439'808},
    {"gpt2-medium", 354'823'168},
    {"gpt2-large", 774'030'080},
    {"gpt2-xl", 1'557'611'200},
    {"gpt3-125m", 125'226'240},
    {"gpt3-350m", 355'871'744},
    {"gpt3-760m", 760'300'032},
    {"gpt3-1.3b", 1'315'723'264},
    {"gpt3-2.7b", 2'651'553'280},
    {"gpt3-6.7b", 6'658'404'352},
    {"gpt3-13b", 12'853'386'240},
    {"gpt3-175b", 174'604'259'328},
    {"mt-nlg-530b", 529'600'819'200},
    {"gpt-neox-20b", 20'554'567'680},
    {"pythia-70m", 70'426'624},
    {"pythia-160m", 162'322'944},
    {"pythia-410m", 405'334'016},
    {"pythia-1b", 1'011'781'632},
    {"pythia-1.4b", 1'414'647'808},
    {"pythia-2.8b", 2'775'208'960},
    {"pythia-6.9b", 6'857'302'016},
    {"pythia-12b", 11'846'072'320},
    {"opt-125m", 125'239'296},
    {"opt-1.3b", 1'315'758'080},
    {"opt-2.7b", 2'651'596'800},
    {"opt-6.7b", 6'658'473'984},
    {"opt-13b", 12'853'473'280},
    {"opt-30b", 29'974'540'288},
    {"opt-66b", 65'719'701'504},
    {"opt-175b", 174'604'468'224},
    {"bloom-560m", 559'214'592},
    {"bloom-1b1", 1'065'314'304},
    {"bloom-1b7", 1'722'408'960},
    {"bloom-3b", 3'002'557'440},
    {"bloom-7b1", 7'069'016'064},
    {"bloom-176b", 176'247'271'424},
    {"mpt-125m", 123'636'480},
    {"mpt-350m", 353'616'896},
    {"mpt-760m", 756'917'760},
    {"mpt-1b", 1'311'213'568},
    {"mpt-3b", 2'645'690'880},
    {"mpt-7b", 6'649'286'656},
    {"mpt-13b", 12'841'210'880},
    {"mpt-30b", 29'957'200'896},
    {"mpt-70b", 64'838'443'008},
    {"llama-7b", 6'738'415'616},
    {"llama-13b", 13'015'864'320},
    {"llama-30b", 32'528'943'616},
    {"llama-65b", 65'285'660'672},
    {"llama2-7b", 6'738'415'616},
    {"llama2-13b", 13'015'864'320},
    {"llama2-70b", 68'976'648'192},
    {"llama3-8b", 8'030'261'248},
    {"llama3-70b", 70'553'706'496},
    {"llama3.1-8b", 8'030'261'248},
    {"llama3.1-70b", 70'553'706'496},
    {"llama3.1-405b", 405'853'388'800},
    {"llama3.2-1b", 1'235'814'400},
    {"llama3.2-3b", 3'212'749'824},
    {"llama3.3-70b", 70'553'706'496},
    {"mistral-7b", 7'241'732'096},
    {"mistral-7b-v0.3", 7'248'023'552},
    {"mistral-nemo-12b", 12'247'782'400},
    {"mistral-large-2", 122'610'069'504},
    {"qwen1.5-72b", 72'287'920'128},
    {"qwen2-0.5b", 494'032'768},
    {"qwen2-1.5b", 1'543'714'304},
    {"qwen2-7b", 7'615'616'512},
    {"qwen2-72b", 72'706'203'648},
    {"qwen2.5-0.5b", 494'032'768},
    {"qwen2.5-1.5b", 1'543'714'304},
    {"qwen2.5-3b", 3'085'938'688},
    {"qwen2.5-7b", 7'615'616'512},
    {"qwen2.5-14b", 14'770'033'664},
    {"qwen2.5-32b", 32'763'876'352},
    {"qwen2.5-72b", 72'706'203'648},
    {"qwen3-0.6b", 596'049'920},
    {"qwen3-1.7b", 1'720'574'976},
    {"qwen3-4b", 4'022'468'096},
    {"qwen3-8b", 8'190'735'360},
    {"qwen3-14b", 14'768'307'200},
    {"qwen3-32b", 32'762'123'264},
    {"nemotron4-15b", 15'628'775'424},
    {"nemotron4-340b", 341'029'195'776},
};

// What papers print, in billions, where transformers has no such model.
const std::map<std::string_view, double> kPrintedBillions = {
    {"palm-8b", 8.63}, {"palm-62b", 62.50}, {"palm-540b", 540.35}};

TEST(Presets, CountsAreThePublishedOnes) {
  EXPECT_EQ(presets().size(), kPublishedCounts.size() + kPrintedBillions.size());
  for (const Preset& preset : presets()) {
    // From the graph itself; a token is enough for it.
    int64_t count = parameter_count(build_model(preset.spec, {.seq = 1}, single_rank_mesh()));
    if (kPrintedBillions.contains(preset.name)) {
      EXPECT_NEAR(static_cast<double>(count) / 1e9, kPrintedBillions.at(preset.name), 0.01) << preset.name;
      continue;
    }
    ASSERT_TRUE(kPublishedCounts.contains(preset.name)) << preset.name;
    EXPECT_EQ(count, kPublishedCounts.at(preset.name)) << preset.name;
  }
}

// Every parameter is in the file, every row of it once.
TEST(Presets, EveryParameterHasItsPlaceInTheFile) {
  std::set<std::string> seen;
  for (const Preset& preset : presets()) {
    ModelSpec spec = preset.spec;
    spec.layers = 2;
    if (!seen.insert(fmt::format("{} {} {} {}", spec.architecture, spec.qkv_bias, spec.qk_norm, spec.tied_head)).second)
      continue;
    std::map<std::string, int64_t> rows;
    for (const HfTensor& tensor : architecture_of(spec).tensors(spec)) rows[tensor.parameter] += tensor.rows;
    Graph graph = build_model(spec, {.seq = 1}, single_rank_mesh());
    for (const Value& value : graph.values) {
      if (value.kind != ValueKind::parameter) continue;
      EXPECT_EQ(rows[value.path], value.shape[0]) << preset.name << " " << value.path;
      rows.erase(value.path);
    }
    EXPECT_TRUE(rows.empty()) << preset.name << " " << rows.begin()->first;
  }
}

TEST(Presets, AreSoundAndFound) {
  for (const Preset& preset : presets()) {
    for (const SpecProblem& problem : problems_of(preset.spec)) ADD_FAILURE() << preset.name << ": " << problem.got;
    EXPECT_EQ(find_preset(preset.name), &preset);
    EXPECT_EQ(preset.spec.eos_tokens.size(), preset.spec.architecture == "palm" ? 0u : 1u);
  }
  EXPECT_EQ(find_preset("llama"), nullptr);
}

TEST(Presets, ValuesThatCountsDoNotShow) {
  auto spec = [](std::string_view name) { return find_preset(name)->spec; };
  EXPECT_EQ(spec("llama-7b").norm_eps, 1e-6);
  EXPECT_EQ(spec("llama-65b").norm_eps, 1e-5);
  EXPECT_EQ(spec("llama-7b").max_seq, 2048);
  EXPECT_EQ(spec("llama2-7b").norm_eps, 1e-5);
  EXPECT_EQ(spec("llama2-70b").rope_theta, 10000);
  EXPECT_EQ(spec("llama3-8b").rope_theta, 500000);
  EXPECT_EQ(spec("llama3-8b").rope_scaling, std::nullopt);
  EXPECT_EQ(spec("llama3.1-405b").rope_scaling, (RopeScaling{8, 1, 4, 8192}));
  EXPECT_EQ(spec("llama3.2-3b").rope_scaling, (RopeScaling{32, 1, 4, 8192}));
  EXPECT_EQ(spec("llama3.2-3b").head_dim, 128);
  EXPECT_EQ(spec("gpt2").bos_token, 50256);
  EXPECT_FALSE(spec("gpt-neox-20b").exact_gelu);  // its config.json says gelu_fast
  EXPECT_TRUE(spec("pythia-70m").exact_gelu);
  EXPECT_EQ(rotary_dims(spec("gpt-neox-20b")), 24);
  EXPECT_EQ(rotary_dims(spec("nemotron4-340b")), 96);
  EXPECT_EQ(spec("mistral-7b").window, 4096);
  EXPECT_EQ(spec("mistral-7b-v0.3").window, 0);
  EXPECT_EQ(spec("qwen3-4b").head_dim, 128);
  EXPECT_TRUE(spec("qwen2.5-7b").qkv_bias);
}

TEST(Presets, SurviveConfigJson) {
  for (const Preset& preset : presets()) EXPECT_EQ(spec_from_hf_config(hf_config_json(preset.spec), "x"), preset.spec);
}

TEST(Presets, WhatIsNotSupportedIsSaidSo) {
  for (const Preset& preset : presets()) EXPECT_EQ(why_unsupported(preset.name), "") << preset.name;
  for (std::string_view name : {"mixtral-8x7b", "qwen3-30b-a3b", "qwen3_moe", "llama4"})
    EXPECT_EQ(why_unsupported(name), "models with experts are not supported yet") << name;
  for (std::string_view name : {"deepseek-v3", "deepseek_v3", "DeepSeek-V2-Lite"})
    EXPECT_EQ(why_unsupported(name), "models with experts and latent attention are not supported yet") << name;
}

// Every fact about an architecture is in one list; the others follow it.
TEST(Spec, ListsOfArchitecturesAgree) {
  std::string names;
  for (const ArchitectureTraits& traits : all_traits())
    names += fmt::format("{}{}", names.empty() ? "" : "|", traits.name);
  EXPECT_EQ(names, kArchitectures);
  ASSERT_EQ(architectures().size(), all_traits().size());
  for (size_t i = 0; i < all_traits().size(); ++i) EXPECT_EQ(architectures()[i].name, all_traits()[i].name);
}

TEST(Spec, DefaultFfnIsThatOfTheFirstModels) {
  EXPECT_EQ(default_ffn("gpt2", 768), 3072);
  for (std::string_view name : {"llama-7b", "llama-13b", "llama-30b", "llama-65b"})
    EXPECT_EQ(default_ffn("llama", find_preset(name)->spec.hidden), find_preset(name)->spec.ffn);
}

TEST(Spec, SizesWithoutBoundsAreRefused) {
  ModelSpec spec = find_preset("gpt2")->spec;
  spec.layers = int64_t{1} << 62;
  spec.heads = 0;
  spec.vocab = -1;
  std::vector<SpecProblem> problems = problems_of(spec);
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_EQ(problems[0].fields.front(), "layers");
  EXPECT_EQ(problems[0].expected, "an integer from 1 to 16384");
  EXPECT_EQ(problems[1].fields.front(), "heads");
  EXPECT_EQ(problems[2].fields.front(), "vocab");
}

}  // namespace
}  // namespace sextant
