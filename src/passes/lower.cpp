#include "passes/lower.h"

#include "base/error.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "passes/autodiff.h"
#include "passes/freeze.h"
#include "passes/infer.h"
#include "passes/memory.h"
#include "passes/partition.h"
#include "passes/prune.h"
#include "passes/recompute.h"

namespace sextant {

namespace {

// After every pass: what must hold is checked, and whoever watches is told.
class Pipeline {
 public:
  explicit Pipeline(const LowerOptions& options) : options_(options) {}

  template <class Ir>
  void after(std::string_view pass, const Ir& ir, Stage stage) const {
    verify(ir, stage, pass);
    if (options_.observe) options_.observe(pass, [&] { return print(ir); });
  }

 private:
  const LowerOptions& options_;
};

ValueId require(const Graph& graph, std::string_view path) {
  const Value* value = graph.find(path);
  BUG_IF(!value, "{} has no value '{}'", graph.name, path);
  return value->id;
}

}  // namespace

std::vector<std::string_view> pass_names() {
  return {"build", "infer", "autodiff", "recompute", "update", "partition", "memory", "freeze"};
}

Program lower(Graph graph, const Target& target, const LowerOptions& options) {
  Pipeline pipeline(options);

  // The model as it was written: global shapes, forward only, no communication.
  pipeline.after("build", graph, Stage::built);

  // Layouts come first: a gradient's layout is the dual of its value's, so backward must see them.
  infer(graph, Phase::forward);
  pipeline.after("infer", graph, Stage::inferred);

  if (options.train) {
    // Backward ops, from each op's own rule. What they read of forward is what must be saved.
    autodiff(graph, require(graph, "loss"), require(graph, "loss_scale"));
    prune(graph);
    pipeline.after("autodiff", graph, Stage::inferred);

    // Only now is it known what is saved, so only now can some of it be computed again instead.
    recompute(graph, options.plan.recompute);
    prune(graph);
    pipeline.after("recompute", graph, Stage::inferred);

    // Norm, clipping and optimizer read the finished gradients.
    append_update(graph, *options.train);
    pipeline.after("update", graph, Stage::inferred);
  }

  // From the global view to one rank's: local shapes, regions, and the order in which they run.
  Program program = partition(std::move(graph), options.plan);
  pipeline.after("partition", program, Stage::partitioned);

  // Every byte gets its place. After this the arena's size is known exactly.
  plan_memory(program, target, options.transient_from);
  pipeline.after("memory", program, Stage::planned);

  // Drop what nothing touches. From here on the Program is only read.
  freeze(program);
  pipeline.after("freeze", program, Stage::planned);
  return program;
}

}  // namespace sextant
