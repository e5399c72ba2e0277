#include "cost/attention_time.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "cost/gemm_time.h"

namespace sextant {

namespace {

// Rates of the table hold for long sequences; at this length half of it is reached (starts, ends, and the diagonal).
constexpr double kHalfRateLength = 700;

// A causal query sees half of the keys; where the mean is below this share of it, there is a window.
constexpr double kWindowed = 0.9;
// Kernels with a window go over whole tiles of so many keys, at both its edges.
constexpr double kKeyTile = 128;

// Kernels exist for heads that are multiples of 32; others are filled up.
double padded_head(double head_dim) {
  return std::max(32.0, 32 * std::ceil(head_dim / 32));
}

double between(double at_64, double at_128, double head_dim) {
  double t = std::clamp((head_dim - 64) / 64, 0.0, 1.0);
  return at_64 + t * (at_128 - at_64);
}

const AttentionRate& rate_of(const Machine& machine, const std::string& kernel) {
  auto found = machine.attention.find(kernel);
  if (found != machine.attention.end()) return found->second;
  BUG_IF(machine.attention.empty(), "{} has no table of attention", machine.name);
  return machine.attention.begin()->second;
}

// Copies around a kernel that takes sequences without padding (flash attention's bert_padding). One by one: what is
// taken out is read and written, and what is put back is set to zero, read and written. Backward does the same with
// the gradients, the other way round.
AttentionTime repacking(const AttentionWork& work, double bandwidth) {
  constexpr double kTakenOut = 4, kPutBack = 6;  // bytes of an element of 16 bits
  double inputs = work.batch * (work.heads * work.queries * work.head_dim +
                                work.key_heads() * work.keys * (work.head_dim + work.width_of_values()));
  double output = work.batch * work.heads * work.queries * work.width_of_values();
  double bytes = work.backward ? kPutBack * inputs + kTakenOut * output : kTakenOut * inputs + kPutBack * output;
  return {.seconds = bytes / bandwidth, .kernels = work.backward ? 7.0 : 5.0};
}

AttentionTime fused(const Machine& machine, const Efficiencies& efficiency, const SoftwareProfile& profile,
                    const AttentionWork& work, const std::string& dtype) {
  double head = padded_head(work.head_dim), value = padded_head(work.width_of_values());
  const AttentionRate& rate = rate_of(machine, profile.attention_table);
  double share = work.backward ? between(rate.backward_64, rate.backward_128, head)
                               : between(rate.forward_64, rate.forward_128, head);
  double length = std::sqrt(work.queries * work.keys);
  double flops = work.flops() * work.summed(head, value) / work.summed(work.head_dim, work.width_of_values());
  if (double window = work.seen * work.keys; 2 * window < kWindowed * length) {
    if (work.backward && profile.backward_without_window)
      flops *= 0.5 * length / window;
    else
      flops *= (window + kKeyTile) / window, length = 2 * window;
  }
  double reached = machine.peak(dtype) * share * efficiency.attention * length / (length + kHalfRateLength);
  // Keys and values of all heads are read at least once, which is what counts for a single query.
  double bytes = 2 * work.batch * (work.head_dim + work.width_of_values()) *
                 (work.heads * work.queries + work.key_heads() * work.keys);
  double bandwidth = machine.device.memory_bytes_per_s * efficiency.memory;
  AttentionTime time{.seconds = std::max(flops / reached, bytes / bandwidth), .kernels = work.backward ? 3.0 : 1.0};
  if (profile.repacks_attention) {
    AttentionTime copies = repacking(work, bandwidth);
    time.seconds += copies.seconds, time.kernels += copies.kernels;
  }
  return time;
}

// The whole square, and every pass over the scores through memory. Forward: scores out; scale, mask and softmax in one
// kernel; dropout; probabilities in. Backward: the same gradients the other way round.
AttentionTime unfused(const Machine& machine, const Efficiencies& efficiency, const SoftwareProfile& profile,
                      const AttentionWork& work, const std::string& dtype) {
  double batch = work.batch * work.heads, s = work.queries, t = work.keys, d = work.head_dim;
  double v = work.width_of_values();
  auto gemm = [&](double rows, double columns, double depth) {
    return gemm_seconds(machine, efficiency,
                        {{.rows = rows, .columns = columns, .depth = depth, .count = batch}, 2, dtype});
  };
  double bytes_per_score = work.backward ? (profile.dropout ? 13 : 8) : (profile.dropout ? 9 : 4);
  if (profile.separate_mask)
    bytes_per_score += work.backward ? 10 : 14;  // read and written for the mask, and as f32 around the softmax
  double seconds = batch * s * t * bytes_per_score / (machine.device.memory_bytes_per_s * efficiency.memory);
  if (work.backward)
    seconds += gemm(s, t, v) + gemm(t, v, s) + gemm(s, d, t) + gemm(t, d, s);
  else
    seconds += gemm(s, t, d) + gemm(s, v, t);
  return {.seconds = seconds, .kernels = (work.backward ? 6.0 : 4.0) + (profile.dropout ? 1 : 0)};
}

}  // namespace

AttentionTime attention_time(const Machine& machine, const Efficiencies& efficiency, const SoftwareProfile& profile,
                             const AttentionWork& work, const std::string& dtype) {
  if (work.square() <= 0) return {};
  bool no_table = machine.attention.empty();
  if (profile.attention == AttentionKernel::fused && !no_table) return fused(machine, efficiency, profile, work, dtype);
  AttentionTime time = unfused(machine, efficiency, profile, work, dtype);
  if (work.backward && profile.recompute_attention) {
    AttentionWork forward = work;
    forward.backward = false;
    AttentionTime again = unfused(machine, efficiency, profile, forward, dtype);
    time.seconds += again.seconds, time.kernels += again.kernels;
  }
  return time;
}

}  // namespace sextant
