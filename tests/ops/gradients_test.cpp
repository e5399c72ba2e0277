// Every op with a backward, on every example of its definition: gradients against central differences in double.
// Generated from the definitions: a new op is tested by being there.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>
#include <string>

#include "base/files.h"
#include "base/rng.h"
#include "checkout.h"
#include "exec/cpu/cpu_executor.h"
#include "ir/verify.h"
#include "ops/ops.h"
#include "passes/autodiff.h"
#include "passes/memory.h"
#include "passes/partition.h"
#include "passes/prune.h"

namespace sextant {
namespace {

const Mesh kOneRank{{{"dp", 1}}};

struct OpGraph {
  Graph graph;
  std::vector<ValueId> inputs;
  ValueId output = kNoValue;
  ValueId seed = kNoValue;
};

OpGraph graph_of(const OpDef& def, const Example& example) {
  OpGraph g;
  g.graph.name = def.name;
  g.graph.mesh = kOneRank;
  for (size_t i = 0; i < example.inputs.size(); ++i) {
    bool real = example.inputs[i].dtype == DType::f64;
    g.inputs.push_back(g.graph.add({.path = fmt::format("in{}", i),
                                    .kind = real ? ValueKind::parameter : ValueKind::feed,
                                    .dtype = example.inputs[i].dtype,
                                    .shape = example.inputs[i].shape}));
  }
  Op op = make_op(g.graph, def, g.inputs, example.attrs, "op");
  g.output = op.outputs[0];
  g.graph[g.output].kind = ValueKind::fetch;
  g.graph.ops.push_back(std::move(op));
  g.seed =
      g.graph.add({.path = "seed", .kind = ValueKind::feed, .dtype = DType::f64, .shape = g.graph[g.output].shape});
  return g;
}

class Running {
 public:
  Running(const Graph& graph, Executor& executor) : program_(partition(graph, make_schedule("1f1b", {}), 0)) {
    plan_memory(program_, executor.target());
    verify(program_, Stage::planned, "test");
    arena_ = executor.allocate(program_.arena_bytes);
    bound_ = executor.bind(program_, *arena_);
  }
  void run() { run_schedule(*bound_); }
  template <class T>
  void write(std::string_view path, const std::vector<T>& x) {
    bound_->write(program_.at(path), std::as_bytes(std::span(x)));
  }
  std::vector<double> read(std::string_view path) const {
    const Value& value = program_.at(path);
    std::vector<double> x(static_cast<size_t>(value.shape.count()));
    bound_->read(value, std::as_writable_bytes(std::span(x)));
    return x;
  }

 private:
  Program program_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Bound> bound_;
};

std::vector<double> draw(std::string_view name, int64_t count) {
  Random random(7, name);
  std::vector<double> x(static_cast<size_t>(count));
  for (size_t i = 0; i < x.size(); ++i) x[i] = random.normal(i);
  return x;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// How many inputs' gradients were compared.
int check_example(const OpDef& def, const Example& example) {
  SCOPED_TRACE(fmt::format("{} / {}", def.name, example.name));
  auto executor = make_cpu_executor(2);
  OpGraph forward = graph_of(def, example), backward = graph_of(def, example);
  autodiff(backward.graph, {{{backward.output, backward.seed}}});
  prune(backward.graph);
  std::string output = forward.graph[forward.output].path;
  Running plain(forward.graph, *executor), trained(backward.graph, *executor);

  std::vector<std::vector<double>> inputs(example.inputs.size());
  for (size_t i = 0; i < example.inputs.size(); ++i) {
    std::string path = fmt::format("in{}", i);
    int64_t count = example.inputs[i].shape.count();
    if (example.inputs[i].dtype == DType::f64) {
      inputs[i] = draw(path, count);
      plain.write(path, inputs[i]);
      trained.write(path, inputs[i]);
    } else {
      auto write_integers = [&]<class T>(T) {
        std::vector<T> x(static_cast<size_t>(count));
        for (size_t k = 0; k < x.size(); ++k)
          x[k] = static_cast<T>(
              example.distinct
                  ? example.distinct_integer(static_cast<int64_t>(k), example.inputs[i].shape.last())
                  : static_cast<int64_t>(Random(3, path).below(k, static_cast<uint64_t>(example.integers_below))));
        plain.write(path, x);
        trained.write(path, x);
      };
      example.inputs[i].dtype == DType::i64 ? write_integers(int64_t{}) : write_integers(int32_t{});
    }
  }
  std::vector<double> seed = draw("seed", forward.graph[forward.output].shape.count());
  trained.write("seed", seed);
  trained.run();

  int compared = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::string path = fmt::format("in{}", i);
    if (inputs[i].empty() || !backward.graph.find("grad." + path)) continue;
    std::vector<double> gradient = trained.read("grad." + path);
    for (size_t k = 0; k < inputs[i].size(); ++k) {
      const double h = 1e-5;
      auto loss_at = [&](double delta) {
        std::vector<double> x = inputs[i];
        x[k] += delta;
        plain.write(path, x);
        plain.run();
        return dot(plain.read(output), seed);
      };
      double numeric = (loss_at(h) - loss_at(-h)) / (2 * h);
      EXPECT_NEAR(gradient[k], numeric, 1e-7 * std::max(1.0, std::abs(numeric))) << path << "[" << k << "]";
    }
    plain.write(path, inputs[i]);
    ++compared;
  }
  return compared;
}

// By the text of src/ops, so that an op which the table of ops has lost is missed here. A redistribution changes no
// number; what it does between ranks is tested by LayoutRows.
std::set<std::string> ops_with_backward() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(checkout::kSources) / "src/ops")) {
    if (entry.path().extension() != ".cpp") continue;
    std::istringstream lines(read_file(entry.path()));
    const std::string_view head = "const OpDef ";
    std::string name;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(head)) name = line.substr(head.size(), line.find('{') - head.size());
      if (line.starts_with("    .backward =")) names.insert(name);
    }
  }
  names.erase("redistribute");
  return names;
}

TEST(Gradients, EveryOpAgreesWithFiniteDifferences) {
  std::set<std::string> checked;
  for (const OpDef* def : all_ops()) {
    if (!def->backward || def->layout_rule == LayoutRule::free) continue;
    ASSERT_FALSE(def->examples.empty()) << def->name << " has no examples";
    for (const Example& example : def->examples)
      EXPECT_GT(check_example(*def, example), 0) << def->name << " / " << example.name << " has no gradient to compare";
    checked.insert(std::string(def->name));
  }
  EXPECT_EQ(checked, ops_with_backward());
}

}  // namespace
}  // namespace sextant
