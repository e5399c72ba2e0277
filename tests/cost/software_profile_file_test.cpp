#include "cost/software_profile_file.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/program_folder.h"
#include "cost/machine_file.h"
#include "cost/network.h"
#include "cost/passes.h"
#include "ops/ops.h"

namespace sextant {
namespace {

constexpr std::string_view kTwo = R"toml(
[first]
about = "the first"
source = "a paper (2024)"
matches = ["Paper", "Other paper :: eager"]
attention = "flash2"
elementwise = "jit"
repacks_attention = true
embedding_gemm = true
dropout = true
loss_in_f32 = true
gradient_wire_bytes = 2
weight_wire_bytes = 1
gradient_bytes = 2
accumulation_bytes = 10
update_bytes = 14
optimizer_bytes = 16
overlap = ["gradients", "tensor"]
host_us_per_kernel = 7.5
far_gb_s_per_node = 50
recompute = "full"
interleaved_chunks = 2

[second]
like = "first"
source = "its appendix (2025)"
matches = ["Paper B", "Other paper"]
attention = "unfused"
overlap = ["pipeline"]
)toml";

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  size_t at = text.find(what);
  EXPECT_NE(at, text.npos) << what;
  return text.replace(at, what.size(), with);
}

TEST(ProfileFile, FactsArriveWhereTheyBelong) {
  std::vector<SoftwareProfile> profiles = parse_profiles(kTwo, "software.toml");
  ASSERT_EQ(profiles.size(), 2u);
  const SoftwareProfile& first = profiles[0];
  EXPECT_EQ(first.name, "first");
  EXPECT_EQ(first.attention, AttentionKernel::fused);
  EXPECT_EQ(first.attention_table, "flash2");
  EXPECT_EQ(first.elementwise, Elementwise::jit);
  EXPECT_TRUE(first.repacks_attention && first.embedding_gemm && first.dropout && first.loss_in_f32);
  EXPECT_EQ(first.gradient_wire_bytes, 2);
  EXPECT_EQ(first.weight_wire_bytes, 1);
  EXPECT_EQ(first.gradient_bytes, 2);
  EXPECT_EQ(first.accumulation_bytes, 10);
  EXPECT_EQ(first.update_bytes, 14);
  EXPECT_EQ(first.optimizer_bytes, 16);
  EXPECT_TRUE(first.overlap_gradients && first.overlap_tensor);
  EXPECT_FALSE(first.overlap_gathers || first.overlap_pipeline);
  EXPECT_EQ(first.host_s_per_kernel, 7.5e-6);
  EXPECT_EQ(first.far_bytes_per_s_per_node, 50e9);
  EXPECT_EQ(first.recompute, "full");
  EXPECT_EQ(first.interleaved_chunks, 2);
}

TEST(ProfileFile, AProfileLikeAnotherTakesTheSoftwareButNotTheClusterNorTheRuns) {
  SoftwareProfile second = parse_profiles(kTwo, "software.toml").at(1);
  EXPECT_EQ(second.attention, AttentionKernel::unfused);
  EXPECT_EQ(second.optimizer_bytes, 16);
  EXPECT_EQ(second.elementwise, Elementwise::jit);
  EXPECT_TRUE(second.overlap_pipeline);
  EXPECT_FALSE(second.overlap_gradients);
  EXPECT_FALSE(second.far_bytes_per_s_per_node);
  EXPECT_EQ(second.about, "");
  EXPECT_EQ(second.matches.size(), 2u);
}

TEST(ProfileFile, TheLongestMatchWins) {
  std::vector<SoftwareProfile> profiles = parse_profiles(kTwo, "software.toml");
  auto name = [&](std::string_view source, std::string_view schedule = "") {
    const SoftwareProfile* found = profile_for_source(profiles, source, schedule);
    return found ? found->name : "";
  };
  EXPECT_EQ(name("Paper A, table 1"), "first");
  EXPECT_EQ(name("Paper B, table 1"), "second");
  EXPECT_EQ(name("Other paper", "compiled"), "second");
  EXPECT_EQ(name("Other paper, table 2", "FSDP eager"), "first");
  EXPECT_EQ(name("A Paper"), "");
  EXPECT_EQ(&profile_named(profiles, "second"), &profiles[1]);
  EXPECT_THROW(profile_named(profiles, "third"), UserError);
}

