#include <CLI/CLI.hpp>

#include "app/bench.h"
#include "app/output_file.h"
#include "app/verb.h"
#include "app/verbosity_options.h"

namespace sextant {

namespace {

// Returns --seconds, which is not for every device.
CLI::Option* add_bench_options(CLI::App& verb, BenchOptions& o) {
  verb.add_option("--device", o.device, "auto, cpu or cuda")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  verb.add_option("--threads", o.threads, "of the CPU; 0 = one per core")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  verb.add_flag("--json", o.json, "print JSON, for bench compare and bench report");
  add_quiet(verb, o.verbosity, "no progress on standard error");
  return verb.add_option("--seconds", o.seconds, "how long each measurement is repeated")
      ->check(CLI::Range(0.001, 3600.0))
      ->capture_default_str();
}

CLI::Option* add_bench_save(CLI::App& verb, BenchOptions& o) {
  return verb.add_option("--save", o.save,
                         "write the figures into this machine's file (NAME.toml), for plan --machine");
}

void add_bench_gemm_options(CLI::App& verb, BenchGemmArguments& a) {
  add_bench_options(verb, a.options);
  CLI::Option* save = add_bench_save(verb, a.options);
  verb.add_option("--shape", a.shapes, "ROWSxCOLUMNSxDEPTH, may be repeated");
  verb.add_option("--m", a.m, "rows: a number or START:STOP:STEP");
  verb.add_option("--n", a.n, "columns");
  verb.add_option("--k", a.k, "depth");
  CLI::Option* config = verb.add_option("--config", a.config, "the GEMMs of this config's Programs, on its mesh");
  verb.add_option("--set", a.overrides, "key=value of the config, may be repeated")->needs(config);
  verb.add_option("--type", a.types, "fp32, tf32, bf16, fp16, fp8 [what the device computes in]");
  CLI::Option* experts = verb.add_option("--experts", a.experts, "grouped GEMMs of so many experts, all on one device")
                             ->check(CLI::Range(1, 4096));
  verb.add_option("--per-token", a.per_token, "of --experts: experts of each token")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str()
      ->needs(experts);
  verb.add_option("--tokens", a.tokens, "of --experts: a number or START:STOP:STEP [16384, or 512 on a CPU]")
      ->needs(experts);
  verb.add_option("--hidden", a.hidden, "of --experts: size of a token, as --tokens [2048, or 256 on a CPU]")
      ->needs(experts);
  verb.add_option("--width", a.width, "of --experts: of one expert's MLP, as --tokens [1024, or 256 on a CPU]")
      ->needs(experts);
  verb.add_option("--imbalance", a.imbalance, "of --experts: tokens of the busiest expert over the mean")
      ->check(CLI::Range(1.0, 4096.0))
      ->capture_default_str()
      ->needs(experts)
      ->excludes(save);  // machines hold what balanced experts take
  CLI::Option* mamf = verb.add_flag("--mamf", a.mamf, "search for the shape that reaches most");
  verb.add_option("--step", a.step, "of --mamf: sizes are multiples of this")
      ->check(CLI::Range(16, 65536))
      ->capture_default_str()
      ->needs(mamf);
  verb.add_option("--most", a.most, "of --mamf: the largest size [16384, or 4096 on a CPU]")
      ->check(CLI::Range(16, 262144))
      ->needs(mamf);
}

void add_bench_memory_options(CLI::App& verb, BenchMemoryArguments& a) {
  add_bench_options(verb, a.options);
  add_bench_save(verb, a.options);
  verb.add_option("--mb", a.megabytes, "MiB of each array, may be repeated")->check(CLI::Range(1e-3, 1e6));
}

void add_bench_attention_options(CLI::App& verb, BenchAttentionArguments& a) {
  add_bench_options(verb, a.options);
  add_bench_save(verb, a.options);
  verb.add_option("--length", a.lengths, "of the sequence, may be repeated")->check(CLI::Range(1, 1 << 24));
  verb.add_option("--heads", a.heads, "may be repeated")->check(CLI::Range(1, 1024));
  verb.add_option("--head-dim", a.head_dims, "may be repeated")->check(CLI::Range(1, 512));
  verb.add_option("--tokens", a.tokens, "in a batch")->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
}

void add_bench_ops_options(CLI::App& verb, BenchOpsArguments& a) {
  add_bench_options(verb, a.options);
  add_bench_save(verb, a.options);
  verb.add_option("--only", a.only, "ops whose name contains this");
  CLI::Option* config = verb.add_option("--config", a.config, "the ops of this config's training steps, on its mesh");
  verb.add_option("--set", a.overrides, "key=value of the config, may be repeated")->needs(config);
}

void add_bench_sizing_options(CLI::App& verb, BenchSizingArguments& a) {
  add_bench_options(verb, a.options);
  verb.add_option("config", a.config, "the run's TOML file")->required();
  verb.add_option("overrides", a.overrides, "key=value");
  verb.add_option("--vary", a.vary,
                  "hidden, heads, ffn, vocab, seq or batch, alone or with values: vocab=50257,50304 [all of them]");
}

void add_bench_machine_options(CLI::App& verb, BenchMachineArguments& a) {
  add_bench_options(verb, a.options);
  verb.add_option("--save", a.options.save,
                  "the file to write, NAME.toml; here: the file of this machine, by which runs are predicted")
      ->required();
  verb.add_option("--ranks", a.ranks, "of a CPU: ranks that share it and are busy at once [cores / threads]")
      ->check(CLI::Range(1, 4096));
  verb.add_option("--name", a.name, "of the machine [the file's]");
}

void add_bench_compare_options(CLI::App& verb, BenchCompareArguments& a) {
  verb.add_option("before", a.before, "a file of bench --json")->required();
  verb.add_option("after", a.after, "another")->required();
  verb.add_flag("--json", a.json, "print JSON");
}

void add_bench_report_options(CLI::App& verb, BenchReportArguments& a) {
  verb.add_option("file", a.file, "a file of bench --json")->required();
  verb.add_option("--html", a.html, "the file to write")->required()->check(output_file("--html"));
  verb.add_flag("--json", a.json, "print JSON: the file that was written");
  add_quiet(verb, a.verbosity, "print nothing: the file is the result");
}

constexpr ValueFormat kBenchGemmValues[] = {
    {"FACTOR", "", "--imbalance"},
    {"EXPERTS", "experts", "--experts --per-token"},
    {"SHAPE", "ROWSxCOLUMNSxDEPTH, such as 4096x4096x1024", "--shape"},
    {"SIZES", "a whole number or START:STOP:STEP", "--m --n --k --tokens --hidden --width"},
    {"TYPE", "one of fp32, tf32, bf16, fp16, fp8", "--type"},
};

constexpr ValueFormat kBenchMemoryValues[] = {
    {"MIB", "MiB", "--mb"},
};

constexpr ValueFormat kBenchAttentionValues[] = {
    {"POSITIONS", "positions", "--length"},
    {"TOKENS", "tokens", "--tokens"},
    {"HEADS", "heads", "--heads"},
};

constexpr ValueFormat kBenchOpsValues[] = {
    {"NAME", "a part of the name of an op", "--only"},
};

constexpr ValueFormat kBenchSizingValues[] = {
    {"SIZE[=VALUES]", "the name of a size, alone or with values, such as ffn=192,256", "--vary"},
};

constexpr ValueFormat kBenchMachineValues[] = {
    {"NAME", "a name", "--name"},
};

constexpr ValueFormat kBenchCompareValues[] = {
    {"FILE", "a file of bench --json", "before after"},
};

constexpr ValueFormat kBenchReportValues[] = {
    {"FILE", "a file of bench --json", "file"},
};

}  // namespace

const VerbDef bench_verb{
    .words = "bench",
    .summary = "Measure this machine: GEMMs, memory, attention, messages",
    .details = "Also ops, sizes of models and storage",
    .examples = "sextant bench gemm --shape 256x256x256 --seconds 0.05 --json > gemm.json",
    .values = {},
    .declare = nullptr,
};

const VerbDef bench_gemm_verb{
    .words = "bench gemm",
    .summary = "GEMMs: of shapes, of a config, of experts, or the best",
    .details = "Shapes are given, ranges, those of a config, or grouped ones of experts; --mamf searches for the best",
    .examples =
        "sextant bench gemm --shape 256x512x256 --seconds 0.02\n"
        "sextant bench gemm --experts 8 --per-token 2 --tokens 256 --seconds 0.02",
    .values = kBenchGemmValues,
    .declare = declare_verb<add_bench_gemm_options, run_bench_gemm>,
};

const VerbDef bench_memory_verb{
    .words = "bench memory",
    .summary = "Copy, triad, read and write bandwidth by size",
    .details = "",
    .examples = "sextant bench memory --mb 4 --seconds 0.01",
    .values = kBenchMemoryValues,
    .declare = declare_verb<add_bench_memory_options, run_bench_memory>,
};

const VerbDef bench_attention_verb{
    .words = "bench attention",
    .summary = "Causal attention by length, heads and head size",
    .details = "Forward and backward are timed",
    .examples = "sextant bench attention --length 256 --heads 4 --head-dim 32 --tokens 256",
    .values = kBenchAttentionValues,
    .declare = declare_verb<add_bench_attention_options, run_bench_attention>,
};

const VerbDef bench_ops_verb{
    .words = "bench ops",
    .summary = "Every op alone, or the ops of training steps in place",
    .details = "Ops alone are timed with their examples made larger; --config times those of its training steps",
    .examples =
        "sextant bench ops --only rms_norm --seconds 0.05\n"
        "sextant bench ops --config configs/tiny-moe.toml --only expert --seconds 0.05",
    .values = kBenchOpsValues,
    .declare = declare_verb<add_bench_ops_options, run_bench_ops>,
};

const VerbDef bench_sizing_verb{
    .words = "bench sizing",
    .summary = "A layer and a step as the sizes of a config vary",
    .details = "It reports where a nearby size is faster",
    .examples = "sextant bench sizing configs/tiny-llama.toml --vary ffn=192,256 --seconds 0.05",
    .values = kBenchSizingValues,
    .declare = declare_verb<add_bench_sizing_options, run_bench_sizing>,
};

const VerbDef bench_machine_verb{
    .words = "bench machine",
    .summary = "Measure all that plan --machine needs of this machine",
    .details = "",
    .examples = "sextant bench machine --save this-machine.toml",
    .values = kBenchMachineValues,
    .declare = declare_verb<add_bench_machine_options, run_bench_machine>,
};

const VerbDef bench_compare_verb{
    .words = "bench compare",
    .summary = "What changed between two results beyond noise",
    .details = "",
    .examples = "sextant bench compare gemm.json gemm.json",
    .values = kBenchCompareValues,
    .declare = declare_verb<add_bench_compare_options, run_bench_compare>,
};

const VerbDef bench_report_verb{
    .words = "bench report",
    .summary = "The roofline and the curves of a result as an HTML file",
    .details = "",
    .examples = "sextant bench report gemm.json --html gemm.html",
    .values = kBenchReportValues,
    .declare = declare_verb<add_bench_report_options, run_bench_report>,
};

}  // namespace sextant
