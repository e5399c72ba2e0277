#include "app/rank_bench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

namespace sextant {

namespace {

constexpr std::chrono::minutes kPatience{5};  // storage can be slow

Launch joined(Processes& processes) {
  processes.join();
  return processes.launch(kPatience, {});
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

RankBench::RankBench(Processes& processes) : launch_(joined(processes)) {
  watch_ = {.stop = [this] { return stop_.asked(); }, .say = [this](const std::string& line) { progress_.say(line); }};
}

void RankBench::run(int ranks, const std::function<void(CommWorld& world)>& work) {
  run_ranks(launch_, {ranks, kPatience}, [&](const RankSeat& seat) {
    CommWorld world(seat.transport);
    work(world);
  });
  progress_.clear();
}

}  // namespace sextant