TEST(ProfileFile, AllThatIsWrongIsSaidAtOnce) {
  std::string text = replaced(std::string(kTwo), "\"jit\"", "\"magic\"");
  text = replaced(text, "\"tensor\"]", "\"tensors\"]");
  text = replaced(text, "like = \"first\"", "like = \"zeroth\"");
  text = replaced(text, "source = \"its appendix (2025)\"\n", "");
  text = replaced(text, "dropout = true", "drop = true");
  text = "top = 1\n" + text;
  try {
    parse_profiles(text, "s.toml");
    FAIL();
  } catch (const UserError& error) {
    std::string said = error.what();
    for (const char* words : {"s.toml:1:1 top", "s.toml:8:1 first.elementwise", "one of fused, compiled, jit, eager",
                              "s.toml:11:1 first.drop", "s.toml:19:1 first.overlap", "s.toml:26:1 second.like",
                              "the name of a profile further up", "has no source"})
      EXPECT_NE(said.find(words), said.npos) << words << "\nin:\n" << said;
    EXPECT_EQ(error.complaints().size(), 6u);
  }
}

TEST(ProfileFile, SingleOpsAndLossesMayBeWrittenOut) {
  SoftwareProfile plain = parse_profiles(kTwo, "software.toml").at(0);
  EXPECT_TRUE(plain.keeps_logits);
  EXPECT_FALSE(plain.loss_eager);
  EXPECT_FALSE(plain.zero_coalesces);
  std::string text = replaced(std::string(kTwo), "loss_in_f32 = true\n",
                              "loss_in_f32 = true\nloss_eager = true\nholds_last_logits = true\nheadroom_gb = "
                              "3\neager_ops = [\"swiglu\", \"rope\"]\nzero_coalesces = true\n");
  SoftwareProfile first = parse_profiles(text, "software.toml").at(0);
  EXPECT_TRUE(first.loss_eager && first.holds_last_logits);
  EXPECT_EQ(first.headroom_bytes, 3e9);
  EXPECT_TRUE(first.zero_coalesces);
  EXPECT_GT(passes_of(first, ops::swiglu).bytes, passes_of(plain, ops::swiglu).bytes);
  EXPECT_EQ(passes_of(first, ops::add).bytes, passes_of(plain, ops::add).bytes);
  try {
    parse_profiles(replaced(text, "\"rope\"", "\"linear\""), "s.toml");
    FAIL();
  } catch (const UserError& error) {
    std::string said = error.what();
    EXPECT_NE(said.find("first.eager_ops"), said.npos) << said;
    EXPECT_NE(said.find("rope, swiglu, swiglu_backward"), said.npos) << said;
  }
}

TEST(ProfileFile, OverlapsAreListedWhenOneIsUnknown) {
  SoftwareProfile first =
      parse_profiles(replaced(std::string(kTwo), "[\"gradients\", \"tensor\"]", "[\"tensor_backward\"]"), "s.toml")
          .at(0);
  EXPECT_TRUE(first.overlap_tensor_backward);
  EXPECT_FALSE(first.overlap_tensor || first.overlap_gradients);
  try {
    parse_profiles(replaced(std::string(kTwo), "\"tensor\"]", "\"tensors\"]"), "s.toml");
    FAIL();
  } catch (const UserError& error) {
    std::string said = error.what();
    EXPECT_NE(said.find("gradients, gathers, pipeline, tensor, tensor_backward"), said.npos) << said;
  }
}

TEST(ProfileFile, TheNetworkOfAProfileIsItsSources) {
  Machine machine = load_machine("h100-sxm");
  SoftwareProfile told = own_profile();
  EXPECT_EQ(with_network_of(told, machine).levels.back().link, machine.levels.back().link);
  told.far_bytes_per_s_per_node = 80e9, told.far_is_reached = true, told.far_latency_s = 1e-4;
  Link far = with_network_of(told, machine).levels.back().link;
  EXPECT_EQ(far.bytes_per_s, 10e9);
  EXPECT_EQ(far.alone_s, 1e-4);
  EXPECT_TRUE(far.reached);
}

