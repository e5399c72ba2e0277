#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/device.h"
#include "app/rank_bench.h"
#include "app/verbs.h"
#include "base/error.h"
#include "bench/comm.h"
#include "bench/environment.h"
#include "config/load.h"
#include "exec/cpu/cpu_probe.h"
#include "plan/programs.h"
#include "train/dataset.h"
#ifdef SEXTANT_CUDA
#include "exec/cuda/devices.h"
#endif

namespace sextant {

namespace {

std::vector<CommOp> ops_named(const std::vector<std::string>& names) {
  std::vector<CommOp> ops;
  for (CommOp op : kCommOps)
    if (names.empty() || std::find(names.begin(), names.end(), name_of(op)) != names.end()) ops.push_back(op);
  for (const std::string& name : names)
    if (std::none_of(std::begin(kCommOps), std::end(kCommOps), [&](CommOp op) { return name_of(op) == name; })) {
      std::vector<std::string_view> known;
      for (CommOp op : kCommOps) known.push_back(name_of(op));
      throw UserError({.place = "--op",
                       .got = fmt::format("no collective is called '{}'", name),
                       .expected = fmt::format("one of {}", fmt::join(known, ", "))});
    }
  return ops;
}

// Of the config, or all ranks in a row.
Mesh mesh_of(const BenchCommArguments& a, int ranks) {
  if (a.config.empty()) return {{{"all ranks", ranks}}};
  RunConfig run = load_config(a.config, a.overrides);
  return run_shape(run, resolve_spec(run)).mesh;
}

// Null where ranks talk by messages between processors.
std::unique_ptr<Executor> executor_on_gpu(const std::string& device, const CommWorld& world) {
  RankSeat seat{world.rank(), world.transport()};
  RunConfig run;
  run.device = device;
  run.places["device"] = "--device";
  if (device == "cuda") return executors_for(run)(seat, 1);
#ifdef SEXTANT_CUDA
  if (device == "auto" && !cuda_devices().devices.empty()) return executors_for(run)(seat, 1);
#endif
  return nullptr;
}

}  // namespace

void bench_comm_verb(const BenchCommArguments& a, Processes& processes) {
  RankBench bench(processes);
  int ranks = bench.ranks_or(a.config.empty() ? static_cast<int>(a.ranks) : mesh_of(a, 1).world_size());
  Mesh mesh = mesh_of(a, ranks);
  if (mesh.world_size() != ranks)
    throw UserError(
        {.place = a.config,
         .got = fmt::format("its mesh {} has {} ranks, but {} were started", mesh.text(), mesh.world_size(), ranks),
         .expected = fmt::format("{} processes", mesh.world_size())});
  if (ranks < 2)
    throw UserError({.place = "sextant bench comm",
                     .got = "one rank, which has nobody to talk to",
                     .expected = "--ranks 2 or more, a config whose mesh has them, or mpirun"});
  if (a.smallest < 4 || a.largest < a.smallest)
    throw UserError({.place = "--min, --max",
                     .got = fmt::format("{} to {} bytes", a.smallest, a.largest),
                     .expected = "4 bytes or more, the largest last"});
  std::vector<CommOp> ops = ops_named(a.ops);
  CommReport report;
  bench.run(ranks, [&](CommWorld& world) {
    std::unique_ptr<Executor> executor = executor_on_gpu(a.device, world);
    CommRequest request{.groups = groups_of(mesh, world.rank()),
                        .ops = ops,
                        .smallest = a.smallest,
                        .largest = a.largest,
                        .step = a.step,
                        .calls = static_cast<int>(a.calls),
                        .host = host_name(),
                        .executor = executor.get(),
                        .mesh = mesh};
    CommReport own = bench_comm(world, request, bench.watch());
    if (world.rank() == 0) report = std::move(own);
  });
  if (!bench.leads()) return;
  if (a.json) {
    BenchReport results = bench_report_of(report);
    results.environment = environment_of(*make_cpu_probe(1));
    fmt::print("{}", report_json(results));
  } else {
    fmt::print("{}", comm_text(report));
  }
  std::fflush(stdout);
  for (const CommRow& row : report.rows)
    if (row.wrong > 0)
      throw RunError(fmt::format("{} over {}", name_of(row.op), row.group), "the results are wrong",
                     "`sextant doctor --burn` looks closer");
}

}  // namespace sextant
