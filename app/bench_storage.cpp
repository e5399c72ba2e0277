#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "app/bench_save.h"
#include "app/processes.h"
#include "app/rank_bench.h"
#include "app/verb.h"
#include "app/verbosity_options.h"
#include "base/error.h"
#include "base/verbosity.h"
#include "bench/environment.h"
#include "bench/save.h"
#include "bench/storage.h"
#include "exec/cpu/cpu_probe.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

struct BenchStorageArguments {
  std::string directory;
  double gigabytes = 1;
  double interval_minutes = 30;
  int64_t ranks = 0;  // threads, where no launcher says how many; 0: one
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
  std::string save;  // a machine's file to write the figures into
};

void add_bench_storage_options(CLI::App& verb, BenchStorageArguments& a) {
  verb.add_option("directory", a.directory, "on the storage to be measured")->required();
  verb.add_option("--gb", a.gigabytes, "of the checkpoint, all ranks together")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  verb.add_option("--interval", a.interval_minutes, "minutes between checkpoints")
      ->check(CLI::Range(0.01, 1e6))
      ->capture_default_str();
  verb.add_option("--ranks", a.ranks, "threads, without a launcher [1]")->check(CLI::Range(1, 1024));
  verb.add_flag("--json", a.json, "print JSON, for bench compare");
  add_quiet(verb, a.verbosity, "no progress on standard error");
  verb.add_option("--save", a.save,
                  "write the speed of checkpoints into this machine's file (NAME.toml), for plan --machine");
}

void run_bench_storage(const BenchStorageArguments& a, VerbContext& context) {
  RankBench bench(context.processes, a.verbosity);
  bench.refuse_ranks(a.ranks);
  if (!fs::is_directory(a.directory))
    throw UserError({.place = a.directory,
                     .got = fs::exists(a.directory) ? "not a directory" : "directory not found",
                     .expected = "an existing directory on the storage to be measured"});
  StorageRequest request{
      .directory = a.directory,
      .checkpoint_bytes = std::max<int64_t>(1 << 20, static_cast<int64_t>(a.gigabytes * 1e9)),
      .token_bytes = std::clamp<int64_t>(static_cast<int64_t>(a.gigabytes * 1e9) / 4, 1 << 22, int64_t{1} << 30),
      .interval_s = a.interval_minutes * 60};
  // Twice: a new checkpoint is whole before the old one goes.
  if (double free = static_cast<double>(fs::space(a.directory).available);
      free < 2.5 * static_cast<double>(request.checkpoint_bytes))
    throw UserError({.place = a.directory,
                     .got = fmt::format("{:.3g} GB free", free / 1e9),
                     .expected = fmt::format("{:.3g} GB: two checkpoints and what else is written", 2.5 * a.gigabytes),
                     .hint = "measure with a smaller checkpoint: --gb"});
  std::optional<Machine> saved;
  if (!a.save.empty() && bench.leads()) saved = machine_to_save(a.save, std::nullopt);
  BenchReport report;
  bench.run(bench.ranks_or(std::max(1, static_cast<int>(a.ranks))), [&](CommWorld& world) {
    BenchReport own = bench_storage(world, request, bench.watch());
    if (world.rank() == 0) report = std::move(own);
  });
  if (!bench.leads()) return;
  report.environment = environment_of(*make_cpu_probe(1));
  report.environment.emplace_back("directory", fs::absolute(a.directory).string());
  fmt::print("{}", a.json ? report_json(report) : report_text(report));
  std::fflush(stdout);
  for (const BenchResult& result : report.results)
    if (result.error > 1)
      throw RunError(a.directory, "what was read is not what was written", "do not keep checkpoints here");
  if (report.interrupted) report_interrupted(a.save);
  if (!saved) return;
  merge_storage(*saved, report);
  write_machine(a.save, *saved);
}

constexpr ValueFormat kBenchStorageValues[] = {
    {"MINUTES", "minutes", "--interval"},
    {"GB", "gigabytes", "--gb"},
};

}  // namespace

const VerbDef bench_storage_verb{
    .words = "bench storage",
    .summary = "Checkpoints, random tokens and small files on storage",
    .details = "It measures what training does to a file system",
    .examples = "sextant bench storage . --gb 0.01",
    .values = kBenchStorageValues,
    .declare = declare_verb<add_bench_storage_options, run_bench_storage>,
};

}  // namespace sextant
