// A small run on data that the test writes, in which the tokens of one step can be replaced by others: a bad document.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/threads.h"
#include "data/token_writer.h"
#include "run/resolve_spec.h"
#include "train/data/step_trace.h"
#include "train/scratch_run.h"

namespace sextant {

using Settings = std::vector<std::string>;

inline Settings with(Settings settings, const Settings& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

class PlantedRun {
 public:
  static constexpr int64_t kSequences = 4;

  explicit PlantedRun(std::string_view name) : scratch_(name) {
    write("clean.u16", tokens_of(6000, 1));
    write("valid.u16", tokens_of(600, 2));
  }

  const std::filesystem::path& root() const { return scratch_.root(); }
  std::filesystem::path out(std::string_view name) const { return root() / name; }
  const ScratchRun& scratch() const { return scratch_; }

  RunConfig config(std::string_view data, std::vector<std::string> more) const {
    std::vector<std::string> settings{fmt::format("data.train={}", (root() / data).string()),
                                      fmt::format("data.validation={}", (root() / "valid.u16").string()),
                                      "model.vocab=64",
                                      "model.hidden=32",
                                      "model.heads=2",
                                      "model.kv_heads=2",
                                      "model.ffn=64",
                                      "batch.seq=16",
                                      "batch.sequences=4",
                                      "batch.microbatch=2",
                                      "optimizer.name=sgd",
                                      "optimizer.lr=0.1",
                                      "optimizer.clip=0",
                                      "optimizer.warmup=0",
                                      "optimizer.schedule=constant",
                                      "train.steps=48",
                                      "train.eval_every=48",
                                      "train.eval_sequences=32",
                                      "train.timeout_s=60",
                                      "train.check_replicas_every=0",
                                      "train.spike.window=16",
                                      "train.threads=1"};
    settings.insert(settings.end(), more.begin(), more.end());
    return scratch_.config("tiny-llama.toml", settings);
  }

  TrainResult run(std::string_view out_name, std::string_view data, std::vector<std::string> more) const {
    return train(config(data, std::move(more)), out(out_name), cpu_ranks(), {}, {.verbosity = Verbosity::quiet});
  }

  // bad.u16: the same data, but the samples of this step are one token over and over, as of a file of zeros.
  void plant_bad_step(int64_t step) const {
    RunConfig run = config("clean.u16", {});
    ThreadTeam team(1);
    Dataset dataset = open_dataset(run, resolve_spec(run), team, [](std::string_view) {});
    std::vector<int32_t> tokens = tokens_of(6000, 1);
    for (const TracedSample& sample : trace_samples(dataset, (step - 1) * kSequences, kSequences))
      for (const TracedPiece& piece : sample.pieces)
        for (int64_t i = 0; i < piece.tokens; ++i) tokens[static_cast<size_t>(piece.token + i)] = 0;
    write("bad.u16", tokens);
  }

  void write(std::string_view name, const std::vector<int32_t>& tokens) const {
    TokenWriter writer(root() / name, {.kind = TokenKind::flat, .type = TokenType::u16, .end_of_text = {}});
    writer.append_document(tokens);
    writer.finish();
  }

  // A walk over 50 ids whose next step mostly follows from the last.
  static std::vector<int32_t> tokens_of(int64_t count, uint64_t seed) {
    std::vector<int32_t> tokens;
    uint64_t state = seed * 7919 + 17;
    int32_t at = 0;
    for (int64_t i = 0; i < count; ++i) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      at = state >> 60 < 2 ? static_cast<int32_t>((state >> 33) % 50) : (at * 7 + 3) % 50;
      tokens.push_back(at);
    }
    return tokens;
  }

 private:
  ScratchRun scratch_;
};

}  // namespace sextant
