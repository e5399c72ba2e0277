#include "app/rank_bench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "base/error.h"

namespace sextant {

namespace {

constexpr std::chrono::minutes kBenchPatience{5};  // storage can be slow

Launch joined(Processes& processes) {
  processes.join();
  return processes.launch(kBenchPatience, {});
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

RankBench::RankBench(Processes& processes, Verbosity verbosity) : launch_(joined(processes)), progress_(verbosity) {
  watch_ = {.stop = [this] { return stop_.asked(); }, .say = [this](const std::string& line) { progress_.say(line); }};
}

void RankBench::refuse_ranks(int64_t asked) const {
  if (asked > 0 && launch_.process)
    throw UserError({.place = "--ranks",
                     .got = fmt::format("is not used: the launcher started {} processes", launch_.process->size()),
                     .hint = "leave it out; it is for threads of one process"});
}

void RankBench::run(int ranks, const std::function<void(CommWorld& world)>& work) {
  run_ranks(launch_, {ranks, kBenchPatience}, [&](const RankContext& context) {
    CommWorld world(context.transport);
    work(world);
  });
  progress_.clear();
}

}  // namespace sextant
