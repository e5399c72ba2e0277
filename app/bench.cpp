#include "app/bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "app/bench_progress.h"
#include "app/bench_save.h"
#include "app/device.h"
#include "app/json_output.h"
#include "app/verb.h"
#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "base/threads.h"
#include "bench/cpu_profile.h"
#include "bench/environment.h"
#include "bench/gemm.h"
#include "bench/grouped_gemm.h"
#include "bench/host.h"
#include "bench/memory.h"
#include "bench/op_bench.h"
#include "bench/result.h"
#include "bench/save.h"
#include "bench/sizing.h"
#include "bench/traced_ops.h"
#include "config/load.h"
#include "cost/machine_file.h"
#include "exec/cpu/cpu_executor.h"
#include "exec/cpu/cpu_probe.h"
#include "ops/ops.h"
#include "run/resolve_spec.h"
#include "targets/cpu/cpu_target.h"
#include "train/data/dataset.h"
#include "train/health/stop.h"
#ifdef SEXTANT_CUDA
#include "exec/cuda/probe/cuda_probe.h"
#include "exec/cuda/runtime/devices.h"
#endif

namespace sextant {

namespace {

int threads_of(const BenchOptions& o) {
  return o.threads > 0 ? static_cast<int>(o.threads) : core_count();
}

#ifdef SEXTANT_CUDA
bool on_cuda(const BenchOptions& o) {
  return o.device == "cuda" || (o.device == "auto" && !cuda_devices().devices.empty());
}
#else
bool on_cuda(const BenchOptions&) {
  return false;
}
#endif

// One benchmark on its way: the device, what was found, and the line that shows the progress.
class Session {
 public:
  explicit Session(const BenchOptions& options) : options_(options), progress_(options.verbosity) {
    if (options.device != "auto")
      executor_for(options.device, 1);  // refuses what is not here, in the words of training
#ifdef SEXTANT_CUDA
    if (on_cuda(options)) probe_ = make_cuda_probe(0);
#endif
    if (!probe_) probe_ = make_cpu_probe(threads_of(options));
    known_ = on_cuda(options) ? known_machine_with(probe_->facts().name) : std::nullopt;
    report.environment = environment_of(*probe_);
    if (!options.save.empty()) {
      saved_ = machine_to_save(options.save, known_);
      require_kind(options.save, *saved_, on_cuda(options) ? MeasuredOn::gpu : MeasuredOn::cpu);
    }
    watch = {.stop = [this] { return stop_.asked(); }, .say = [this](const std::string& line) { progress_.say(line); }};
  }

  DeviceProbe& probe() {
    return *probe_;
  }
  Repeat repeat() const {
    return {.least = 10,
            .most = 2000,
            .seconds = options_.seconds,
            .warm_seconds = std::clamp(5 * options_.seconds, 0.01, 2.0)};
  }
  std::map<std::string, double> peaks() const {
    return known_ ? known_->device.peaks : std::map<std::string, double>{};
  }
  double peak_bytes_per_s() const {
    return known_ ? known_->device.memory_bytes_per_s : 0;
  }
  const std::optional<Machine>& known() const {
    return known_;
  }

  void rename(const std::string& name) {
    if (saved_) saved_->name = name;
  }

  void finish() {
    finish(options_.save);
  }

  // `save` is the file that will not be there when the benchmark was interrupted.
  void finish(const std::string& save) {
    progress_.clear();
    report.interrupted = stop_.asked();
    // Under load, after the work: what the first reading says of an idle device is of little use.
    Readings now = probe_->readings();
    if (!now.power.empty())
      report.environment.emplace_back("at the end", fmt::format("{}, {}, {}", now.clock, now.power, now.temperature));
    fmt::print("{}", options_.json ? report_json(report) : report_text(report));
    std::fflush(stdout);
    for (const BenchResult& result : report.results)
      if (result.error > 1)
        throw RunError(result.key(), "the results are wrong",
                       "this device cannot be trusted; `sextant doctor --burn` looks closer");
    if (report.interrupted) report_interrupted(save);
    if (!saved_) return;
    merge_into_machine(*saved_, report);
    write_machine(options_.save, *saved_);
  }

