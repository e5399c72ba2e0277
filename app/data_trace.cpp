// `sextant data trace`: which documents a step of a run used.
#include <nlohmann/json.hpp>

#include "app/document_text.h"
#include "app/json_output.h"
#include "app/verb.h"
#include "app/verbosity_options.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/threads.h"
#include "base/units.h"
#include "base/verbosity.h"
#include "run/resolve_spec.h"
#include "train/data/step_trace.h"
#include "train/save/run_history.h"

namespace sextant {

namespace {

struct TraceArguments {
  std::string run;  // its --out directory
  int64_t step = 0;
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
};

nlohmann::ordered_json trace_json(const TracedSample& sample) {
  nlohmann::ordered_json json{{"sample", sample.sample}, {"file", sample.file}, {"epoch", sample.epoch}};
  auto pieces = nlohmann::ordered_json::array();
  for (const TracedPiece& piece : sample.pieces) {
    nlohmann::ordered_json one{{"token", piece.token}, {"tokens", piece.tokens}};
    if (piece.document) one["document"] = *piece.document;
    if (piece.document) one["offset"] = piece.offset;
    if (piece.origin) one["source"] = {{"file", piece.origin->file}, {"record", piece.origin->record}};
    pieces.push_back(std::move(one));
  }
  json["pieces"] = std::move(pieces);
  return json;
}

void print_trace(const TracedSample& sample) {
  fmt::print("sample {:<6} epoch {} of {}\n", sample.sample, sample.epoch, printable(sample.file));
  for (const TracedPiece& piece : sample.pieces) fmt::print("  {}\n", piece_text(piece));
}

void add_data_trace_options(CLI::App& verb, TraceArguments& a) {
  verb.add_option("run", a.run, "the run's --out directory")->required();
  verb.add_option("--step", a.step, "which step, from 1")->required();
  verb.add_flag("--json", a.json, "print JSON");
  add_quiet(verb, a.verbosity, "no remarks on standard error when data is read");
}

void run_data_trace(const TraceArguments& a) {
  StepOfRun step = find_step(a.run, a.step);
  ThreadTeam team(static_cast<int>(step.run.train.threads));
  Dataset dataset = open_dataset(step.run, resolve_spec(step.run), team, [&](std::string_view line) {
    if (a.verbosity != Verbosity::quiet) fmt::print(stderr, "{}\n", printable(line));
  });
  int64_t count = step.run.batch.sequences;
  std::vector<TracedSample> samples = trace_samples(dataset, step.first_sample, count);
  if (a.json) {
    nlohmann::ordered_json json{{"run", a.run}, {"step", a.step}, {"samples", nlohmann::ordered_json::array()}};
    for (const TracedSample& sample : samples) json["samples"].push_back(trace_json(sample));
    return print_json(json);
  }
  fmt::print("step {} of {}: samples {} to {}\n", a.step, printable(a.run), step.first_sample,
             step.first_sample + count - 1);
  for (const TracedSample& sample : samples) print_trace(sample);
}

constexpr ValueFormat kDataTraceValues[] = {
    {"STEP", "", "--step"},
};

}  // namespace

const VerbDef data_trace_verb{
    .words = "data trace",
    .summary = "Which documents a step of a run used",
    .details = "",
    .examples = "sextant data trace runs/tiny-llama --step 3",
    .values = kDataTraceValues,
    .declare = declare_verb<add_data_trace_options, run_data_trace>,
};

}  // namespace sextant
