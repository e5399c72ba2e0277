#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "app/bench_save.h"
#include "app/device.h"
#include "app/processes.h"
#include "app/rank_bench.h"
#include "app/verb.h"
#include "app/verbosity_options.h"
#include "base/error.h"
#include "base/verbosity.h"
#include "bench/comm/comm.h"
#include "bench/comm/comm_device_call.h"
#include "bench/environment.h"
#include "bench/save.h"
#include "config/load.h"
#include "exec/cpu/cpu_probe.h"
#include "run/programs.h"
#include "run/resolve_spec.h"
#include "train/data/dataset.h"
#ifdef SEXTANT_CUDA
#include "exec/cuda/runtime/devices.h"
#endif

namespace sextant {

namespace {

struct BenchCommArguments {
  std::string config;  // whose mesh gives the groups; empty: all ranks
  std::vector<std::string> overrides;
  int64_t ranks = 0;  // threads, where neither a config nor a launcher says how many; 0: two
  int64_t smallest = 1 << 10, largest = 1 << 24, step = 4;  // bytes
  int64_t calls = 20;
  std::vector<std::string> ops;  // empty: all
  std::string device = "auto";   // cpu: messages between processors; cuda: NCCL
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
  std::string save;  // a machine's file to write the figures into
};

std::vector<Collective> ops_named(const std::vector<std::string>& names) {
  std::vector<Collective> ops;
  for (Collective op : kCommOps)
    if (names.empty() || std::find(names.begin(), names.end(), bench_name(op)) != names.end()) ops.push_back(op);
  for (const std::string& name : names)
    if (std::none_of(std::begin(kCommOps), std::end(kCommOps), [&](Collective op) { return bench_name(op) == name; })) {
      std::vector<std::string_view> known;
      for (Collective op : kCommOps) known.push_back(bench_name(op));
      throw UserError({.place = "--op",
                       .got = fmt::format("no collective is called '{}'", name),
                       .expected = fmt::format("one of {}", fmt::join(known, ", "))});
    }
  return ops;
}

// Of the config, or all ranks in a row.
Mesh mesh_of(const BenchCommArguments& a, int ranks) {
  static constexpr AxisDef all_ranks{.name = "all ranks"};
  if (a.config.empty()) return {{{all_ranks, ranks}}};
  RunConfig run = load_config(a.config, a.overrides);
  return run_shape(run, resolve_spec(run)).mesh;
}

// The GPU whose collectives are measured; nothing where ranks talk by messages between processors.
std::optional<std::string> gpu_for(const std::string& device) {
#ifdef SEXTANT_CUDA
  if (device == "cpu") return std::nullopt;
  CudaDevices found = cuda_devices();
  if (!found.devices.empty()) return found.devices.front().name;
#endif
  if (device == "cuda") return "";  // the executor says what is missing
  return std::nullopt;
}

std::unique_ptr<Executor> executor_on_gpu(const CommWorld& world) {
  RunConfig run;
  run.device = DeviceChoice::cuda;
  run.places["device"] = "--device";
  return executors_for(run)({world.rank(), world.transport()}, 1);
}

// Without --op such ops are left out; one that is asked for by name is not.
void require_on_gpu(const std::vector<std::string>& names, const std::vector<Collective>& ops) {
  for (Collective op : ops)
    if (!names.empty() && !can_be_on_device(op, 1))
      throw UserError({.place = fmt::format("--op {}", bench_name(op)),
                       .got = "is not measured between GPUs",
                       .hint = "leave it out, or measure between processors with --device cpu"});
}

// The machine that --save updates with the results. Figures of links between processors do not apply to links between
// GPUs.
Machine machine_for(const std::string& file, const std::optional<std::string>& gpu) {
  Machine machine = machine_to_save(file, gpu ? known_machine_with(*gpu) : std::nullopt);
  require_kind(file, machine, gpu ? MeasuredOn::gpu : MeasuredOn::cpu);
  return machine;
}

void add_bench_comm_options(CLI::App& verb, BenchCommArguments& a) {
  CLI::Option* config = verb.add_option("--config", a.config, "measure the groups of this config's mesh");
  verb.add_option("--set", a.overrides, "key=value of the config, may be repeated")->needs(config);
  verb.add_option("--ranks", a.ranks, "threads, without a config or launcher [2]")
      ->check(CLI::Range(2, 1024))
      ->excludes(config);
  verb.add_option("--min", a.smallest, "bytes of the smallest")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  verb.add_option("--max", a.largest, "bytes of the largest")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  verb.add_option("--step", a.step, "each size is so many times the one before")
      ->check(CLI::Range(2, 1024))
      ->capture_default_str();
  verb.add_option("--calls", a.calls, "of each, timed")->check(CLI::Range(1, 100000))->capture_default_str();
  verb.add_option(
      "--op", a.ops,
      "all_reduce, all_gather, reduce_scatter, all_to_all, broadcast or send_receive, may be repeated [all]");
  verb.add_option("--device", a.device, "cpu: messages between processors, cuda: NCCL")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  verb.add_flag("--json", a.json, "print JSON, for bench compare");
  add_quiet(verb, a.verbosity, "no progress on standard error");
  verb.add_option("--save", a.save,
                  "write links and message times into this machine's file (NAME.toml), for plan --machine");
}

void run_bench_comm(const BenchCommArguments& a, VerbContext& context) {
  RankBench bench(context.processes, a.verbosity);
  bench.refuse_ranks(a.ranks);
  int ranks = bench.ranks_or(!a.config.empty() ? mesh_of(a, 1).world_size()
                             : a.ranks > 0     ? static_cast<int>(a.ranks)
                                               : 2);
  Mesh mesh = mesh_of(a, ranks);
  if (mesh.world_size() != ranks)
    throw UserError(
        {.place = a.config,
         .got = fmt::format("its mesh {} has {} ranks, but {} were started", mesh.text(), mesh.world_size(), ranks),
         .expected = fmt::format("{} processes", mesh.world_size())});
  if (ranks < 2)
    throw UserError({.place = "sextant bench comm",
                     .got = "one rank: nothing to communicate with",
                     .expected = "--ranks 2 or more, a config whose mesh has them, or mpirun"});
  if (a.smallest < 4 || a.largest < a.smallest)
    throw UserError({.place = "--min, --max",
                     .got = fmt::format("{} to {} bytes", a.smallest, a.largest),
                     .expected = "4 bytes or more, the largest last"});
  std::vector<Collective> ops = ops_named(a.ops);
  std::optional<std::string> gpu = gpu_for(a.device);
  if (gpu) require_on_gpu(a.ops, ops);
  std::optional<Machine> saved;
  if (!a.save.empty() && bench.leads()) saved = machine_for(a.save, gpu);
  CommReport report;
  bench.run(ranks, [&](CommWorld& world) {
    std::unique_ptr<Executor> executor = gpu ? executor_on_gpu(world) : nullptr;
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
      throw RunError(fmt::format("{} over {}", bench_name(row.op), row.group), "the results are wrong",
                     "`sextant doctor --burn` looks closer");
  if (report.interrupted) report_interrupted(a.save);
  if (!saved) return;
  merge_message_times(*saved, report);
  write_machine(a.save, *saved);
}

constexpr ValueFormat kBenchCommValues[] = {
    {"FACTOR", "", "--step"},
    {"BYTES", "bytes", "--min --max"},
    {"CALLS", "calls", "--calls"},
    {"COLLECTIVE", "the name of a collective, such as all_reduce", "--op"},
};

}  // namespace

const VerbDef bench_comm_verb{
    .words = "bench comm",
    .summary = "Collectives and messages between ranks",
    .details = "Ranks are threads, or processes under mpirun and srun",
    .examples = "sextant bench comm --ranks 2 --max 65536 --calls 5",
    .values = kBenchCommValues,
    .declare = declare_verb<add_bench_comm_options, run_bench_comm>,
};

}  // namespace sextant
