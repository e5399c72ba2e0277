// `sextant replay`: a step of a run once more, held against what the run recorded.
#include "replay/replay.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "app/common_options.h"
#include "app/device.h"
#include "app/document_text.h"
#include "app/json_output.h"
#include "app/verb.h"
#include "app/verbosity_options.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/threads.h"
#include "base/units.h"
#include "base/verbosity.h"
#include "config/mesh_axes.h"
#include "exec/op_place.h"
#include "replay/bisect.h"
#include "replay/f64_executor.h"
#include "replay/verdict.h"
#include "run/resolve_spec.h"
#include "train/faults/fault.h"

namespace sextant {

namespace {

struct ReplayArguments {
  std::string run;  // its --out directory
  std::vector<std::string> overrides;
  int64_t step = 0;
  std::string precision;  // "f64", or empty: that of the config
  bool ops = false, bisect = false, documents = false;
  std::vector<std::string> against;  // overrides of a second execution to compare with
  double tolerance = 0;              // 0: by precision
  std::vector<std::string> inject;   // faults on purpose
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
};

using Json = nlohmann::ordered_json;

// Numbers of another mesh or device that differ by less than this are the same but for rounding.
constexpr double kF32Rounding = 1e-3, kNarrowRounding = 0.1;

// JSON has no nan.
Json number_json(double x) {
  return std::isfinite(x) ? Json(x) : Json(std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
}

Json step_json(const StepMetrics& m) {
  return {{"step", m.step}, {"loss", number_json(m[number::loss])}, {"grad_norm", number_json(m[number::grad_norm])}};
}

double rounding_of(const RunConfig& run) {
  bool on_cpu = (run.device == DeviceChoice::automatic ? device_of_auto() : run.device) == DeviceChoice::cpu;
  bool wide = run.train.precision == Precision::f32 || (run.train.precision == Precision::automatic && on_cpu);
  return wide ? kF32Rounding : kNarrowRounding;
}

std::string layer_text(const ObservedOutput& output) {
  return output.layer < 0 ? "outside of the layers" : fmt::format("layer {}", output.layer);
}

// "layers.7.mlp.gelu (gelu), layer 7, on rank 2, in F 0 3: layers.7.mlp.gelu [2, 64, 256] f32".
std::string output_text(const ObservedOutput& output) {
  return fmt::format("{} ({}), {}, on rank {}, in {} {} {}: {} {} {}", output.op, output.kind, layer_text(output),
                     output.rank, letter_of(output.action.region), output.action.chunk, output.action.microbatch,
                     output.value, output.shape.text(), name_of(output.dtype));
}

Json output_json(const ObservedOutput& output) {
  const OutputSummary& s = output.summary;
  return {{"op", output.op},
          {"kind", output.kind},
          {"layer", output.layer},
          {"phase", name_of(output.phase)},
          {"rank", output.rank},
          {"region", name_of(output.action.region)},
          {"chunk", output.action.chunk},
          {"microbatch", output.action.microbatch},
          {"value", output.value},
          {"shape", output.shape.dims()},
          {"dtype", name_of(output.dtype)},
          {"count", s.count},
          {"non_finite", s.non_finite},
          {"min", s.least},
          {"max", s.most},
          {"rms", s.rms()}};
}

// Outputs of ops, merged over all ranks and microbatches, in the order in which the ops first ran.
std::vector<ObservedOutput> joined_ops(const std::vector<ObservedOutput>& ops) {
  std::vector<ObservedOutput> joined;
  std::map<std::tuple<Phase, std::string, std::string>, size_t> places;
  for (const ObservedOutput& output : ops) {
    auto [at, fresh] = places.try_emplace({output.phase, output.op, output.value}, joined.size());
    if (fresh)
      joined.push_back(output);
    else
      joined[at->second].summary.merge(output.summary);
  }
  return joined;
}

void print_ops(const std::vector<ObservedOutput>& ops) {
  fmt::print("\n{:<44} {:<24} {:>12} {:>11} {:>11} {:>11} {:>10}\n", "output", "op", "numbers", "min", "max", "rms",
             "not finite");
  for (const ObservedOutput& output : joined_ops(ops)) {
    const OutputSummary& s = output.summary;
    fmt::print("{:<44} {:<24} {:>12} {:>11.4g} {:>11.4g} {:>11.4g} {:>10}\n", output.value, output.kind, s.count,
               s.least, s.most, s.rms(), s.non_finite);
  }
}

// The piece of a document that a token of the step belongs to.
struct NamedToken {
  TokenOfStep token;
  std::string file;
  TracedPiece piece;
  int64_t offset = 0;  // in the piece
};

std::optional<NamedToken> name_token(const Dataset& dataset, const TokenOfStep& token) {
  for (const TracedSample& sample : trace_samples(dataset, token.sample, 1)) {
    int64_t at = 0;
    for (const TracedPiece& piece : sample.pieces) {
      if (token.position < at + piece.tokens) return NamedToken{token, sample.file, piece, token.position - at};
      at += piece.tokens;
    }
  }
  return std::nullopt;
}

Json piece_json(const std::string& file, const TracedPiece& piece, int64_t offset) {
  Json json{{"file", file}, {"token", piece.token + offset}};
  if (piece.document) json["document"] = *piece.document;
  if (piece.document) json["offset"] = piece.offset + offset;
  if (piece.origin) json["source"] = {{"file", piece.origin->file}, {"record", piece.origin->record}};
  return json;
}

class ReplayReport {
 public:
  ReplayReport(const ReplayArguments& arguments, const ReplayPlan& plan, const Dataset& dataset)
      : a_(arguments), plan_(plan), dataset_(dataset) {
    if (!a_.json)
      fmt::print("step {} of {}: samples {} to {}, from {}{}\n", plan.step, printable(a_.run), plan.first_sample,
                 plan.first_sample + plan.run.batch.sequences - 1,
                 plan.checkpoint.empty() ? "the initial weights" : printable(plan.checkpoint.filename().string()),
                 plan.step == plan.checkpoint_step + 1
                     ? ""
                     : fmt::format(", steps {} to {} first", plan.checkpoint_step + 1, plan.step - 1));
    json_ = {{"run", a_.run},
             {"step", plan.step},
             {"checkpoint", plan.checkpoint.empty() ? Json(nullptr) : Json(plan.checkpoint.string())},
             {"first_sample", plan.first_sample},
             {"mesh", sizes_text(plan.run.mesh)}};
  }

  void show_numbers(const Replayed& replayed, const std::optional<RecordedStep>& recorded) {
    Judgement judgement = judge(recorded, replayed.executions, rounding_of(plan_.run));
    json_["recorded"] =
        recorded ? Json{{"loss", number_json(recorded->loss)}, {"grad_norm", number_json(recorded->grad_norm)}}
                 : Json(nullptr);
    json_["before"] = Json::array();
    for (const StepMetrics& m : replayed.before) json_["before"].push_back(step_json(m));
    json_["executions"] = Json::array();
    for (const Execution& execution : replayed.executions) json_["executions"].push_back(step_json(execution.metrics));
    json_["bit_equal"] = judgement.bit_equal;
    json_["verdict"] = name_of(judgement.verdict);
    json_["text"] = judgement.text;
    if (a_.json) return;
    fmt::print("{:<14} {:>22} {:>22}\n", "", "loss", "grad norm");
    auto row = [](std::string_view name, double loss, double norm) {
      fmt::print("{:<14} {:>22} {:>22}\n", name, loss, norm);
    };
    if (recorded) row("record", recorded->loss, recorded->grad_norm);
    for (size_t i = 0; i < replayed.executions.size(); ++i)
      row(fmt::format("execution {}", i + 1), replayed.executions[i].metrics[number::loss],
          replayed.executions[i].metrics[number::grad_norm]);
    fmt::print("{}: {}\n", name_of(judgement.verdict), judgement.text);
  }

  void show_ops(const std::vector<ObservedOutput>& ops) {
    json_["ops"] = Json::array();
    for (const ObservedOutput& output : joined_ops(ops)) json_["ops"].push_back(output_json(output));
    if (!a_.json) print_ops(ops);
  }

  void show_bisection(const std::vector<Execution>& executions) {
    json_["bisect"] = Json::object();
    show_non_finite(first_non_finite(executions.front().ops));
    if (executions.size() < 2) return;
    const ObservedOutput* different = nullptr;
    for (const Execution& execution : executions)
      if (!different) different = first_different(executions.front().ops, execution.ops);
    json_["bisect"]["differs"] = different ? output_json(*different) : Json(nullptr);
    if (!a_.json)
      fmt::print("{}\n", different ? "first output that differs between executions: " + output_text(*different)
                                   : fmt::format("{} outputs are bit for bit the same in both executions",
                                                 executions.front().ops.size()));
  }

  void show_comparison(const OutputComparison& comparison, double tolerance) {
    Json json{{"overrides", a_.against},
              {"tolerance", tolerance},
              {"compared", comparison.compared},
              {"largest", comparison.largest}};
    json["first"] = comparison.first ? output_json(*comparison.first) : Json(nullptr);
    if (comparison.first) json["difference"] = comparison.difference;
    json_["bisect"]["against"] = std::move(json);
    if (a_.json) return;
    fmt::print("against {}: {} outputs compared, largest relative difference {:.1e}\n", fmt::join(a_.against, " "),
               comparison.compared, comparison.largest);
    if (comparison.first)
      fmt::print("  first beyond {:g}: {}, difference {:.1e}\n", tolerance, output_text(*comparison.first),
                 comparison.difference);
  }

  void show_documents(const LossesOfStep& losses) {
    Json list = Json::array();
    for (const DocumentLoss& document : losses.documents) {
      Json one = piece_json(document.file, document.piece, 0);
      one["tokens"] = document.piece.tokens;
      one["sample"] = document.sample;
      one["loss"] = number_json(document.loss);
      list.push_back(std::move(one));
    }
    json_["documents"] = {{"median_loss", number_json(losses.median)}, {"worst", std::move(list)}};
    if (a_.json) return;
    fmt::print("\nloss by document, highest first; the median over samples is {:.4f}\n", losses.median);
    constexpr size_t kShown = 10;
    for (size_t i = 0; i < std::min(kShown, losses.documents.size()); ++i) {
      const DocumentLoss& document = losses.documents[i];
      fmt::print("  {:>8.4f}  sample {}: {}: {}\n", document.loss, document.sample, printable(document.file),
                 piece_text(document.piece));
    }
  }

  void end() const {
    if (a_.json) print_json(json_);
  }

 private:
  void show_non_finite(const ObservedOutput* output) {
    Json& json = json_["bisect"]["non_finite"];
    json = nullptr;
    if (!output) {
      if (!a_.json) fmt::print("every output is finite\n");
      return;
    }
    json = output_json(*output);
    json["at"] = output->summary.first_non_finite;
    std::optional<NamedToken> named;
    if (auto token = token_of(*output, plan_.microbatch_sequences, plan_.run.batch.seq, plan_.first_sample))
      named = name_token(dataset_, *token);
    if (named) {
      json["document"] = piece_json(named->file, named->piece, named->offset);
      json["document"]["sample"] = named->token.sample;
      json["document"]["position"] = named->token.position;
    }
    if (a_.json) return;
    fmt::print("first output that is not finite: {}\n  {} of {} numbers, the first at [{}]\n", output_text(*output),
               output->summary.non_finite, output->summary.count, fmt::join(output->summary.first_non_finite, ", "));
    if (named)
      fmt::print("  of sample {}, position {}: {}: {}\n", named->token.sample, named->token.position,
                 printable(named->file), token_text(named->piece, named->offset));
  }

  const ReplayArguments& a_;
  const ReplayPlan& plan_;
  const Dataset& dataset_;
  Json json_;
};

std::vector<Fault> faults_in(const ReplayArguments& a, const ReplayPlan& plan) {
  std::vector<Fault> faults;
  for (const std::string& text : a.inject) {
    Fault fault = parse_fault(text, "--inject");
    auto refuse = [&](std::string got, std::string expected) {
      throw UserError({.place = "--inject " + text, .got = std::move(got), .expected = std::move(expected)});
    };
    if (fault.kind != FaultKind::spoils_op) refuse("a fault of a run", "nan_op=OP@STEP[:RANK]");
    if (fault.step <= plan.checkpoint_step || fault.step > plan.step)
      refuse(fmt::format("step {}, which is not run", fault.step),
             fmt::format("a step from {} to {}", plan.checkpoint_step + 1, plan.step));
    if (fault.rank >= ranks_of(plan.run.mesh))
      refuse(fmt::format("rank {} of {}", fault.rank, ranks_of(plan.run.mesh)), "a rank of the mesh");
    faults.push_back(std::move(fault));
  }
  return faults;
}

void add_replay_options(CLI::App& verb, ReplayArguments& a) {
  verb.add_option("run", a.run, "the run's --out directory")->required();
  verb.add_option("overrides", a.overrides,
                  "key=value pairs that say how the step is computed, such as mesh.tp=2 or device=cpu");
  verb.add_option("--step", a.step, "which step, from 1")->required()->check(CLI::Range(int64_t{1}, kMaxSteps));
  verb.add_option("--precision", a.precision, "f64: on the CPU, in place of train.precision")
      ->check(CLI::IsMember({"f64"}));
  verb.add_flag("--ops", a.ops, "statistics of what every op makes");
  verb.add_flag("--bisect", a.bisect, "name the first op whose output is not finite, or differs between executions");
  verb.add_flag("--documents", a.documents, "name the documents of the step with the highest loss");
  CLI::Option* against =
      verb.add_option("--against", a.against,
                      "with --bisect: compare with the step computed otherwise (mesh.tp=2); may be repeated")
          ->allow_extra_args(false)
          ->needs(verb.get_option("--bisect"));
  verb.add_option("--tolerance", a.tolerance,
                  "with --against: the largest relative difference of an output [1e-3; with bf16 or fp8 0.1]")
      ->check(CLI::Range(1e-12, 1.0))
      ->needs(against);
  verb.add_option("--inject", a.inject, "a NaN on purpose, nan_op=OP@STEP[:RANK], in every execution (may be repeated)")
      ->allow_extra_args(false);
  verb.add_flag("--json", a.json, "print JSON");
  add_quiet(verb, a.verbosity, "no remarks on standard error when data is read");
}

void run_replay(const ReplayArguments& a) {
  constexpr int kExecutions = 2;  // that they agree says that this machine can be trusted
  ReplayPlan plan = plan_replay(a.run, a.step, a.overrides);
  bool wide = a.precision == "f64";
  if (wide) plan.run.train.precision = Precision::automatic;
  std::vector<std::string> others = a.overrides;
  others.insert(others.end(), a.against.begin(), a.against.end());
  std::optional<ReplayPlan> other;
  if (!a.against.empty()) other = plan_replay(a.run, a.step, others);
  ThreadTeam team(static_cast<int>(plan.run.train.threads));
  Dataset dataset = open_dataset(plan.run, resolve_spec(plan.run), team, [&](std::string_view line) {
    if (a.verbosity != Verbosity::quiet) fmt::print(stderr, "{}\n", printable(line));
  });
  std::vector<Fault> faults = faults_in(a, plan);
  ReplayReport report(a, plan, dataset);
  MakeExecutor executors = executors_for(plan.run);
  MakeExecutor wide_executors = [&](const RankContext& context, int threads) {
    return make_f64_executor(executors(context, threads));
  };
  // The state kept for the next execution is f32: in f64 a second execution would not begin from the same bits.
  Replayed replayed =
      replay(plan, dataset, wide ? wide_executors : executors,
             {.times = wide ? 1 : kExecutions, .ops = a.ops || a.bisect, .documents = a.documents, .faults = faults});
  report.show_numbers(replayed, recorded_step(a.run, a.step));
  if (a.bisect) report.show_bisection(replayed.executions);
  if (other) {
    Replayed second = replay(*other, dataset, executors_for(other->run), {.ops = true});
    double tolerance = a.tolerance > 0 ? a.tolerance : std::max(rounding_of(plan.run), rounding_of(other->run));
    report.show_comparison(compare(replayed.executions.front().ops, second.executions.front().ops, tolerance),
                           tolerance);
  }
  if (a.ops) report.show_ops(replayed.executions.front().ops);
  if (replayed.documents) report.show_documents(*replayed.documents);
  report.end();
}

constexpr ValueFormat kReplayValues[] = {
    {"STEP", "", "--step"},
    {"SHARE", "", "--tolerance"},
    {"KEY=VALUE", "key=value, such as mesh.tp=2", "overrides --against"},
    {"FAULT", "a number that an op makes NaN, nan_op=OP@STEP[:RANK]", "--inject"},
};

}  // namespace

const VerbDef replay_verb{
    .words = "replay",
    .summary = "Run a step again from the checkpoint before it",
    .details = "Does it give what the run recorded?",
    .examples =
        "sextant replay runs/longer --step 20\n"
        "sextant replay runs/longer --step 20 --bisect --against mesh.tp=2",
    .values = kReplayValues,
    .declare = declare_verb<add_replay_options, run_replay>,
};

}  // namespace sextant
