#include "replay/bisect.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

namespace sextant {

namespace {

// One output in any execution of the same Programs. Ops may have a path in common, as the gradients of a linear's
// weight and bias have: what they make is named apart.
auto run_key(const ObservedOutput& output) {
  return std::tuple(output.rank, output.action.region, output.action.chunk, output.action.microbatch, output.phase,
                    output.op, output.value);
}

// One output on any mesh.
using MeshKey = std::tuple<Phase, std::string, std::string>;
MeshKey mesh_key(const ObservedOutput& output) {
  return {output.phase, output.op, output.value};
}

struct WholeOutput {
  const ObservedOutput* first = nullptr;
  Fingerprint fingerprint;
  int64_t elements = 0;  // over all microbatches
  bool additive = true;
  bool shares_sum = false;
};

// Each output, joined over ranks and microbatches.
std::map<MeshKey, WholeOutput> whole_outputs(const std::vector<ObservedOutput>& ops) {
  std::map<MeshKey, WholeOutput> all;
  std::map<std::pair<MeshKey, int>, Fingerprint> sums;  // by rank: of sums over microbatches the last stands
  for (const ObservedOutput& output : ops) {
    WholeOutput& whole = all[mesh_key(output)];
    if (!whole.first) whole.first = &output;
    whole.additive = whole.additive && output.additive;
    whole.shares_sum = whole.shares_sum || output.shares_sum;
    bool seen_elsewhere = output.stage_rank != whole.first->stage_rank && !output.stage_part;
    if (!output.counted || seen_elsewhere) continue;
    if (output.summed) {
      sums[{mesh_key(output), output.rank}] = output.summary.fingerprint;
      whole.elements = output.shape.count();
    } else {
      whole.fingerprint += output.summary.fingerprint;
      whole.elements = std::max(whole.elements, (output.action.microbatch + 1) * output.shape.count());
    }
  }
  for (const auto& [key, fingerprint] : sums) all[key.first].fingerprint += fingerprint;
  return all;
}

}  // namespace

const ObservedOutput* first_non_finite(const std::vector<ObservedOutput>& ops) {
  auto found = std::ranges::find_if(ops, [](const ObservedOutput& output) { return output.summary.non_finite > 0; });
  return found == ops.end() ? nullptr : &*found;
}

const ObservedOutput* first_different(const std::vector<ObservedOutput>& ops,
                                      const std::vector<ObservedOutput>& again) {
  std::map<decltype(run_key(ops.front())), std::deque<uint64_t>> hashes;  // of one key, in the order of its runs
  for (const ObservedOutput& output : again) hashes[run_key(output)].push_back(output.summary.hash);
  auto found = std::ranges::find_if(ops, [&](const ObservedOutput& output) {
    std::deque<uint64_t>& others = hashes[run_key(output)];
    if (others.empty() || others.front() != output.summary.hash) return true;
    others.pop_front();
    return false;
  });
  return found == ops.end() ? nullptr : &*found;
}

OutputComparison compare(const std::vector<ObservedOutput>& ops, const std::vector<ObservedOutput>& other,
                         double tolerance) {
  std::map<MeshKey, WholeOutput> left = whole_outputs(ops), right = whole_outputs(other);
  OutputComparison comparison;
  for (const auto& [key, mine] : left) {
    auto theirs = right.find(key);
    if (theirs == right.end() || !mine.additive || !theirs->second.additive) continue;
    // Cut otherwise, or added up elsewhere: nothing to compare.
    if (mine.elements != theirs->second.elements || mine.first->summed != theirs->second.first->summed) continue;
    if (mine.shares_sum || theirs->second.shares_sum) continue;
    ++comparison.compared;
    double norm = std::max(mine.fingerprint.norm(), theirs->second.fingerprint.norm());
    double difference = norm > 0 ? mine.fingerprint.distance(theirs->second.fingerprint) / norm : 0;
    comparison.largest = std::max(comparison.largest, difference);
    if (difference <= tolerance || (comparison.first && comparison.first->order <= mine.first->order)) continue;
    comparison.first = mine.first;
    comparison.difference = difference;
  }
  return comparison;
}

std::optional<TokenOfStep> token_of(const ObservedOutput& output, int64_t sequences, int64_t seq,
                                    int64_t first_sample) {
  const std::vector<int64_t>& at = output.summary.first_non_finite;
  bool by_token = !output.summed && output.shape.rank() >= 2 && output.shape[0] == sequences && output.shape[1] == seq;
  if (!by_token || at.empty()) return std::nullopt;
  return TokenOfStep{first_sample + output.action.microbatch * sequences + at[0], at[1]};
}

}  // namespace sextant
