// Lower bounds of a layout's seconds and bytes, without lowering all of it. A model is ends and blocks, and blocks are
// alike. The Programs of the same layout with one and with two blocks give the cost of a block and of the ends, op by
// op as they will run, and a stage of n blocks is their sum. The schedule's order gives the earliest end of a step.
//
// Omitted costs are never negative: waits for messages beside compute, gaps between buffers, scratch of the middle
// stages. A layout need not be lowered where its bound exceeds the memory, or the time of layouts already found.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "schedule/check.h"
#include "schedule/pipeline.h"
#include "schedule/unit_walk.h"
#include "search/model_figures.h"
#include "search/search_space.h"

namespace sextant {

struct LeastCost {
  double seconds = 0;
  double bytes = 0;                       // of the rank that needs most, with what lies outside the arena
  double host_bytes = 0, nvme_bytes = 0;  // of the rank that has most there
};

// Of a layout that cannot be made.
constexpr double kNever = 1e300;
constexpr LeastCost nowhere() {
  return {.seconds = kNever, .bytes = kNever};
}

enum class Closeness : uint8_t {
  coarse,  // from Programs that many layouts share (two data-parallel ranks stand for all): compute alone
  sent,    // from Programs of its own data-parallel groups that fewer layouts share: messages of ZeRO-2 and 3, which
           // every microbatch sends
  tight,   // from Programs of this layout's own data-parallel groups, and the order of its schedule: messages, too
  walked,  // the same, with each kind of unit walked where forwards run beside backwards
};

// Of a schedule that runs forwards beside backwards: units of so many blocks on each side, by their actions.
struct PairFigures {
  std::map<std::string, UnitTimes, std::less<>> one, two;
  const UnitTimes* find(const std::string& actions) const;  // of one block
  UnitTimes of_blocks(const std::string& actions, int blocks) const;
};

// Thread-safe: what is asked twice is lowered once.
class LayoutBounds {
 public:
  using Subject = BoundSubject;
  explicit LayoutBounds(const Subject& subject);

  LeastCost bound(const LayoutChoice& choice, Closeness close);

 private:
  // A schedule, which blocks each stage has, and how many microbatches each rank holds of each chunk.
  struct Pipeline {
    PipelineSchedule schedule;
    bool pairs = false;  // whether a forward runs beside a backward
    bool defers_weights = false;
    StageLayout stages;
    std::vector<std::vector<InFlight>> held;
    std::vector<double> held_at_once;  // the share of it that there is room for at any time, of each rank
  };
  template <class Known>
  struct Slot {
    std::once_flag once;
    Known known;
  };
  template <class Known>
  using Table = std::map<std::string, std::unique_ptr<Slot<Known>>, std::less<>>;
  template <class Known, class Make>
  const Known& once(Table<Known>& table, const std::string& key, Make make);

  LeastCost coarse_bound(const LayoutChoice& choice);
  LeastCost sent_bound(const LayoutChoice& choice);
  LeastCost tight_bound(const LayoutChoice& choice, Closeness close);
  int64_t microbatches(const LayoutChoice& choice) const;
  const ModelFigures& figures(const FiguresRequest& request);
  const Pipeline& pipeline(const LayoutChoice& choice);
  const std::vector<int>& blocks(int stages);  // of each of so many stages
  double outside_arena() const;                // bytes
  double slowest(const LayoutChoice& choice) const;
  StageLayout stages_of(const LayoutChoice& choice);
  ModelFigures coarse_figures(const LayoutChoice& choice);
  const PairFigures& pair_figures(const LayoutChoice& choice);
  PairFigures lower_pairs(const LayoutChoice& choice) const;
  LeastCost persistent_bytes(const LayoutChoice& choice);
  double bytes_by_one_sequence(const LayoutChoice& choice);
  double bytes_of(const ModelFigures& model, const Pipeline& pipe) const;
  LeastCost cost_of(double seconds, const ModelFigures& model, const Pipeline& pipe) const;
  double seconds_on_one_stage(const ModelFigures& model, const Pipeline& pipe) const;
  double seconds_beside(const ModelFigures& model, const Pipeline& pipe) const;
  // Whether ranks always compute: else messages may travel while the host is waited for.
  bool steady() const { return subject_.profile.host_s_per_kernel == 0; }
  // A bound for any order of the schedule: the compute of a rank, from the arrival of the first microbatch until the
  // last one has come back to the first stage.
  double seconds_by_sums(const ModelFigures& model, const Pipeline& pipe) const;
  // `pairs`: null where units are not walked.
  double seconds_with_pairs(const ModelFigures& model, const Pipeline& pipe, const PairFigures* pairs) const;
  double seconds_on_stages(const ModelFigures& model, const Pipeline& pipe) const;

  const Subject subject_;
  const Target target_;
  const Graph whole_;  // of all blocks, to cut into stages
  std::mutex guard_;
  Table<ModelFigures> figures_;
  Table<PairFigures> pairs_;
  Table<Pipeline> pipelines_;
  Table<std::vector<int>> blocks_;
};

}  // namespace sextant
