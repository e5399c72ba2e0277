// The check of replicas between steps goes through all that ranks hold alike, part by part: one byte that differs,
// wherever it is, is found before everything has been read twice; what is sharded, or differs by design, is not
// compared.
#include "train/health/replica_check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "base/corruption.h"
#include "comm/host_group.h"
#include "comm/run_ranks.h"
#include "comm/tags.h"
#include "comm/thread_transport.h"
#include "exec/tensor.h"

namespace sextant {
namespace {

constexpr int kRanks = 3;
constexpr int64_t kMiB = 1 << 20;

Value kept(std::string path, int64_t bytes, AxisState state, ValueKind kind) {
  Value value{.path = std::move(path), .kind = kind, .dtype = DType::u8, .shape = {bytes}, .layout = {{state}}};
  value.local = LocalShape(std::vector<int64_t>{bytes});
  value.buffer = 0;
  return value;
}

Program three_values() {
  Program program;
  program.mesh = Mesh{{{"dp", kRanks}}};
  for (Value value :
       {kept("first", kMiB + 4097, kReplicated, ValueKind::parameter),
        kept("shard", 3, sharded(0), ValueKind::parameter), kept("second", 2 * kMiB + 5, kReplicated, ValueKind::state),
        kept("third", 7, kReplicated, ValueKind::state)}) {
    value.id = static_cast<ValueId>(program.values.size());
    program.values.push_back(std::move(value));
  }
  return program;
}

// Bytes that follow from their place, but for one on one rank.
class MadeUpState final : public StateView {
 public:
  MadeUpState(const Program& program, int rank, std::string path, int64_t at)
      : program_(program), rank_(rank), path_(std::move(path)), at_(at) {}
  const Program& program() const override { return program_; }
  int rank() const override { return rank_; }
  void read(const Value& value, std::span<std::byte> destination, int64_t offset) const override {
    bool is_shard = value.path == "shard";
    for (size_t i = 0; i < destination.size(); ++i)
      destination[i] = static_cast<std::byte>((offset + static_cast<int64_t>(i)) * 7 + (is_shard ? rank_ : 0));
    if (value.path == path_ && at_ >= offset && at_ < offset + std::ssize(destination))
      destination[static_cast<size_t>(at_ - offset)] ^= std::byte{0x10};
  }

 private:
  const Program& program_;
  int rank_;
  std::string path_;
  int64_t at_;
};

// The message of the checks between steps about a byte of rank 1, and the number of checks; no message after `most`
// checks without a difference.
std::pair<std::string, int> found_in(const std::string& path, int64_t at, int most) {
  const Program program = three_values();
  ThreadHub hub(kRanks, std::chrono::seconds(60));
  std::atomic<int> checks = 0;
  std::string said;
  for (const RankEnd& end : run_ranks(hub, kRanks, [&](Transport& transport) {
         HostGroup group(transport, kHostTag);
         MadeUpState state(program, transport.rank(), transport.rank() == 1 ? path : "", at);
         ReplicaCheck check(state, &transport, SameWork::same_bits);
         EXPECT_EQ(check.replicated_bytes(), 3 * kMiB + 4097 + 5 + 7);
         for (int turn = 0; turn < most; ++turn) {
           if (group.leads()) ++checks;
           check.check_part(group);
         }
       }))
    if (said.empty()) said = end.error;
  return {said, checks};
}

TEST(ReplicaCheckParts, NothingDiffersNothingIsSaid) {
  EXPECT_EQ(found_in("", 0, 9), (std::pair<std::string, int>{"", 9}));
}

TEST(ReplicaCheckParts, ReachEveryByte) {
  constexpr int kTurns = 5;  // of 1 MiB or more each: all of it once
  for (auto [path, at] : std::vector<std::pair<std::string, int64_t>>{{"first", 0},
                                                                      {"first", kMiB - 1},
                                                                      {"first", kMiB + 4096},
                                                                      {"second", 0},
                                                                      {"second", kMiB},
                                                                      {"second", 2 * kMiB + 4},
                                                                      {"third", 6}}) {
    auto [said, checks] = found_in(path, at, kTurns);
    EXPECT_NE(said.find(fmt::format("{} on rank 1 differs from that on ranks 0, 2", path)), std::string::npos)
        << path << at << said;
  }
}

}  // namespace
}  // namespace sextant
