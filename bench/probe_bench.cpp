// The benchmark against a bare loop: GEMMs and copies timed by `sextant bench`'s own machinery, and by a plain loop
// that flushes the caches in the same way, in turn. Prints the ratio of the medians; exits with 1 when one is more than
// 5 % off. Usage: bench_probe [threads=0 (all cores)]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "base/threads.h"
#include "bench/statistics.h"
#include "exec/cpu/cpu_bound.h"
#include "exec/cpu/cpu_probe.h"
#include "exec/cpu/kernels/gemm.h"

namespace sextant {
namespace {

constexpr int kCalls = 60, kRounds = 5;

double middle(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
  return x[x.size() / 2];
}

double timed(const std::function<void()>& work) {
  auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class BareLoop {
 public:
  explicit BareLoop(int threads) : team_(threads), flush_(size_t{64} << 20) {}

  double once(const std::function<void()>& work) {
    team_.parallel_for(64, [&](int64_t task, int) {
      size_t part = flush_.size() / 64;
      for (size_t i = static_cast<size_t>(task) * part; i < static_cast<size_t>(task + 1) * part; i += 8)
        flush_[i] += 1;
    });
    return timed(work);
  }
  ThreadTeam& team() { return team_; }

 private:
  ThreadTeam team_;
  std::vector<char> flush_;
};

bool report(const std::string& name, TimedWork& ours, const std::function<double()>& bare) {
  std::vector<double> own, plain;
  for (int round = 0; round < kRounds; ++round) {
    for (double seconds : ours.run_many(kCalls / kRounds)) own.push_back(seconds);
    for (int i = 0; i < kCalls / kRounds; ++i) plain.push_back(bare());
  }
  double ratio = middle(own) / middle(plain);
  fmt::print("{:<22} bench {:9.1f} us  bare loop {:9.1f} us  ratio {:.3f}\n", name, middle(own) * 1e6,
             middle(plain) * 1e6, ratio);
  return std::abs(ratio - 1) <= 0.05;
}

bool check_gemm(DeviceProbe& probe, BareLoop& loop, int64_t m, int64_t n, int64_t k) {
  std::vector<float> a(static_cast<size_t>(m * k), 0.3f), b(static_cast<size_t>(n * k), 0.7f),
      c(static_cast<size_t>(m * n));
  std::vector<std::byte> room(static_cast<size_t>(cpu::multiply_workspace(n, k, loop.team().size())) + 64);
  void* at = room.data();
  size_t space = room.size();
  auto* workspace = static_cast<std::byte*>(std::align(64, room.size() - 64, at, space));
  cpu::Gemm<float> gemm{
      .m = m, .n = n, .k = k, .a = {a.data(), k}, .b = {b.data(), 1, k}, .c = c.data(), .c_stride = n};
  std::unique_ptr<TimedWork> ours = probe.gemm({m, n, k}, "fp32");
  return report(fmt::format("GEMM {}x{}x{}", m, n, k), *ours,
                [&] { return loop.once([&] { cpu::multiply(gemm, loop.team(), workspace); }); });
}

bool check_copy(DeviceProbe& probe, BareLoop& loop, int64_t bytes) {
  HostArena from(bytes), to(bytes);  // pages as the benchmark has them
  std::memset(from.data(), 1, static_cast<size_t>(bytes));
  std::unique_ptr<TimedWork> ours = probe.stream(Stream::copy, bytes);
  return report(fmt::format("copy {} MiB", bytes >> 20), *ours, [&] {
    return loop.once([&] {
      int64_t parts = 4 * loop.team().size(), part = bytes / parts;
      loop.team().parallel_for(parts, [&](int64_t task, int) {
        std::memcpy(to.data() + task * part, from.data() + task * part, static_cast<size_t>(part));
      });
    });
  });
}

}  // namespace
}  // namespace sextant

int main(int argc, char** argv) {
  using namespace sextant;
  int threads = argc > 1 ? std::atoi(argv[1]) : 0;
  cpu::use_single_threaded_blas();
  std::unique_ptr<DeviceProbe> probe = make_cpu_probe(threads);
  BareLoop loop(threads);
  bool good = true;
  good = check_gemm(*probe, loop, 512, 512, 512) && good;
  good = check_gemm(*probe, loop, 1024, 1024, 1024) && good;
  good = check_gemm(*probe, loop, 2048, 256, 1024) && good;
  for (int64_t bytes : {int64_t{16} << 20, int64_t{64} << 20, int64_t{256} << 20})
    good = check_copy(*probe, loop, bytes) && good;
  return good ? 0 : 1;
}
