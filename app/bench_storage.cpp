#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "app/bench_save.h"
#include "app/rank_bench.h"
#include "app/verbs.h"
#include "base/error.h"
#include "bench/environment.h"
#include "bench/save.h"
#include "bench/storage.h"
#include "exec/cpu/cpu_probe.h"

namespace sextant {

namespace fs = std::filesystem;

void bench_storage_verb(const BenchStorageArguments& a, Processes& processes) {
  RankBench bench(processes, a.verbosity);
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

}  // namespace sextant
