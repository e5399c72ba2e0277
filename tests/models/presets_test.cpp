#include "models/presets.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "models/hf_config.h"

namespace sextant {
namespace {

// The textbook formulas, written without our graphs.
int64_t parameter_count(const ModelSpec& s) {
  int64_t h = s.hidden, heads = s.vocab * h * (s.tied_head ? 1 : 2);
  if (s.architecture == "gpt2") return heads + s.max_seq * h + s.layers * (12 * h * h + 13 * h) + 2 * h;
  int64_t q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
  return heads + s.layers * (2 * h * q + 2 * h * kv + 3 * h * s.ffn + 2 * h) + h;
}

// Elements in the released weights, a tied matrix counted once.
const std::map<std::string_view, int64_t> kPublishedCounts = {
    {"gpt2", 124'439'808},          {"gpt2-medium", 354'823'168},       {"gpt2-large", 774'030'080},
    {"gpt2-xl", 1'557'611'200},     {"llama-7b", 6'738'415'616},        {"llama-13b", 13'015'864'320},
    {"llama-30b", 32'528'943'616},  {"llama-65b", 65'285'660'672},      {"llama2-7b", 6'738'415'616},
    {"llama2-13b", 13'015'864'320}, {"llama2-70b", 68'976'648'192},     {"llama3-8b", 8'030'261'248},
    {"llama3-70b", 70'553'706'496}, {"llama3.1-8b", 8'030'261'248},     {"llama3.1-70b", 70'553'706'496},
    {"llama3.2-1b", 1'235'814'400}, {"llama3.1-405b", 405'853'388'800}, {"llama3.2-3b", 3'212'749'824},
};

TEST(Presets, CountsAreThePublishedOnes) {
  EXPECT_EQ(presets().size(), kPublishedCounts.size());
  for (const Preset& preset : presets()) {
    ASSERT_TRUE(kPublishedCounts.contains(preset.name)) << preset.name;
    EXPECT_EQ(parameter_count(preset.spec), kPublishedCounts.at(preset.name)) << preset.name;
  }
}

TEST(Presets, AreSoundAndFound) {
  for (const Preset& preset : presets()) {
    for (const SpecProblem& problem : problems_of(preset.spec)) ADD_FAILURE() << preset.name << ": " << problem.got;
    EXPECT_EQ(find_preset(preset.name), &preset);
    EXPECT_EQ(preset.spec.eos_tokens.size(), 1u);
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
}

TEST(Presets, SurviveConfigJson) {
  for (const Preset& preset : presets()) EXPECT_EQ(spec_from_hf_config(hf_config_json(preset.spec), "x"), preset.spec);
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