  BenchReport report;
  Watch watch;

 private:
  const BenchOptions& options_;
  StopRequest stop_;
  ProgressLine progress_;
  std::unique_ptr<DeviceProbe> probe_;
  std::optional<Machine> known_;  // with this device
  std::optional<Machine> saved_;  // what --save lays the results over
};

ExecutorMaker executor_maker(const BenchOptions& o) {
  RunConfig run;
  run.device = device_named(o.device);
  run.places["device"] = "--device";
  return executors_for(run);
}

Target target_of(const BenchOptions& o) {
  RunConfig run;
  run.device = device_named(o.device);
  run.train.threads = threads_of(o);
  return target_for(run, 1);
}

// The lowered Programs of a config, for the device and threads that the options name.
LoweredRun lowered_of(RunConfig& run, const BenchOptions& options) {
  run.device = device_named(options.device);
  run.train.threads = threads_of(options);
  ModelSpec spec = resolve_spec(run);
  return lower_run(run, spec, target_for(run, run_shape(run, spec).mesh.world_size()));
}

struct GemmShapes {
  std::vector<GemmDims> single;
  std::vector<GroupedGemm> grouped;
};

// Operands beyond any device's memory would be refused late, and in bytes that no number holds.
void require_some_size(const ExpertLayer& layer) {
  constexpr double kMost = 1e12;  // elements
  auto of = [](int64_t a, int64_t b, int64_t c) {
    return static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c);
  };
  double weights = of(layer.experts, 2 * layer.width, layer.hidden),
         slots = of(layer.tokens, layer.per_token, 2 * layer.width), tokens = of(layer.tokens, layer.hidden, 1);
  if (std::max({weights, slots, tokens}) > kMost)
    throw UserError(
        {.place = "--experts",
         .got = fmt::format("{} experts of {} x {} and {} tokens have operands of {:.3g} elements", layer.experts,
                            layer.hidden, layer.width, layer.tokens, std::max({weights, slots, tokens})),
         .expected = "at most 1e12 in each"});
}

void add_experts(const BenchGemmArguments& a, GemmShapes& shapes) {
  if (a.per_token > a.experts)
    throw UserError({.place = "--per-token",
                     .got = fmt::format("{} of {} experts", a.per_token, a.experts),
                     .expected = "at most as many as --experts"});
  double most = static_cast<double>(a.experts) / static_cast<double>(a.per_token);
  if (a.imbalance > most)
    throw UserError(
        {.place = "--imbalance",
         .got = fmt::format("{:g}", a.imbalance),
         .expected = fmt::format("at most {:g}, --experts / --per-token: the busiest expert then gets every "
                                 "token",
                                 most)});
  bool cuda = on_cuda(a.options);
  auto range = [](const std::string& text, const char* option, int64_t usual) {
    return text.empty() ? std::vector{usual} : parse_range(text, option);
  };
  for (int64_t tokens : range(a.tokens, "--tokens", cuda ? 16384 : 512))
    for (int64_t hidden : range(a.hidden, "--hidden", cuda ? 2048 : 256))
      for (int64_t width : range(a.width, "--width", cuda ? 1024 : 256)) {
        ExpertLayer layer{a.experts, a.per_token, tokens, hidden, width};
        require_some_size(layer);
        for (GroupedGemm& gemm : grouped_gemms_of(layer)) shapes.grouped.push_back(std::move(gemm));
      }
}

GemmShapes shapes_of(const BenchGemmArguments& a) {
  GemmShapes all;
  std::vector<GemmDims>& shapes = all.single;
  for (const std::string& shape : a.shapes) shapes.push_back(parse_shape(shape, "--shape"));
  if (!a.m.empty() || !a.n.empty() || !a.k.empty()) {
    auto range = [](const std::string& text, const char* option) {
      return parse_range(text.empty() ? "4096" : text, option);
    };
    for (int64_t m : range(a.m, "--m"))
      for (int64_t n : range(a.n, "--n"))
        for (int64_t k : range(a.k, "--k")) shapes.push_back({m, n, k});
  }
  if (!a.config.empty()) {
    RunConfig run = load_config(a.config, a.overrides);
    LoweredRun lowered = lowered_of(run, a.options);
    for (const GemmDims& shape : gemms_of(lowered)) shapes.push_back(shape);
    all.grouped = grouped_gemms_of(lowered);
  }
  if (a.experts > 0) add_experts(a, all);
  if (shapes.empty() && all.grouped.empty() && !a.mamf)
    for (int64_t side : {512, 1024, 2048}) shapes.push_back({side, side, side});
  return all;
}

// Those of experts are computed by our own kernels, in the types that the device trains in.
std::vector<DType> grouped_types(const std::vector<std::string>& types, const Target& target) {
  std::vector<DType> found;
  for (const std::string& type : types) {
    auto dtype = std::ranges::find(target.computes_in, type, grouped_type_name);
    if (dtype == target.computes_in.end()) {
      std::vector<std::string_view> known;
      for (DType each : target.computes_in) known.push_back(grouped_type_name(each));
      throw UserError({.place = "--type",
                       .got = fmt::format("GEMMs of experts are not computed in '{}'", type),
                       .expected = fmt::format("one of {}", fmt::join(known, ", "))});
    }
    found.push_back(*dtype);
  }
  return found;
}

std::vector<std::string> types_of(const BenchGemmArguments& a, const DeviceProbe& probe) {
  std::vector<std::string> known = probe.gemm_types();
  for (const std::string& type : a.types)
    if (std::find(known.begin(), known.end(), type) == known.end())
      throw UserError({.place = "--type",
                       .got = fmt::format("the device does not multiply '{}'", type),
                       .expected = fmt::format("one of {}", fmt::join(known, ", "))});
  if (!a.types.empty()) return a.types;
  bool bf16 = std::find(known.begin(), known.end(), "bf16") != known.end();
  return {bf16 ? "bf16" : known.front()};
}

BenchReport read_report(const std::string& file) {
  return parse_report(read_file(file), file);
}

}  // namespace