TEST(ProfileFile, WhatWasReachedIsGiven) {
  std::string text =
      replaced(std::string(kTwo), "far_gb_s_per_node = 50\n", "far_gb_s_per_node = 50\nfar_is_reached = true\n");
  EXPECT_TRUE(parse_profiles(text, "s.toml").at(0).far_is_reached);
  EXPECT_FALSE(parse_profiles(text, "s.toml").at(1).far_is_reached);  // of a cluster, not of software
  EXPECT_THROW(parse_profiles(replaced(text, "far_gb_s_per_node = 50\n", ""), "s.toml"), UserError);
}

// A run of data/known_runs.toml names it: of MegaScale's ladder, no rows of published_runs.csv are there.
bool of_a_known_run(const SoftwareProfile& profile) {
  static const std::string runs = read_file(program_folder("data") / "known_runs.toml");
  return runs.find("software = \"" + profile.name + "\"\n") != std::string::npos;
}

TEST(ProfileFile, EveryProfileOfOursNamesItsSourceAndAKernelThatSomeMachineHas) {
  std::set<std::string> kernels{"unfused"}, names;
  for (const std::string& name : known_machines()) {
    Machine machine = load_machine(name);
    for (const auto& [kernel, rate] : machine.attention) kernels.insert(kernel);
  }
  for (const SoftwareProfile& profile : load_profiles()) {
    EXPECT_TRUE(kernels.contains(profile.attention_table)) << profile.name;
    EXPECT_NE(profile.source.find("20"), std::string::npos) << profile.name;
    EXPECT_FALSE(profile.about.empty()) << profile.name;
    EXPECT_TRUE(!profile.matches.empty() || of_a_known_run(profile)) << profile.name;
  }
}

struct PublishedRun {
  const char *source, *schedule, *profile;
};

