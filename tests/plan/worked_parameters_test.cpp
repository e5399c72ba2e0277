// Parameters: the cases P1 to P12 of the cookbook's calc_transformer_params.py, and what it gets wrong.
#include <fmt/format.h>

#include "config/resolve.h"
#include "plan/worked_case.h"

namespace sextant {
namespace {

// Weights of the matrices, without biases and norms.
struct Matrices {
  int64_t embedding = 0, attention = 0, mlp = 0;
};

Matrices matrices_of(const ModelSpec& spec) {
  Matrices sum;
  Graph graph = build_model(spec, {.seq = 1}, single_rank_mesh());
  for (const Value& value : graph.values) {
    if (value.kind != ValueKind::parameter || value.shape.rank() != 2) continue;
    bool attention = value.path.find(".attn.") != std::string::npos,
         mlp = value.path.find(".mlp.") != std::string::npos;
    if (value.path == "positions.weight") continue;
    (attention ? sum.attention : mlp ? sum.mlp : sum.embedding) += value.shape.count();
  }
  return sum;
}

struct ParameterCase {
  const char* row;
  ModelSpec spec;
  double embedding, attention, mlp;  // printed
};

// The matrices are right there.
TEST(WorkedParameters, MatricesAreThoseOfTheCookbook) {
  const ParameterCase cases[] = {
      {"P1", with_vocab(spec_of("gpt-neox-20b"), 51200), 629.15e6, 6.64e9, 13.29e9},
      {"P2", spec_of("gpt-neox-20b"), 619.71e6, 6.64e9, 13.29e9},
      {"P3", untied(with_vocab(spec_of("gpt3-175b"), 51200)), 1.26e9, 57.98e9, 115.96e9},
      {"P4", untied(spec_of("gpt3-175b")), 1.24e9, 57.98e9, 115.96e9},
      {"P7", spec_of("gpt2"), 38.6e6, 28.31e6, 56.62e6},
      {"P8", spec_of("pythia-6.9b"), 413.14e6, 2.15e9, 4.29e9},
      {"P9", spec_of("pythia-12b"), 519.05e6, 3.77e9, 7.55e9},
      // Its MLPs are a whole number of times as wide as the model: 4 there, 3.5 in Llama 2.
      {"P10", spec_of("llama2-70b"), 524.29e6, 12.08e9, 64.42e9 * 3.5 / 4},
  };
  for (const ParameterCase& c : cases) {
    Matrices ours = matrices_of(c.spec);
    expect_printed(static_cast<double>(ours.embedding), c.embedding, c.row);
    expect_printed(static_cast<double>(ours.attention), c.attention, c.row);
    expect_printed(static_cast<double>(ours.mlp), c.mlp, c.row);
  }
}

// The totals are not: it adds a row of positions for each token whether or not the model has them, counts norms at
// 8·L·h + 2·h where two LayerNorms with biases have 4·L·h + 2·h, and leaves out the 9·L·h of the GEMMs' biases.
TEST(WorkedParameters, TotalsAreThoseOfTheModels) {
  struct Total {
    const char* row;
    const char* preset;
    int64_t vocab, there, here;
  };
  for (const Total& c : {Total{"P1", "gpt-neox-20b", 51200, 20'575'236'096, 20'564'004'864},
                         Total{"P2", "gpt-neox-20b", 50432, 20'565'798'912, 20'554'567'680}}) {
    ModelSpec spec = with_vocab(spec_of(c.preset), c.vocab);
    EXPECT_EQ(parameters_of(spec), c.here) << c.row;
    EXPECT_EQ(c.there - c.here, 2048 * spec.hidden + (8 - 4 - 9) * spec.layers * spec.hidden) << c.row;
  }
  // P3, P4: GPT-3's head is its embedding (it counts two of them), and it has positions.
  ModelSpec gpt3 = untied(with_vocab(spec_of("gpt3-175b"), 51200));
  EXPECT_EQ(175'239'094'272 - parameters_of(gpt3), (8 - 4 - 9) * gpt3.layers * gpt3.hidden);
  EXPECT_EQ(parameters_of(spec_of("gpt3-175b")), 174'604'259'328);
  EXPECT_EQ(parameters_of(untied(spec_of("gpt3-175b"))) - parameters_of(spec_of("gpt3-175b")), int64_t{50257} * 12288);
  // P7: 124,393,728 there, 5·L·h of norms and biases short.
  EXPECT_EQ(parameters_of(spec_of("gpt2")), 124'439'808);
  EXPECT_EQ(124'439'808 - 124'393'728, 5 * 12 * 768);
  // P8 to P10: 6.87, 11.86 and 77.07 B there.
  EXPECT_EQ(parameters_of(spec_of("pythia-6.9b")), 6'857'302'016);
  EXPECT_EQ(parameters_of(spec_of("pythia-12b")), 11'846'072'320);
  EXPECT_EQ(parameters_of(spec_of("llama2-70b")), 68'976'648'192);
}

// P12: an MLP 3.5 times as wide as the model is no integer there, and a model here.
TEST(WorkedParameters, TheMlpMayBeAnyWidth) {
  ModelSpec spec = spec_of("llama3.1-8b");
  EXPECT_EQ(2 * spec.ffn, 7 * spec.hidden);
  EXPECT_EQ(matrices_of(spec).mlp, 32 * 3 * spec.hidden * spec.hidden * 7 / 2);
  EXPECT_EQ(parameters_of(spec), 8'030'261'248);
  spec.ffn = 14337;  // nor need it be even
  EXPECT_EQ(parameters_of(spec), 8'030'261'248 + 32 * 3 * 4096);
}

// Positions are a table only in models that have one: no 8 M parameters of them in a Llama.
TEST(WorkedParameters, PartsSumUp) {
  for (const char* preset : {"gpt2", "llama3.1-8b", "llama3.2-1b"}) {
    RunPlan plan = plan_of(spec_of(preset), {.seq = 128});
    int64_t sum = 0;
    bool positions = false;
    for (const ParameterCount& part : plan.by_part)
      sum += part.each * part.times, positions = positions || part.part == "positions";
    EXPECT_EQ(sum, plan.parameters) << preset;
    EXPECT_EQ(positions, std::string(preset) == "gpt2") << preset;
  }
}

// A13: people start weights of a model of 14336 at sqrt(1/(3·h)) or sqrt(2/(5·h)). What is asked for is what the Graph
// says, and what ends in the residual stream is narrower by the root of how often that happens.
TEST(WorkedParameters, InitialWeightsAreAsWideAsAsked) {
  for (auto [asked, printed] :
       {std::pair{std::sqrt(1 / (3 * 14336.0)), 0.004822}, {std::sqrt(2 / (5 * 14336.0)), 0.005282}}) {
    EXPECT_NEAR(asked, printed, 5.1e-7);
    ModelSpec spec = resolve_model(
        load_config("", std::vector<std::string>{"model.preset=bloom-176b", fmt::format("model.init_std={}", asked)}));
    Graph graph = build_model(spec, {.seq = 1}, single_rank_mesh());
    for (const char* path : {"embed.weight", "layers.0.attn.qkv.weight", "layers.69.mlp.up.weight"})
      EXPECT_DOUBLE_EQ(graph.find(path)->init.std, asked) << path;
    for (const char* path : {"layers.0.attn.out.weight", "layers.69.mlp.down.weight"})
      EXPECT_DOUBLE_EQ(graph.find(path)->init.std, asked / std::sqrt(2 * 70.0)) << path;
  }
}

// Experts that are not there yet are refused by name rather than counted by a rule that takes a top-k and never uses
// it.
TEST(WorkedParameters, OtherExpertsAreRefusedByName) {
  EXPECT_NE(complaint_about({"model.preset=switch-base"}).find("of models with experts only Mixtral"),
            std::string::npos);
  EXPECT_NE(complaint_about({"model.preset=llama-4-scout"}).find("of models with experts only Mixtral"),
            std::string::npos);
  EXPECT_NE(complaint_about({"model.preset=gpt2", "model.experts=512"}).find("model.experts=512"), std::string::npos);
  EXPECT_NE(complaint_about({"model.preset=gpt2", "mesh.ep=8"}).find("the model has no experts"), std::string::npos);
  EXPECT_EQ(complaint_about({"model.preset=gpt2"}), "");
}

}  // namespace
}  // namespace sextant
