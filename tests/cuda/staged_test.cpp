// Ops between ranks that share a device, by way of the host: bit for bit what the CPU's kernels give, with as many
// bytes sent.
#include <gtest/gtest.h>

#include "cuda/hops.h"
#include "cuda/messages_between_ranks.h"
#include "exec/cuda/runtime/device_copy.h"

namespace sextant {
namespace {

class Staged : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << "no device";
  }
};

void expect_as_on_cpu(const Program& program, const std::vector<RankResult>& results, const std::string& text) {
  for (size_t rank = 0; rank < results.size(); ++rank) {
    const RankResult& result = results[rank];
    ASSERT_EQ(result.device.size(), result.cpu.size());
    for (size_t i = 0; i < result.cpu.size(); ++i)
      EXPECT_EQ(promised(program, result.device[i], static_cast<int>(rank)),
                promised(program, result.cpu[i], static_cast<int>(rank)))
          << text << ", output " << i << " of rank " << rank;
    EXPECT_EQ(result.device_sent, result.cpu_sent) << text << ", rank " << rank;
  }
}

void expect_hop_as_on_cpu(const HopCase& hop) {
  const Op& op = hop.program.regions[0].ops[0];
  bool in_place = is_hop(op, Transfer::all_reduce) || is_hop(op, Transfer::keep_first);
  for (Outputs outputs : {Outputs::over_inputs, Outputs::apart}) {
    if (outputs == Outputs::apart && !in_place) continue;  // they are so anyway
    auto results = run_between_ranks(hop.program, {.ranks = hop.program.mesh.world_size(), .outputs = outputs});
    expect_as_on_cpu(hop.program, results, hop.text);
    for (const RankResult& result : results)  // who sends nothing stays on the device
      EXPECT_EQ(result.captured, result.cpu_sent.empty()) << hop.text;
  }
}

TEST_F(Staged, EveryHopIsThatOfTheCpu) {
  std::set<std::string> transfers;
  for (DType dtype : {DType::f32, DType::bf16})
    for (int ranks : {2, 4})
      for (const HopCase& hop : hops_on({{{"dp", ranks}}}, dtype)) {
        expect_hop_as_on_cpu(hop);
        transfers.insert(hop.program.regions[0].ops[0].attrs.text_or("transfer", ""));
      }
  EXPECT_EQ(transfers.size(), static_cast<size_t>(Transfer::all_to_all) + 1) << "every transfer of the table";
}

TEST_F(Staged, SoIsEveryHopOnTwoAxes) {
  for (const HopCase& hop : hops_on({{{"dp", 2}, {"tp", 2}}}, DType::bf16)) expect_hop_as_on_cpu(hop);
}

TEST_F(Staged, BucketsAreSummedInPlace) {
  for (DType dtype : {DType::f32, DType::bf16})
    for (int ranks : {1, 2, 4}) {
      Program program = bucket_of(ranks, {{3, 5}, {7}, {2, 2}}, dtype);
      expect_as_on_cpu(program, run_between_ranks(program, {.ranks = ranks}), fmt::format("a bucket over {}", ranks));
    }
}

TEST_F(Staged, RingsTurn) {
  for (int ranks : {1, 2, 4}) {
    Program program = one_op({{{"cp", ranks}}}, ops::ring_shift, {{3, 5}}, DType::bf16, {{"axis", std::string("cp")}});
    expect_as_on_cpu(program, run_between_ranks(program, {.ranks = ranks}), fmt::format("a ring of {}", ranks));
  }
}

TEST_F(Staged, StagesAddUp) {
  Program program =
      one_op({{{"pp", 2}}}, ops::sum_stages, {{3, 5}}, DType::f32, {{"stages", std::vector<int64_t>{0, 1}}});
  expect_as_on_cpu(program, run_between_ranks(program, {.ranks = 2}), "two stages");
}

TEST_F(Staged, MessagesKeepTheirBytesUntilTheyHaveGone) {
  expect_messages_arrive(WireKind::host_staging);
}

TEST(DeviceCopy, FoldsRowsIntoOnePiece) {
  cuda::DeviceCopy rows({{0, 100, 8}, {32, 108, 8}, {64, 116, 8}, {96, 124, 8}});
  ASSERT_EQ(rows.pieces().size(), 1u);
  EXPECT_EQ(rows.pieces()[0].rows, 4);
  EXPECT_EQ(rows.pieces()[0].from_stride, 32);
  EXPECT_EQ(rows.pieces()[0].to_stride, 8);
  EXPECT_EQ(cuda::DeviceCopy({{0, 0, 8}, {16, 16, 8}, {40, 32, 8}}).pieces().size(), 2u) << "another stride";
  EXPECT_EQ(cuda::DeviceCopy({{0, 0, 8}, {16, 16, 4}}).pieces().size(), 2u) << "another length";
  EXPECT_EQ(cuda::DeviceCopy({{16, 0, 8}, {0, 16, 8}}).pieces().size(), 2u) << "backwards";
  EXPECT_EQ(cuda::DeviceCopy({{0, 0, 8}, {int64_t{1} << 32, 16, 8}}).pieces().size(), 2u)
      << "a stride the driver refuses";
}

}  // namespace
}  // namespace sextant