void run_bench_gemm(const BenchGemmArguments& a) {
  GemmShapes shapes = shapes_of(a);
  ShapeSpace space{a.step, a.most > 0 ? a.most : on_cuda(a.options) ? 16384 : 4096};
  if (a.mamf && space.most < space.step)
    throw UserError({.place = "--most",
                     .got = fmt::format("{}, which is less than --step", space.most),
                     .expected = fmt::format("{} or more", space.step)});
  Session session(a.options);
  GemmRequest request{.probe = session.probe(),
                      .shapes = std::move(shapes.single),
                      .types = types_of(a, session.probe()),
                      .peaks = session.peaks(),
                      .repeat = session.repeat()};
  std::unique_ptr<Executor> executor;
  std::vector<DType> types;
  if (!shapes.grouped.empty()) {
    executor = executor_for(a.options.device, threads_of(a.options));
    types = grouped_types(request.types, executor->target());
  }
  bench_gemm(request, session.report, session.watch);
  if (executor)
    bench_grouped_gemms({.executor = *executor,
                         .gemms = std::move(shapes.grouped),
                         .types = std::move(types),
                         .imbalance = a.imbalance,
                         .peaks = session.peaks(),
                         .repeat = session.repeat()},
                        session.report, session.watch);
  if (a.mamf) bench_mamf(request, space, session.report, session.watch);
  session.finish();
}

