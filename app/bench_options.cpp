#include <CLI/CLI.hpp>

#include "app/bench.h"
#include "app/output_file.h"
#include "app/verbosity_options.h"

namespace sextant {

namespace {

// Returns --seconds, which is not for every device.
CLI::Option* add_options(CLI::App& verb, BenchOptions& o) {
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

CLI::Option* add_save(CLI::App& verb, BenchOptions& o) {
  return verb.add_option("--save", o.save,
                         "write the figures into this machine's file (NAME.toml), for plan --machine");
}

void add_gemm(CLI::App& bench, BenchGemmArguments& a) {
  CLI::App* verb = bench.add_subcommand(
      "gemm", "GEMMs: given shapes, ranges, those of a config, grouped ones of experts, or the best there is");
  add_options(*verb, a.options);
  CLI::Option* save = add_save(*verb, a.options);
  verb->add_option("--shape", a.shapes, "ROWSxCOLUMNSxDEPTH, may be repeated");
  verb->add_option("--m", a.m, "rows: a number or START:STOP:STEP");
  verb->add_option("--n", a.n, "columns");
  verb->add_option("--k", a.k, "depth");
  CLI::Option* config = verb->add_option("--config", a.config, "the GEMMs of this config's Programs, on its mesh");
  verb->add_option("--set", a.overrides, "key=value of the config, may be repeated")->needs(config);
  verb->add_option("--type", a.types, "fp32, tf32, bf16, fp16, fp8 [what the device computes in]");
  CLI::Option* experts = verb->add_option("--experts", a.experts, "grouped GEMMs of so many experts, all on one device")
                             ->check(CLI::Range(1, 4096));
  verb->add_option("--per-token", a.per_token, "of --experts: experts of each token")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str()
      ->needs(experts);
  verb->add_option("--tokens", a.tokens, "of --experts: a number or START:STOP:STEP [16384, or 512 on a CPU]")
      ->needs(experts);
  verb->add_option("--hidden", a.hidden, "of --experts: size of a token, as --tokens [2048, or 256 on a CPU]")
      ->needs(experts);
  verb->add_option("--width", a.width, "of --experts: of one expert's MLP, as --tokens [1024, or 256 on a CPU]")
      ->needs(experts);
  verb->add_option("--imbalance", a.imbalance, "of --experts: tokens of the busiest expert over the mean")
      ->check(CLI::Range(1.0, 4096.0))
      ->capture_default_str()
      ->needs(experts)
      ->excludes(save);  // machines hold what balanced experts take
  CLI::Option* mamf = verb->add_flag("--mamf", a.mamf, "search for the shape that reaches most");
  verb->add_option("--step", a.step, "of --mamf: sizes are multiples of this")
      ->check(CLI::Range(16, 65536))
      ->capture_default_str()
      ->needs(mamf);
  verb->add_option("--most", a.most, "of --mamf: the largest size [16384, or 4096 on a CPU]")
      ->check(CLI::Range(16, 262144))
      ->needs(mamf);
  verb->callback([&a] { bench_gemm_verb(a); });
}

void add_memory(CLI::App& bench, BenchMemoryArguments& a) {
  CLI::App* verb = bench.add_subcommand("memory", "Copy, triad, read and write bandwidth by size");
  add_options(*verb, a.options);
  add_save(*verb, a.options);
  verb->add_option("--mb", a.megabytes, "MiB of each array, may be repeated")->check(CLI::Range(1e-3, 1e6));
  verb->callback([&a] { bench_memory_verb(a); });
}

void add_attention(CLI::App& bench, BenchAttentionArguments& a) {
  CLI::App* verb =
      bench.add_subcommand("attention", "Causal attention forward and backward by length, heads and head size");
  add_options(*verb, a.options);
  add_save(*verb, a.options);
  verb->add_option("--length", a.lengths, "of the sequence, may be repeated")->check(CLI::Range(1, 1 << 24));
  verb->add_option("--heads", a.heads, "may be repeated")->check(CLI::Range(1, 1024));
  verb->add_option("--head-dim", a.head_dims, "may be repeated")->check(CLI::Range(1, 512));
  verb->add_option("--tokens", a.tokens, "in a batch")->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  verb->callback([&a] { bench_attention_verb(a); });
}

void add_ops(CLI::App& bench, BenchOpsArguments& a) {
  CLI::App* verb = bench.add_subcommand(
      "ops", "Every op alone, from its examples made larger; or those of a config's training steps, in place");
  add_options(*verb, a.options);
  add_save(*verb, a.options);
  verb->add_option("--only", a.only, "ops whose name contains this");
  CLI::Option* config = verb->add_option("--config", a.config, "the ops of this config's training steps, on its mesh");
  verb->add_option("--set", a.overrides, "key=value of the config, may be repeated")->needs(config);
  verb->callback([&a] { bench_ops_verb(a); });
}

void add_sizing(CLI::App& bench, BenchSizingArguments& a) {
  CLI::App* verb = bench.add_subcommand(
      "sizing", "One layer and the whole step as the sizes of a config vary, and where a nearby size is faster");
  add_options(*verb, a.options);
  verb->add_option("config", a.config, "the run's TOML file")->required();
  verb->add_option("overrides", a.overrides, "key=value");
  verb->add_option("--vary", a.vary,
                   "hidden, heads, ffn, vocab, seq or batch, alone or with values: vocab=50257,50304 [all of them]");
  verb->callback([&a] { bench_sizing_verb(a); });
}

void add_machine(CLI::App& bench, BenchMachineArguments& a) {
  CLI::App* verb = bench.add_subcommand("machine", "Measure all that plan --machine needs to know of this machine");
  CLI::Option* seconds = add_options(*verb, a.options);
  verb->add_option("--save", a.options.save,
                   "the file to write, NAME.toml; here: the file of this machine, by which runs are predicted")
      ->required();
  verb->add_option("--ranks", a.ranks, "of a CPU: ranks that share it and are busy at once [cores / threads]")
      ->check(CLI::Range(1, 4096));
  verb->add_option("--name", a.name, "of the machine [the file's]");
  verb->callback([&a, seconds] {
    a.seconds_given = seconds->count() > 0;
    bench_machine_verb(a);
  });
}

void add_compare(CLI::App& bench, BenchCompareArguments& a) {
  CLI::App* verb = bench.add_subcommand("compare", "What changed between two results beyond noise");
  verb->add_option("before", a.before, "a file of bench --json")->required();
  verb->add_option("after", a.after, "another")->required();
  verb->add_flag("--json", a.json, "print JSON");
  verb->callback([&a] { bench_compare_verb(a); });
}

void add_report(CLI::App& bench, BenchReportArguments& a) {
  CLI::App* verb = bench.add_subcommand("report", "The roofline and the curves of a result as one HTML file");
  verb->add_option("file", a.file, "a file of bench --json")->required();
  verb->add_option("--html", a.html, "the file to write")->required()->check(output_file("--html"));
  verb->add_flag("--json", a.json, "print JSON: the file that was written");
  add_quiet(*verb, a.verbosity, "print nothing: the file is the result");
  verb->callback([&a] { bench_report_verb(a); });
}

}  // namespace

void add_bench(CLI::App& app, BenchArguments& a) {
  CLI::App* bench = app.add_subcommand("bench", "Measure this machine: GEMMs, memory, attention, ops, sizes");
  bench->require_subcommand(1);
  add_gemm(*bench, a.gemm);
  add_memory(*bench, a.memory);
  add_attention(*bench, a.attention);
  add_ops(*bench, a.ops);
  add_sizing(*bench, a.sizing);
  add_machine(*bench, a.machine);
  add_compare(*bench, a.compare);
  add_report(*bench, a.report);
}

}  // namespace sextant