// Every source of published runs, as the collection and bench/nanotron_sweep.py name them.
const std::vector<PublishedRun> kRuns{
    {"Megatron-LM SC21 arXiv 2104.04473 Table 1", "", "megatron-2021"},
    {"Megatron-LM README Jan 2021 table", "", "megatron-2021"},
    {"Megatron-LM README Sep 2020 tables.tex", "", "megatron-2020"},
    {"Korthikanti et al arXiv 2205.05198 Table 5", "", "megatron-2022"},
    {"Korthikanti et al arXiv 2205.05198 sec 6.3", "", "megatron-2022"},
    {"MT-NLG arXiv 2201.11990 sec 2.4", "", "megatron-deepspeed-nlg"},
    {"Megatron-LM README H100 weak scaling (Megatron-Core r0.8.0)", "", "megatron-core-2024"},
    {"MosaicML llm-foundry benchmarking README", "FSDP DEFAULT", "llm-foundry-2023"},
    {"MosaicML llm-foundry benchmarking README", "FSDP PURE", "llm-foundry-2023-pure"},
    {"NVIDIA Megatron-Bridge performance summary 26.08", "", "megatron-bridge-2026"},
    {"NVIDIA Megatron-Bridge performance summary 26.06.01", "", "megatron-bridge-2026"},
    {"NVIDIA Megatron-Bridge performance summary 26.06", "", "megatron-bridge-2026"},
    {"NVIDIA Megatron-Bridge performance summary 26.04.01", "", "megatron-bridge-2026"},
    {"NVIDIA Megatron-Bridge performance summary 26.04", "", "megatron-bridge-2026"},
    {"NVIDIA Megatron-Bridge performance summary 26.02.01", "", "megatron-bridge-2026"},
    {"NVIDIA Megatron-Bridge performance summary 26.02", "", "megatron-bridge-2026"},
    {"NVIDIA Megatron-Bridge performance summary 25.11", "", "megatron-bridge-2025"},
    {"NVIDIA Megatron-Bridge performance summary 25.09", "", "megatron-bridge-2025"},
    {"Megatron-Bridge perf-expert-parallel-overlap", "", "megatron-bridge-2025"},
    {"Megatron-Bridge perf-expert-parallel-overlap 2026-07-25", "", "megatron-bridge-hybridep"},
    {"NVIDIA NeMo performance summary 24.07 final", "", "nemo-2024"},
    {"NVIDIA NeMo long-sequence performance", "", "nemo-2024"},
    {"Megatron-LM examples/llama/README.md FP8", "", "megatron-core-2024"},
    {"NVIDIA NeMo Automodel performance summary", "", "automodel-2025"},
    {"Megatron-MoE-ModelZoo best_practice/qwen3", "", "megatron-bridge-2025"},
    {"Megatron-MoE-ModelZoo long context", "", "megatron-bridge-2025"},
    {"Megatron-MoE-ModelZoo GB200", "", "megatron-bridge-hybridep"},
    {"NVIDIA dgxc-benchmarking (2025-09)", "", "dgxc-2025"},
    {"torchtitan benchmarks/llama3_h100_202412 (= arXiv 2410.06511 tables)", "FSDP2 + compile + float8",
     "torchtitan-2024-compiled"},
    {"torchtitan benchmarks/llama3_h100_202412 (= arXiv 2410.06511 tables)", "FSDP2 eager", "torchtitan-2024-eager"},
    {"torchtitan benchmarks/llama3_h100_202412 (= arXiv 2410.06511 tables)",
     "1f1b + AsyncTP + float8 (local batch 32 per pipeline)", "torchtitan-2024-async-tp"},
    {"torchtitan docs/performance.md (2024)", "", "torchtitan-2024-eager"},
    {"torchao float8 training docs (torchtitan)", "", "torchtitan-2024-compiled"},
    {"nanotron v0.5 / Ultra-Scale Playbook best configs", "", "nanotron-2025-searched"},
    {"nanotron v0.5 / Ultra-Scale Playbook best configs", "gpus=256; pp=1; ", "nanotron-2024-searched"},
    {"nanotron v0.5 / Ultra-Scale Playbook best configs", "gpus=512; pp=1; ", "nanotron-2025-searched"},
    {"nanotron scripts/scaling_benchmarks.py comment (TP scaling)", "", "nanotron-2025"},
    {"nanotron sweep", "", "nanotron-2025"},
    {"nanotron sweep, kept gathered", "", "nanotron-2024"},
    {"picotron README", "", "picotron-2025"},
    {"BigScience tr11-176B prequel (A100 topology sweep)", "", "bigscience-2022"},
    {"BigScience tr11-176B prequel (best TFLOPs)", "", "bigscience-2022"},
    {"BigScience tr11-176B prequel (A100 topology sweep)", "1f1b | section 'Rebalancing layers'",
     "bigscience-2022-bf16"},
    {"BigScience tr8-104B V100 tune-up", "", "bigscience-2022"},
    {"BigScience tr8-104B V100 tune-up", "1f1b bnb optimizer", "bigscience-2021-8bit"},
    {"InternEvo train_performance.md", "", "internevo-2023"},
    {"NVIDIA JAX-Toolbox Pax/rosetta README", "", "jax-toolbox-2024"},
    {"NVIDIA JAX-Toolbox Pax/rosetta README", "model=GPT 5b; gpu=A100-80GB-SXM; precision=bf16(TE)",
     "jax-toolbox-2024-5b"},
    {"NVIDIA JAX-Toolbox Pax/rosetta README", "model=GPT 126m; precision=bf16; DP", "jax-toolbox-2024-126m"},
    {"NVIDIA JAX-Toolbox Pax/rosetta README", "model=GPT 126m; precision=bf16(TE); DP", "jax-toolbox-2024-126m-te"},
    {"Megatron-LM SC21 arXiv 2104.04473 Table 1", "model=GPT 3.6B; pp=1; 1f1b", "megatron-2021-ddp"},
    {"Megatron-LM SC21 arXiv 2104.04473 Table 1", "model=GPT 145B; pp=16; 1f1b", "megatron-2021"},
    {"MosaicML llm-foundry benchmarking README", "model=MPT-7b; gpu=H100-80GB-SXM; gpus=128; FSDP DEFAULT",
     "llm-foundry-2024"},
    {"MosaicML llm-foundry benchmarking README", "model=MPT-30b; gpu=H100-80GB-SXM; gpus=512; FSDP DEFAULT",
     "llm-foundry-2024-triton"},
    {"MosaicML llm-foundry benchmarking README", "model=MPT-7b; gpu=A100-40GB; gpus=128; FSDP PURE",
     "llm-foundry-2023-pure"},
    {"NVIDIA Megatron-Bridge performance summary 26.04", "model=Llama 3 8B; gpu=GB200; precision=bf16",
     "megatron-bridge-2026-graphs"},
    {"NVIDIA Megatron-Bridge performance summary 26.04", "model=Llama 3 8B; gpu=H100; precision=bf16",
     "megatron-bridge-2026"},
    {"TinyLlama README", "", "tinyllama-2023"},
    {"llm.c run logged in modded-nanogpt record 1", "", "llm-c"},
    {"modded-nanogpt record 7 (PyTorch 2.5)", "", "modded-nanogpt-2024"},
    {"karpathy/nanochat dev/LOG.md", "", "nanochat-2026"},
    {"karpathy/nanochat dev/LEADERBOARD.md run 1", "", "nanochat-2026"},
    {"AMD Primus pipeline blog", "", "primus-2025"},
    {"DeepSpeed on Azure blog 2022-07-26", "", "deepspeed-azure-2022"},
    {"MaxText configs/v5p README", "", "maxtext-2024"},
    {"Llama 3 paper arXiv 2407.21783 Table 4", "", "llama-3"},
    {"MegaScale arXiv 2402.15627 Table 2 (Megatron-LM)", "", "megatron-2023"},
    {"MegaScale arXiv 2402.15627 Table 2 (MegaScale)", "", "megascale-2024"},
    {"Zero Bubble PP arXiv 2401.10241 Table 4", "", "zero-bubble-2023"},
    {"Zero Bubble PP arXiv 2401.10241 Table 4", "pp=8; precision=fp16/bf16; 1F1B | read", "zero-bubble-2023-1f1b"},
    {"Nemotron-4 340B report arXiv 2406.11704 Table 2", "", "megatron-core-2024"},
    {"Nemotron-4 15B report arXiv 2402.16819 Table 2", "", "megatron-core-2024"},
    {"Insights into DeepSeek-V3 arXiv 2505.09343 Table 4 (MPFT)", "", "deepseek-v3"},
    {"PaLM arXiv 2204.02311", "", "palm-2022"},
    {"GPT-NeoX-20B arXiv 2204.06745", "", "gpt-neox-2022"},
    {"LLaMA 2302.13971 / Llama 2 2307.09288 GPU-hours", "", "llama-1-2"},
    {"FlashAttention-2 arXiv 2307.08691 Table 1", "no FlashAttention (Megatron)", "flash-attention-paper-megatron"},
    {"FlashAttention-2 arXiv 2307.08691 Table 1", "FlashAttention", "flash-attention-1-paper"},
    {"FlashAttention-2 arXiv 2307.08691 Table 1", "FlashAttention-2", "flash-attention-2-paper"},
    {"PyTorch FSDP arXiv 2304.11277 Fig 7", "", "fsdp-2023"},
    {"Fire-Flyer AI-HPC arXiv 2408.14158 sec 6", "", "fire-flyer"},
    {"ZeRO arXiv 1910.02054 Fig 2", "", "zero-2019"},
    {"SmolLM3 blog (HF)", "", "nanotron-2025"},
    {"MoE Parallel Folding arXiv 2504.14960 Table 3", "MCore+Folding interleaved-1f1b | read", "megatron-folding-2025"},
    {"MoE Parallel Folding arXiv 2504.14960 Table 3", "FSDP+EP | read", "megatron-folding-2025-fsdp"},
    {"Megatron-LM PR 5728 (Qwen3 MoE recipe index)", "", "megatron-moe-2026"},
    {"Pai-Megatron-Patch issue 643", "", "megatron-pai-2025"},
    {"MegaScale-MoE arXiv 2505.11432 Table 3", "", "megascale-moe-2025-baseline"},
    {"NVIDIA Megatron-Bridge performance summary 25.09", "(25.09 container, tokendrop)",
     "megatron-bridge-2025-tokendrop"},
    {"NVIDIA Megatron-Bridge performance summary 26.04", "model=DeepSeek-V3; gpu=GB200", "megatron-bridge-hybridep"},
    {"NVIDIA Megatron-Bridge performance summary 26.04", "model=DeepSeek-V3; gpu=B200", "megatron-bridge-2026"},
    {"NVIDIA Megatron-Bridge performance summary 26.04.01", "model=DeepSeek-V3; gpu=B200",
     "megatron-bridge-deepep-overlap"},
    {"NVIDIA Megatron-Bridge performance summary 26.06", "model=DeepSeek-V3; gpu=GB300",
     "megatron-bridge-2026-expert-graphs-overlap"},
    {"NVIDIA Megatron-Bridge performance summary 26.06", "model=Kimi K2 (Muon); gpu=GB300", "megatron-bridge-hybridep"},
    {"NVIDIA Megatron-Bridge performance summary 26.04", "model=GPT-OSS 120B; gpu=GB300",
     "megatron-bridge-2026-expert-biases"},
    {"NVIDIA Megatron-Bridge performance summary 26.04", "model=GPT-OSS 120B; gpu=GB200",
     "megatron-bridge-2026-expert-biases-recompute"},
    {"NVIDIA Megatron-Bridge performance summary 26.08", "model=GPT-OSS 120B; gpu=GB300",
     "megatron-bridge-2026-expert-graphs-overlap"},
    {"NVIDIA Megatron-Bridge performance summary 26.06", "model=GPT-OSS 120B; gpu=GB200",
     "megatron-bridge-2026-expert-graphs-overlap"},
    {"NVIDIA Megatron-Bridge performance summary 26.06", "model=Qwen3 30B-A3B; gpu=B300",
     "megatron-bridge-2026-expert-graphs"},
    {"NVIDIA Megatron-Bridge performance summary 26.02", "model=Qwen3 235B-A22B; gpu=H100",
     "megatron-bridge-2026-overlap"},
    {"NVIDIA Megatron-Bridge performance summary 25.09", "model=DeepSeek-V3; gpu=H100", "megatron-bridge-2025-overlap"},
    {"NVIDIA Megatron-Bridge performance summary 25.09", "model=Qwen3 30B-A3B (tokendrop); gpu=GB200 | tokendrop",
     "megatron-bridge-2025-tokendrop-graphs"},
    {"NVIDIA dgxc-benchmarking (2025-09)", "model=DeepSeek-V3; gpu=GB200", "dgxc-2025-deepseek-blackwell"},
    {"NVIDIA dgxc-benchmarking (2025-09)", "model=DeepSeek-V3; gpu=H100", "dgxc-2025-deepseek"},
    {"NVIDIA Megatron-Bridge performance summary 26.06", "model=Qwen3 30B-A3B; gpu=GB300",
     "megatron-bridge-2026-expert-graphs"},
    {"NVIDIA Megatron-Bridge performance summary 26.02.01", "model=Llama 3 70B; gpu=GB200; precision=nvfp4",
     "megatron-bridge-2026-nvfp4"},
};