namespace {

void bench_host_of_gpu(Session& session, const BenchOptions& options, int64_t bytes) {
  std::unique_ptr<DeviceProbe> host = make_cpu_probe(threads_of(options));
  bench_host({.device = session.probe(), .host = *host, .bytes = bytes, .repeat = session.repeat()}, session.report,
             session.watch);
}

}  // namespace

void run_bench_memory(const BenchMemoryArguments& a) {
  Session session(a.options);
  std::vector<int64_t> sizes;
  for (double mb : a.megabytes) sizes.push_back(static_cast<int64_t>(mb * (1 << 20)));
  int64_t most = on_cuda(a.options) ? int64_t{4} << 30 : int64_t{256} << 20;
  if (sizes.empty())
    for (int64_t size = 1 << 20; size <= most; size *= 4) sizes.push_back(size);
  bench_memory({.probe = session.probe(),
                .sizes = sizes,
                .peak_bytes_per_s = session.peak_bytes_per_s(),
                .repeat = session.repeat()},
               session.report, session.watch);
  if (on_cuda(a.options)) bench_host_of_gpu(session, a.options, sizes.back());
  session.finish();
}

void run_bench_attention(const BenchAttentionArguments& a) {
  Session session(a.options);
  bool cuda = on_cuda(a.options);
  auto or_else = [](const std::vector<int64_t>& given, std::vector<int64_t> usual) {
    return given.empty() ? usual : given;
  };
  int64_t tokens = a.tokens > 0 ? a.tokens : cuda ? 32768 : 1024;
  std::vector<AttentionCase> shapes;
  for (int64_t dim : or_else(a.head_dims, {64, 128}))
    for (int64_t heads : or_else(a.heads, cuda ? std::vector<int64_t>{16} : std::vector<int64_t>{8}))
      for (int64_t seq :
           or_else(a.lengths, cuda ? std::vector<int64_t>{1024, 4096, 16384} : std::vector<int64_t>{128, 512, 1024}))
        shapes.push_back({std::max<int64_t>(1, tokens / seq), seq, heads, heads, dim});
  std::unique_ptr<Executor> executor = executor_for(a.options.device, threads_of(a.options));
  std::map<std::string, double> peaks = session.peaks();
  bench_attention({.executor = *executor,
                   .shapes = shapes,
                   .peak_flops_per_s = cuda ? peaks["bf16"] : 0,
                   .repeat = session.repeat()},
                  session.report, session.watch);
  session.finish();
}

namespace {

void bench_ops_of_config(const BenchOpsArguments& a) {
  RunConfig run = load_config(a.config, a.overrides);
  LoweredRun lowered = lowered_of(run, a.options);
  auto has = [&](const Program& program) {
    return std::ranges::any_of(program.regions, [&](const Region& region) {
      return std::ranges::any_of(
          region.ops, [&](const Op& op) { return !op.def->message && op.def->name.find(a.only) != op.def->name.npos; });
    });
  };
  if (std::ranges::none_of(lowered.programs.train, has))
    throw UserError({.place = "--only",
                     .got = fmt::format("no op of the steps of {} has '{}' in its name", a.config, a.only),
                     .expected = "a part of a name, such as attention or linear",
                     .hint = "without --only all of them are timed; messages are bench comm's"});
  Session session(a.options);
  ExecutorMaker maker = executor_maker(a.options);
  ModelSpec spec = resolve_spec(run);
  session.watch.say("training steps");
  bench_traced_ops({.steps = {.run = run,
                              .spec = spec,
                              .make_executor = maker,
                              .threads = std::max(1, threads_of(a.options) / lowered.shape.mesh.world_size()),
                              .at_least_s = a.options.seconds},
                    .only = a.only},
                   lowered, session.report, session.watch);
  session.finish();
}

}  // namespace

