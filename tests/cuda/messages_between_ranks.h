// send and recv between two ranks on the device, held to what was sent.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "comm/run_ranks.h"
#include "cuda/device_bytes.h"
#include "cuda/hops.h"
#include "exec/cuda/runtime/kernel.h"

namespace sextant {

// A value of five microbatches in two slots goes from one stage to the next; the receiver is late, so that messages lie
// about.
inline void expect_messages_arrive(WireKind kind) {
  constexpr int kMicrobatches = 5, kSlots = 2;
  Mesh mesh{{{"pp", 2}}};
  Program sender = one_op(mesh, ops::send, {{4, 3}}, DType::f32, {{"peer", 1}, {"tag", 3}});
  sender.buffers.push_back(Buffer{.bytes = 48, .slots = kSlots});
  sender.values[0].buffer = 0;
  Program receiver =
      one_op(mesh, ops::recv, {}, DType::f32,
             {{"peer", 0}, {"tag", 3}, {"dims", std::vector<int64_t>{4, 3}}, {"dtype", std::string("f32")}});
  auto message = [](int microbatch) { return Words(48, static_cast<std::byte>(microbatch + 1)); };
  ThreadHub hub(2, std::chrono::seconds(20));
  std::vector<RankEnd> ends = run_ranks(hub, 2, [&](Transport& transport) {
    bool sends = transport.rank() == 0;
    const Program& program = sends ? sender : receiver;
    const Op& op = program.regions[0].ops[0];
    CudaDevice device(kind == WireKind::nccl ? transport.rank() : 0, Determinism::repeatable);
    device.use();
    CudaWires wires(transport, device, kind);
    std::vector<DeviceBytes> slots;
    for (int slot = 0; slot < kSlots; ++slot) slots.emplace_back(Words(48));
    Tensor tensor{slots[0].data(), DType::f32, {4, 3}};
    std::vector<Tensor> in, out;
    (sends ? in : out).push_back(tensor);
    auto prepared =
        cuda_kernel(*op.def).prepare({op, program, transport.rank(), {transport.rank()}, in, out, device, &wires});
    wires.open_groups();
    EXPECT_EQ(prepared->capturable(), kind == WireKind::nccl && !sends);
    for (int microbatch = 0; microbatch < kMicrobatches; ++microbatch) {
      if (!sends) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      void* data = slots[static_cast<size_t>(microbatch % kSlots)].data();
      (sends ? in : out)[0].data = data;
      prepared->settle(microbatch);
      DeviceBytes news(message(microbatch));
      if (sends) check_cuda(cudaMemcpy(data, news.data(), 48, cudaMemcpyDeviceToDevice), "new bytes");
      check_cuda(cudaDeviceSynchronize(), "new bytes");
      prepared->launch({in, out, op.attrs, nullptr, device, device.stream(), microbatch});
      check_cuda(cudaStreamSynchronize(device.stream()), "the message");
      if (!sends) {
        EXPECT_EQ(words_at(data, 48), message(microbatch)) << microbatch;
      }
    }
    for (int slot = 0; slot < kSlots; ++slot) prepared->settle(slot);
    EXPECT_EQ(wires.bytes_sent()["pp"], sends ? 48 * kMicrobatches : 0);
  });
  for (const RankEnd& end : ends) EXPECT_EQ(end.error, "");
}

}  // namespace sextant
