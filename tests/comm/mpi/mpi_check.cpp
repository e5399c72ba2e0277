// One rank of a run over MPI, for check_runs: mpi_check CASE. Says "rank N: ok" or its error, and ends like the program
// does.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <map>
#include <string_view>

#include "comm/collective_checks.h"
#include "comm/launcher.h"
#include "comm/mpi/mpi_transport.h"

namespace sextant {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSick = 2;  // the rank to which things happen

std::span<std::byte> bytes_of(int& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

Group everyone(const Transport& transport) {
  std::vector<int> all(static_cast<size_t>(transport.size()));
  std::iota(all.begin(), all.end(), 0);
  return group_of_ranks(all, transport.rank());
}

void collectives(Transport& transport) {
  checks::require(running_under_mpi(), "the launcher is not seen");
  checks::require(transport.size() > 1, "alone");
  checks::check_collectives(transport);
  Channel channel{transport};
  std::vector<float> large(1 << 20, 1.0f), scratch(large.size());  // far beyond what MPI buffers
  all_reduce(channel, everyone(transport),
             {checks::bytes_of(large), checks::bytes_of(scratch), DType::f32, Reduction::sum});
  for (float value : large) checks::require(value == static_cast<float>(transport.size()), "a wrong sum of large data");
}

void lanes(Transport& transport) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int lane = 0; lane < 3; ++lane)
    threads.emplace_back([&, lane] {
      Channel channel{transport, lane};
      std::vector<int32_t> data(100), scratch(200);
      for (int round = 0; round < 30; ++round) {
        std::fill(data.begin(), data.end(), lane + round);
        all_reduce(channel, everyone(transport),
                   {checks::bytes_of(data), checks::bytes_of(scratch), DType::i32, Reduction::sum});
        for (int32_t value : data) wrong += value != transport.size() * (lane + round);
      }
    });
  for (std::thread& thread : threads) thread.join();
  checks::require(wrong == 0, "{} sums are wrong", wrong.load());
}

// The environment says 60 ms: two messages sent at once arrive together, and the sender does not wait for them. The
// best of some rounds counts: a busy machine delays messages, too.
void delayed(Transport& transport) {
  constexpr int kRounds = 4;
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    Channel channel{transport, 1};
    int first = 0, second = 0;
    barrier(channel, everyone(transport));
    Clock::time_point start = Clock::now();
    if (transport.rank() == 0) {
      Ticket one = transport.send(1, 0, bytes_of(first)), two = transport.send(1, 0, bytes_of(second));
      transport.wait(one);
      transport.wait(two);
    } else if (transport.rank() == 1) {
      Ticket one = transport.receive(0, 0, bytes_of(first)), two = transport.receive(0, 0, bytes_of(second));
      transport.wait(one);
      transport.wait(two);
      best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
    }
  }
  if (transport.rank() == 1) checks::require(best > 0.03 && best < 0.115, "delayed messages took {} s at best", best);
}

void wait_for_sick(Transport& transport) {
  Channel channel{transport, 1};
  barrier(channel, everyone(transport));
  int value = 0;
  if (transport.rank() != kSick) transport.wait(transport.receive(kSick, 7, bytes_of(value)));
}

void killed(Transport& transport) {
  wait_for_sick(transport);
  std::raise(SIGKILL);
}

void stopped(Transport& transport) {
  wait_for_sick(transport);
  std::raise(SIGSTOP);
}

void throws(Transport& transport) {
  wait_for_sick(transport);
  throw RunError("layers.3", "the disk is full");
}

void too_long(Transport& transport) {
  std::vector<int> data(10'000);
  if (transport.rank() == 0) transport.wait(transport.send(1, 9, checks::bytes_of(data)));
  if (transport.rank() == 1) transport.wait(transport.receive(0, 9, checks::bytes_of(data).first(12)));
  wait_for_sick(transport);
}

void too_short(Transport& transport) {
  std::vector<int> data(8);
  if (transport.rank() == 0) transport.wait(transport.send(1, 9, checks::bytes_of(data).first(12)));
  if (transport.rank() == 1) transport.wait(transport.receive(0, 9, checks::bytes_of(data)));
  wait_for_sick(transport);
}

const std::map<std::string_view, void (*)(Transport&)> kCases{
    {"collectives", collectives}, {"lanes", lanes},   {"delayed", delayed},   {"killed", killed},
    {"stopped", stopped},         {"throws", throws}, {"too_long", too_long}, {"too_short", too_short}};

int run(std::string_view name) {
  MpiSession session;
  std::unique_ptr<Transport> transport = make_mpi_transport(session, std::chrono::seconds(2));
  try {
    kCases.at(name)(*transport);
    std::printf("rank %d: ok\n", session.rank());
    return 0;
  } catch (const RunEnded& error) {
    std::printf("%s\n", error.what());
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    transport->abort(error.what());
  }
  std::fflush(stdout);
  return 3;
}

}  // namespace
}  // namespace sextant

int main(int argc, char** argv) {
  if (argc != 2 || !sextant::kCases.contains(argv[1])) return 2;
  int code = sextant::run(argv[1]);
  // Launchers send this signal to the ranks that remain after one has ended. It is too late to change how this rank
  // ends.
  if (code == 0) std::raise(SIGTERM);
  return code;
}