void run_bench_ops(const BenchOpsArguments& a) {
  if (!a.config.empty()) return bench_ops_of_config(a);
  std::span<const OpDef* const> ops = all_ops();
  if (std::none_of(ops.begin(), ops.end(), [&](const OpDef* op) { return op->name.find(a.only) != op->name.npos; }))
    throw UserError({.place = "--only",
                     .got = fmt::format("no op's name has '{}' in it", a.only),
                     .expected = "a part of a name, such as attention or linear",
                     .hint = "without --only all of them are timed"});
  Session session(a.options);
  std::unique_ptr<Executor> executor = executor_for(a.options.device, threads_of(a.options));
  bench_ops({.executor = *executor, .only = a.only, .repeat = session.repeat()}, session.report, session.watch);
  session.finish();
}

void run_bench_sizing(const BenchSizingArguments& a) {
  RunConfig run = load_config(a.config, a.overrides);
  ModelSpec spec = resolve_spec(run);
  constexpr std::string_view kSizes[] = {"hidden", "heads", "ffn", "vocab", "seq", "batch"};
  std::vector<VariedSize> sizes;
  for (const std::string& text : a.vary) {
    VariedSize size{.name = text.substr(0, text.find('=')), .values = {}};
    if (std::find(std::begin(kSizes), std::end(kSizes), size.name) == std::end(kSizes))
      throw UserError({.place = "--vary",
                       .got = fmt::format("'{}'", size.name),
                       .expected = fmt::format("one of {}", fmt::join(kSizes, ", "))});
    for (size_t at = text.find('='); at != text.npos;) {
      size_t end = text.find(',', at + 1);
      size.values.push_back(parse_range(text.substr(at + 1, end == text.npos ? end : end - at - 1), "--vary")[0]);
      at = end;
    }
    sizes.push_back(std::move(size));
  }
  if (sizes.empty())
    for (std::string_view name : kSizes) sizes.push_back({std::string(name), {}});
  Session session(a.options);
  ExecutorMaker maker = executor_maker(a.options);
  bench_sizing({.run = run,
                .spec = spec,
                .make_executor = maker,
                .target = target_of(a.options),
                .threads = threads_of(a.options),
                .sizes = sizes,
                .seconds_per_size = std::max(0.5, a.options.seconds)},
               session.report, session.watch);
  session.finish();
}

namespace {

[[noreturn]] void refuse_on_device(const char* option, const char* why, const char* device) {
  throw UserError({.place = option,
                   .got = fmt::format("is not used: {}", why),
                   .hint = fmt::format("leave it out; it is for {}", device)});
}

// Few and many rows of an expert, by the widths that models have, from OLMoE's to Mixtral's.
std::vector<GroupedGemm> grouped_gemms_of_machine() {
  constexpr int64_t kPerToken = 2;
  std::vector<GroupedGemm> gemms;
  for (const ExpertLayer& sizes : {ExpertLayer{.experts = 64, .hidden = 2048, .width = 768},
                                   ExpertLayer{.experts = 32, .hidden = 4096, .width = 2048},
                                   ExpertLayer{.experts = 8, .hidden = 4096, .width = 14336}})
    for (int64_t rows : {128, 1024, 8192}) {
      ExpertLayer layer = sizes;
      layer.per_token = kPerToken;
      layer.tokens = rows * layer.experts / kPerToken;
      for (GroupedGemm& gemm : grouped_gemms_of(layer)) gemms.push_back(std::move(gemm));
    }
  return gemms;
}

// Measures the figures that a GPU's file replaces; the others stay as in that file, or in the known machine with the
// device when the file is new.
void bench_gpu(const BenchMachineArguments& a) {
  const BenchOptions& options = a.options;
  Session session(options);
  if (!a.name.empty()) session.rename(a.name);
  GemmRequest gemms{
      .probe = session.probe(), .shapes = {}, .types = {"bf16"}, .peaks = session.peaks(), .repeat = session.repeat()};
  for (int64_t m : {1024, 4096, 16384, 65536})
    for (int64_t n : {1024, 2048, 4096, 8192, 16384})
      for (int64_t k : {1024, 2048, 4096, 8192, 16384}) gemms.shapes.push_back({m, n, k});
  MemoryRequest memory{.probe = session.probe(),
                       .sizes = {int64_t{1} << 30, int64_t{4} << 30},
                       .peak_bytes_per_s = session.peak_bytes_per_s(),
                       .repeat = session.repeat()};
  bench_launch(memory, session.report, session.watch);
  bench_gemm(gemms, session.report, session.watch);
  bench_memory(memory, session.report, session.watch);
  bench_host_of_gpu(session, options, memory.sizes.front());
  std::vector<AttentionCase> shapes;
  for (int64_t dim : {64, 128})
    for (int64_t seq : {4096, 16384}) shapes.push_back({32768 / seq, seq, 16, 16, dim});
  std::unique_ptr<Executor> executor = executor_for(options.device, 1);
  bench_grouped_gemms({.executor = *executor,
                       .gemms = grouped_gemms_of_machine(),
                       .types = {DType::bf16},
                       .peaks = session.peaks(),
                       .repeat = session.repeat()},
                      session.report, session.watch);
  bench_attention({.executor = *executor,
                   .shapes = shapes,
                   .peak_flops_per_s = session.peaks()["bf16"],
                   .repeat = session.repeat()},
                  session.report, session.watch);
  session.finish();
}

}  // namespace

