// What a layout takes at least, in seconds and bytes, without lowering all of it. A model is ends and blocks, and
// blocks are alike: the Programs of the same layout with one and with two blocks tell what a block and what the ends
// take, op by op as they will run, and a stage of n blocks is their sum. The order of the schedule then tells when a
// step can end at the earliest.
//
// What is left out only adds: waits for messages beside compute, gaps between buffers, scratch of the middle stages. So
// a layout whose bound is beyond what is there, or behind what has been found, need not be lowered at all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "cost/software_profile.h"
#include "ir/graph.h"
#include "ir/plan.h"
#include "schedule/check.h"
#include "schedule/pipeline.h"
#include "schedule/unit_walk.h"
#include "search/search_space.h"
#include "search/stage_figures.h"

namespace sextant {

struct LeastCost {
  double seconds = 0;
  double bytes = 0;  // of the rank that needs most, with what lies outside the arena
};

enum class Closeness : uint8_t {
  coarse,  // from Programs that many layouts share (two data-parallel ranks stand for all): compute alone
  sent,    // from Programs of its own data-parallel groups that fewer layouts share: messages of ZeRO-2 and 3, which
           // every microbatch sends
  tight,   // from Programs of this layout's own data-parallel groups, and the order of its schedule: messages, too
  walked,  // the same, with each kind of unit walked where forwards run beside backwards
};

// Blocks and ends of one way to compute them.
struct ModelFigures {
  StageFigures block, first_end, last_end;
  double message = 0;                          // seconds from the end of a stage's region until another may begin
  double first_scratch = 0, last_scratch = 0;  // bytes beside what is held, on the first and the last stage of several
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
  struct Subject {
    const RunConfig& run;  // without evaluation
    const ModelSpec& spec;
    const Machine& machine;
    const SoftwareProfile& profile;
    const Target* target = nullptr;  // null: an accelerator under the profile
    double expert_imbalance = 1;     // as Pricer has it
  };
  explicit LayoutBounds(const Subject& subject);

  LeastCost bound(const LayoutChoice& choice, Closeness close);

 private:
  // A schedule, how many blocks each stage has, and how many microbatches each rank holds of each chunk.
  struct Pipeline {
    PipelineSchedule schedule;
    bool pairs = false;  // whether a forward runs beside a backward
    bool defers_weights = false;
    std::vector<int> blocks;
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
  // `runs`: microbatches of the Program that is lowered for them, one or several.
  const ModelFigures& figures(const LayoutChoice& choice, int64_t runs);
  const Pipeline& pipeline(const LayoutChoice& choice);
  const std::vector<int>& blocks(int stages);  // of each of so many stages
  bool estimates_memory() const;               // of other software
  double outside_arena() const;                // bytes
  void add_foreign(ModelFigures& model, const RunConfig& config, const std::vector<Program>& one,
                   const std::vector<Program>& two) const;
  ModelFigures lower_figures(const LayoutChoice& choice, int64_t runs) const;
  ModelFigures coarse_figures(const LayoutChoice& choice);
  const PairFigures& pair_figures(const LayoutChoice& choice);
  PairFigures lower_pairs(const LayoutChoice& choice) const;
  double persistent_bytes(const LayoutChoice& choice);
  double bytes_by_one_sequence(const LayoutChoice& choice);
  StageFigures stage(const ModelFigures& model, const std::vector<int>& blocks, int stage) const;
  double bytes_of(const ModelFigures& model, const Pipeline& pipe) const;
  double seconds_on_one_stage(const ModelFigures& model, const Pipeline& pipe) const;
  double seconds_beside(const ModelFigures& model, const Pipeline& pipe) const;
  // Whether ranks always compute: else messages may travel while the host is waited for.
  bool steady() const { return subject_.profile.host_s_per_kernel == 0; }
  // What is sure whatever the order: what a rank computes, from the arrival of the first microbatch until the last one
  // has come back to the first stage.
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
