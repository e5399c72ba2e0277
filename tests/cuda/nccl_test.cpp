// NCCL: its collectives in a group of one, which any device can show; and where there are several devices, ops between
// ranks that have one each, held to the CPU's kernels.
#include <gtest/gtest.h>

#include "comm/run_ranks.h"
#include "cuda/device_bytes.h"
#include "cuda/hops.h"
#include "cuda/messages_between_ranks.h"
#include "exec/cuda/runtime/kernel.h"

namespace sextant {
namespace {

Words some_floats() {
  std::vector<float> floats{1, -2.5f, 3, 1e-3f, 0, 7, 8, -9};
  auto bytes = std::as_bytes(std::span(floats));
  return {bytes.begin(), bytes.end()};
}

// Empty when the collectives can be used here.
std::string missing(Transport& transport) {
  if (device_count() == 0) return "no device";
  try {
    NcclGroups groups(transport);
    return "";
  } catch (const RunError& error) {
    return error.what();
  }
}

TEST(Nccl, AGroupOfOneGetsItsOwn) {
  ThreadHub hub(1, std::chrono::seconds(20));
  if (std::string why = missing(hub.transport(0)); !why.empty()) GTEST_SKIP() << why;
  CudaDevice device(0, Determinism::repeatable);
  device.use();
  CudaWires wires(hub.transport(0), device, WireKind::nccl);
  NcclGroup& group = wires.group_for(kFirstStageTag, group_of_ranks({0}, 0));
  EXPECT_THROW(group.all_gather(nullptr, nullptr, 0, device.stream()), Bug) << "not open yet";
  wires.open_groups();
  EXPECT_EQ(&group, &wires.group_for(kFirstStageTag, group_of_ranks({0}, 0)));

  DeviceBytes from(some_floats());
  cudaStream_t stream = device.stream();
  auto expect_same = [&](const char* what, auto&& transfer) {
    DeviceBytes to(Words(32, std::byte{0x5a}));
    transfer(to.data());
    check_cuda(cudaStreamSynchronize(stream), what);
    EXPECT_EQ(words_at(to.data(), 32), some_floats()) << what;
  };
  for (DType dtype : {DType::f32, DType::bf16}) {
    int64_t count = 32 / size_of(dtype);
    expect_same("all-reduce", [&](void* to) { group.all_reduce(DeviceSum{from.data(), to, count, dtype}, stream); });
    expect_same("reduce-scatter", [&](void* to) { group.reduce_scatter({from.data(), to, count, dtype}, stream); });
  }
  expect_same("largest", [&](void* to) {
    group.all_reduce(DeviceSum{from.data(), to, 8, DType::f32, Reduction::max}, stream);
  });
  expect_same("two all-reduces", [&](void* to) {
    std::byte *a = static_cast<std::byte*>(from.data()), *b = static_cast<std::byte*>(to);
    std::vector<DeviceSum> sums{{a, b, 4, DType::f32}, {a + 16, b + 16, 8, DType::bf16}};
    group.all_reduce(sums, stream);
  });
  expect_same("all-gather", [&](void* to) { group.all_gather(from.data(), to, 32, stream); });
  expect_same("all-to-all", [&](void* to) { group.all_to_all(from.data(), to, 32, stream); });
  expect_same("shift", [&](void* to) { group.shift(from.data(), to, 32, stream); });
  group.all_reduce(DeviceSum{from.data(), from.data(), 8, DType::f32}, stream);
  check_cuda(cudaStreamSynchronize(stream), "in place");
  EXPECT_EQ(words_at(from.data(), 32), some_floats());
}

TEST(Nccl, MessagesBetweenDevicesArrive) {
  ThreadHub hub(1, std::chrono::seconds(20));
  if (std::string why = missing(hub.transport(0)); !why.empty()) GTEST_SKIP() << why;
  if (device_count() < 2) GTEST_SKIP() << "needs 2 devices";
  expect_messages_arrive(WireKind::nccl);
}

TEST(Nccl, HopsBetweenDevicesAreThoseOfTheCpu) {
  for (int ranks : {2, 4}) {
    ThreadHub hub(1, std::chrono::seconds(20));
    if (std::string why = missing(hub.transport(0)); !why.empty()) GTEST_SKIP() << why;
    if (device_count() < ranks) GTEST_SKIP() << "needs " << ranks << " devices";
    Setting setting{.ranks = ranks, .wires = WireKind::nccl, .terms = Terms::small};
    auto check = [&](const Program& program, const std::string& text) {
      std::vector<RankResult> results = run_between_ranks(program, setting);
      for (int rank = 0; rank < ranks; ++rank) {
        const RankResult& result = results[static_cast<size_t>(rank)];
        for (size_t i = 0; i < result.cpu.size(); ++i)
          EXPECT_EQ(promised(program, result.device[i], rank), promised(program, result.cpu[i], rank))
              << text << ", rank " << rank;
        EXPECT_EQ(result.device_sent, result.cpu_sent) << text;
        EXPECT_TRUE(result.captured);
      }
    };
    for (DType dtype : {DType::f32, DType::bf16}) {
      for (const HopCase& hop : hops_on({{{"dp", ranks}}}, dtype)) check(hop.program, hop.text);
      check(bucket_of(ranks, {{3, 5}, {7}}, dtype), "a bucket");
      check(one_op({{{"cp", ranks}}}, ops::ring_shift, {{3, 5}}, dtype, {{"axis", std::string("cp")}}), "a ring");
    }
    check(one_op({{{"pp", ranks}}}, ops::sum_stages, {{3, 5}}, DType::f32,
                 {{"stages", ranks == 2 ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0, 1, 2, 3}}}),
          "stages");
  }
}

}  // namespace
}  // namespace sextant