void run_bench_machine(const BenchMachineArguments& given, VerbContext& context) {
  BenchMachineArguments a = given;
  if (a.options.save == kThisMachine) {
    a.options.save = file_of_this_machine();
    std::filesystem::create_directories(std::filesystem::path(a.options.save).parent_path());
  }
  if (on_cuda(a.options)) {
    if (a.ranks > 0) refuse_on_device("--ranks", "a GPU is measured by one rank", "--device cpu");
    return bench_gpu(a);
  }
  if (context.is_given("--seconds"))
    refuse_on_device("--seconds", "the models that a CPU is measured with set their own times", "--device cuda");
  require_writable(a.options.save);
  BenchOptions options = a.options;
  options.save.clear();  // written whole, below
  Session session(options);
  int threads = threads_of(a.options),
      ranks = a.ranks > 0 ? static_cast<int>(a.ranks) : std::max(1, core_count() / threads);
  ExecutorMaker maker = executor_maker(a.options);
  std::string name = a.name.empty() ? std::filesystem::path(a.options.save).stem().string() : a.name;
  CpuProfileRequest request{.name = name,
                            .probe = session.probe(),
                            .make_executor = maker,
                            .target = cpu_target(threads),
                            .threads = threads,
                            .ranks = ranks};
  Machine machine = measure_cpu(request, session.watch);
  for (const auto& [what, value] : session.report.environment)
    machine.sources["run"] += fmt::format("{}{}: {}", machine.sources["run"].empty() ? "" : "; ", what, value);
  size_t measured = 0;
  for (const auto& [op, sizes] : machine.ops) measured += sizes.size();
  session.report.findings.push_back(fmt::format("{} kinds of op in {} sizes, {:.1f} GFLOP/s, {:.1f} GB/s",
                                                machine.ops.size(), measured,
                                                machine.peak("fp32") * machine.tables.product / 1e9,
                                                machine.device.memory_bytes_per_s * machine.tables.memory / 1e9));
  session.finish(a.options.save);
  write_machine(a.options.save, machine);
}

void run_bench_compare(const BenchCompareArguments& a) {
  Comparison comparison = compare_reports(read_report(a.before), read_report(a.after));
  fmt::print("{}", a.json ? comparison_json(comparison) : comparison_text(comparison));
}

void run_bench_report(const BenchReportArguments& a) {
  write_file_atomically(a.html, report_html(read_report(a.file), "What this machine reaches"));
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  json["file"] = a.html;
  if (a.json)
    print_json(json);
  else if (a.verbosity != Verbosity::quiet)
    fmt::print("written: {}\n", printable(a.html));
}

}  // namespace sextant