TEST(ProfileFile, EveryPublishedRunHasAProfile) {
  std::vector<SoftwareProfile> profiles = load_profiles();
  std::set<std::string> used;
  for (const PublishedRun& run : kRuns) {
    const SoftwareProfile* found = profile_for_source(profiles, run.source, run.schedule);
    ASSERT_NE(found, nullptr) << run.source;
    EXPECT_EQ(found->name, run.profile) << run.source;
    used.insert(found->name);
  }
  for (const SoftwareProfile& profile : profiles)
    if (of_a_known_run(profile)) used.insert(profile.name);
  EXPECT_EQ(used.size(), profiles.size());  // none is left over
}

// Networks as the sources state them: adapters of a node times Gb/s.
TEST(ProfileFile, NetworksAgreeWithAdaptersPerNode) {
  std::vector<SoftwareProfile> profiles = load_profiles();
  EXPECT_EQ(profile_named(profiles, "megatron-2021").far_bytes_per_s_per_node, 8 * 200e9 / 8);
  EXPECT_EQ(profile_named(profiles, "bigscience-2022").far_bytes_per_s_per_node, 4 * 100e9 / 8);
  EXPECT_EQ(profile_named(profiles, "internevo-2023").far_bytes_per_s_per_node, 4 * 100e9 / 8);
  EXPECT_EQ(profile_named(profiles, "fire-flyer").far_bytes_per_s_per_node, 1 * 200e9 / 8);
  EXPECT_EQ(profile_named(profiles, "llm-foundry-2023-pure").far_bytes_per_s_per_node, 1600e9 / 8);
  EXPECT_FALSE(profile_named(profiles, "megatron-bridge-2026").far_bytes_per_s_per_node);  // many machines
}

}  // namespace
}  // namespace sextant
