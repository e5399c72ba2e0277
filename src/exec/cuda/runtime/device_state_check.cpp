#include "exec/cuda/runtime/device_state_check.h"

#include <algorithm>
#include <new>

#include "base/error.h"
#include "exec/cuda/runtime/check.h"

namespace sextant {

DeviceChecksums::~DeviceChecksums() {
  if (sums_) cudaFree(sums_);
  if (report_) cudaFreeHost(report_);
}

int32_t DeviceChecksums::place_of(int64_t offset) {
  auto place = static_cast<int32_t>(places_.place_of(MemorySpace::device, offset));
  BUG_IF(sums_ && place >= count_, "a Program is bound that keeps more than those whose checksums were recorded");
  count_ = std::max(count_, place + 1);
  return place;
}

void DeviceChecksums::allocate(cudaStream_t stream) {
  if (sums_) return;
  size_t bytes = static_cast<size_t>(std::max(count_, 1)) * sizeof(DeviceStateSum);
  check_cuda(cudaMalloc(reinterpret_cast<void**>(&sums_), bytes), "memory for checksums");
  check_cuda(cudaMemsetAsync(sums_, 0, bytes, stream), "memory for checksums");
  void* report = nullptr;
  check_cuda(cudaHostAlloc(&report, sizeof(ChangedStateReport), cudaHostAllocPortable | cudaHostAllocMapped),
             "page-locked memory for checksums");
  report_ = new (report) ChangedStateReport{};
}

DeviceStateCheck::DeviceStateCheck(const Program& program, const Addresses& addresses, DeviceChecksums& checksums)
    : checksums_(checksums) {
  StateWrites writes(program);
  auto state_of = [&](ValueId id) {
    const Value& value = program[id];
    int64_t bytes = value.local_bytes().n;
    const Buffer& buffer = program.buffers[static_cast<size_t>(value.buffer)];
    return DeviceState{addresses.place(value, static_cast<size_t>(bytes), 0, 0), bytes,
                       checksums.place_of(buffer.offset)};
  };
  auto on_device = [&](ValueId id) { return program[id].space == MemorySpace::device; };
  for (ValueId id : writes.checked()) {
    if (!on_device(id)) continue;
    values_.push_back(&program[id]);
    states_.push_back(state_of(id));
  }
  auto on_device_of = [&](std::span<const ValueId> ids) {
    std::vector<DeviceState> states;
    for (ValueId id : ids)
      if (on_device(id)) states.push_back(state_of(id));
    return states;
  };
  size_t number = 0;
  for (const Region& region : program.regions)
    for (size_t i = 0; i < region.ops.size(); ++i, ++number) {
      before_.push_back(on_device_of(writes.first_written(number)));
      after_.push_back(on_device_of(writes.last_written(number)));
      summed_.push_back(take_summed(region.ops[i], before_.back(), after_.back(), addresses));
    }
}

// States that an op updates whole, and alone in its region, it can sum itself.
DeviceStateCheck::SummedOp DeviceStateCheck::take_summed(const Op& op, std::vector<DeviceState>& before,
                                                         std::vector<DeviceState>& after, const Addresses& addresses) {
  SummedOp summed{cuda_kernel(*op.def).launch_all_summed, {}};
  summed.places.fill(-1);
  if (!summed.launch) return summed;
  std::vector<Tensor> outputs = addresses.tensors(op.outputs);
  BUG_IF(outputs.size() > kSummedOutputs, "{} has {} outputs", op.path, outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto is_output = [&](const DeviceState& state) {
      return state.data == outputs[i].data && state.bytes == outputs[i].count() * size_of(outputs[i].dtype);
    };
    auto first = std::ranges::find_if(before, is_output), last = std::ranges::find_if(after, is_output);
    if (first == before.end() || last == after.end()) continue;
    summed.places[i] = first->place;
    before.erase(first);
    after.erase(last);
  }
  return summed;
}

void DeviceStateCheck::launch_summed(std::span<const WalkStep> steps, CudaCalls calls) const {
  std::vector<SummedOutputs> places;
  for (const WalkStep& step : steps) places.push_back(summed_[static_cast<size_t>(step.op)].places);
  summed_launch(steps.front())(calls, {places, checksums_.sums(), checksums_.report()});
}

void DeviceStateCheck::record_all(cudaStream_t stream) {
  checksums_.allocate(stream);
  launch_record(states_, checksums_.sums(), stream);
}

void DeviceStateCheck::verify_all(cudaStream_t stream) const {
  if (has_checksums()) launch_verify(states_, checksums_.sums(), checksums_.report(), stream);
}

namespace {

std::vector<DeviceState> states_of(const std::vector<std::vector<DeviceState>>& by_op,
                                   std::span<const WalkStep> steps) {
  std::vector<DeviceState> states;
  for (const WalkStep& step : steps) {
    const std::vector<DeviceState>& more = by_op[static_cast<size_t>(step.op)];
    states.insert(states.end(), more.begin(), more.end());
  }
  return states;
}

}  // namespace

void DeviceStateCheck::verify_before(std::span<const WalkStep> steps, cudaStream_t stream) const {
  if (has_checksums()) launch_verify(states_of(before_, steps), checksums_.sums(), checksums_.report(), stream);
}

void DeviceStateCheck::record_after(std::span<const WalkStep> steps, cudaStream_t stream) const {
  if (has_checksums()) launch_record(states_of(after_, steps), checksums_.sums(), stream);
}

void DeviceStateCheck::rethrow(int rank, const std::string& place) const {
  if (!has_checksums()) return;
  const volatile ChangedStateReport& report = *checksums_.report();
  if (report.place < 0) return;
  for (size_t i = 0; i < states_.size(); ++i)
    if (states_[i].place == report.place)
      end_by_changed_state({.value = *values_[i], .recorded = report.recorded, .found = report.found, .rank = rank},
                           place);
  BUG("the checksum of no known state differs");
}

}  // namespace sextant
