#include "bench/cpu_profile.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "bench/environment.h"
#include "bench/op_samples.h"
#include "bench/statistics.h"
#include "comm/tags.h"
#include "config/resolve.h"

namespace sextant {

namespace {

struct ModelSize {
  const char* architecture;
  int64_t hidden, heads, kv_heads, vocab, seq, microbatch;
  int64_t experts = 0;  // two for each token
};

// From where ops take microseconds to where GEMMs fill the caches.
constexpr ModelSize kModels[] = {
    {"llama", 64, 4, 2, 512, 64, 4},      {"llama", 128, 4, 4, 1024, 128, 2},      {"llama", 256, 8, 4, 4096, 128, 4},
    {"llama", 256, 4, 4, 2048, 256, 4},   {"llama", 512, 8, 8, 8192, 256, 2},      {"gpt2", 64, 4, 4, 512, 64, 4},
    {"gpt2", 128, 4, 4, 2048, 64, 8},     {"gpt2", 256, 8, 8, 4096, 128, 8},       {"gpt2", 512, 8, 8, 2048, 512, 1},
    {"mixtral", 64, 4, 2, 512, 64, 4, 4}, {"mixtral", 256, 8, 4, 2048, 128, 4, 8},
};

enum class Along : uint8_t { alone, data, tensor, shards, experts };

RunConfig config_of(const ModelSize& size, Along along, int ranks) {
  RunConfig run;
  run.name = "profile";
  run.model.set<&ModelSpec::architecture>(size.architecture);
  run.model.set<&ModelSpec::layers>(2);
  run.model.set<&ModelSpec::hidden>(size.hidden);
  run.model.set<&ModelSpec::heads>(size.heads);
  run.model.set<&ModelSpec::kv_heads>(size.kv_heads);
  run.model.set<&ModelSpec::vocab>(size.vocab);
  run.model.set<&ModelSpec::max_seq>(size.seq);
  if (size.experts > 0) {
    run.model.set<&ModelSpec::ffn>(2 * size.hidden);
    run.model.set<&ExpertsSpec::count>(size.experts);
    run.model.set<&ExpertsSpec::per_token>(2);
  }
  run.batch = {.sequences = 2 * size.microbatch * (along == Along::tensor ? 1 : ranks),
               .microbatch = size.microbatch,
               .seq = size.seq};
  run.mesh.overlap = false;
  run.train.eval_every = 0;
  (along == Along::tensor ? run.mesh.tp : run.mesh.dp) = along == Along::alone ? 1 : ranks;
  if (along == Along::shards) run.mesh.zero = 3;
  if (along == Along::experts) run.mesh.ep = ranks;
  return run;
}

void sample_model(const CpuProfileRequest& request, const RunConfig& run, OpSamples& samples, const Watch& watch) {
  ModelSpec spec = resolve_model(run);
  LoweredRun lowered = lower_run(run, spec, request.target);
  StepRequest steps{.run = run,
                    .spec = spec,
                    .make_executor = request.make_executor,
                    .threads = request.threads,
                    .at_least_s = request.seconds_per_model,
                    .least_steps = 3,
                    .most_steps = 400,
                    .tracing = Tracing::on};
  samples.add(lowered, time_steps(steps, lowered, watch));
}

void sample_models(const CpuProfileRequest& request, OpSamples& samples, const Watch& watch) {
  std::vector<RunConfig> runs;
  for (const ModelSize& size : kModels) {
    runs.push_back(config_of(size, request.ranks > 1 ? Along::data : Along::alone, request.ranks));
    if (request.ranks > 1 && size.heads % request.ranks == 0 && size.kv_heads % request.ranks == 0)
      for (Along along : {Along::tensor, Along::shards}) runs.push_back(config_of(size, along, request.ranks));
    if (request.ranks > 1 && size.experts > 0 && size.experts % request.ranks == 0)
      runs.push_back(config_of(size, Along::experts, request.ranks));
  }
  size_t done = 0;
  for (const RunConfig& run : runs) {
    if (watch.stop()) return;
    watch.say(fmt::format("{} of width {}, {} rank{} ({} of {})",
                          run.model.given<&ModelSpec::architecture>().value_or(""),
                          run.model.given<&ModelSpec::hidden>().value_or(0), request.ranks,
                          request.ranks > 1 ? "s" : "", ++done, runs.size()));
    sample_model(request, run, samples, watch);
  }
}

// A message there and back, over and over: half of it is one way.
void sample_messages(OpSamples& samples, const Watch& watch) {
  constexpr int kRounds = 200;
  for (int64_t bytes = 64; bytes <= (4 << 20) && !watch.stop(); bytes *= 4)
    run_rank_threads(2, [&](const RankContext& context) {
      std::vector<std::byte> data(static_cast<size_t>(bytes));
      Transport& transport = *context.transport;
      for (int round = 0; round < kRounds; ++round) {
        auto start = std::chrono::steady_clock::now();
        auto send = [&] { transport.wait(transport.send(1 - context.rank, kHostTag, data)); };
        auto receive = [&] { transport.wait(transport.receive(1 - context.rank, kHostTag, data)); };
        context.rank == 0 ? (send(), receive()) : (receive(), send());
        std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
        if (context.rank == 0 && round >= kRounds / 4)
          samples.add("send", {2, static_cast<double>(bytes)}, taken.count() / 2);
      }
    });
}

// Adds that wait for each other take one cycle each.
double clock_hz() {
  constexpr int64_t kAdds = 20'000'000;
  double best = 1e300;
  for (int round = 0; round < 3; ++round) {
    auto start = std::chrono::steady_clock::now();
    int64_t x = 0;
    for (int64_t i = 0; i < kAdds; ++i) {
      x += 1;
      asm volatile("" : "+r"(x));
    }
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return kAdds / best;
}

Device device_of(const CpuProfileRequest& request, const Watch& watch) {
  constexpr int64_t kSide = 1024, kStream = 64 << 20;
  constexpr Repeat kShort{.least = 5, .most = 50, .seconds = 0.5, .warm_seconds = 0.5};
  DeviceFacts facts = request.probe.facts();
  GemmDims cube{kSide, kSide, kSide};
  auto gemm = request.probe.gemm(cube, "fp32");
  auto copy = request.probe.stream(Stream::copy, kStream);
  auto per_second = [&](double work, TimedWork& call) {
    double best = summary_of(repeated([&] { return call.run(); }, kShort, watch)).best;
    return best > 0 ? work / best : 0;  // stopped before the first
  };
  double rate = per_second(cube.flops(), *gemm), bandwidth = per_second(bytes_of(Stream::copy, kStream), *copy);
  Efficiencies reached;
  Device device{.name = facts.name,
                .kind = DeviceKind::cpu,
                .units = request.threads,
                .clock_hz = clock_hz(),
                .memory_bytes = static_cast<double>(facts.memory_bytes) / request.ranks,
                .memory_bytes_per_s = bandwidth / reached.memory,
                .cache_bytes = static_cast<double>(facts.cache_bytes)};
  device.peaks["fp32"] = rate / reached.product;
  device.flops_per_clock_and_unit = device.peaks["fp32"] / device.clock_hz / request.threads;
  return device;
}

}  // namespace

Machine measure_cpu(const CpuProfileRequest& request, const Watch& watch) {
  Machine machine;
  machine.name = request.name;
  machine.date = today();
  machine.about =
      fmt::format("{} rank{} of {} thread{} on one processor, all busy, measured by sextant bench", request.ranks,
                  request.ranks > 1 ? "s" : "", request.threads, request.threads > 1 ? "s" : "");
  watch.say("GEMMs and memory");
  machine.device = device_of(request, watch);
  machine.devices_per_node = request.ranks;
  machine.tables.kernel_s = 1e-6;
  machine.tables.imbalance = 1;
  machine.context_bytes = 0;
  OpSamples samples;
  watch.say("messages");
  sample_messages(samples, watch);
  sample_models(request, samples, watch);
  machine.ops = samples.table();
  Link link{.bytes_per_s = 1e9, .latency_s = 1e-5};
  if (auto sent = machine.ops.find("send"); sent != machine.ops.end()) {
    link.latency_s = sent->second.front().seconds;
    link.bytes_per_s = sent->second.back().size[1] / sent->second.back().seconds;
  }
  machine.levels.push_back({.name = "processor", .devices = 0, .link = link});
  for (const char* table : {"device", "level", "efficiency", "ops"})
    machine.sources[table] = "measured by sextant bench, " + machine.date;
  return machine;
}

}  // namespace sextant
