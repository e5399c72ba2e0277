#include "propose/proposal.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <numbers>

#include "base/error.h"
#include "base/printable.h"
#include "ckpt/model_directory.h"
#include "config/resolve.h"
#include "data/data_facts.h"
#include "models/model.h"
#include "propose/draft.h"
#include "propose/expected_loss.h"
#include "propose/model_sizes.h"
#include "propose/step_budget.h"
#include "propose/step_timer.h"
#include "propose/text_measure.h"
#include "run/fit.h"
#include "run/programs.h"
#include "run/resolve_spec.h"
#include "run/tokenizer_choice.h"

namespace sextant {

namespace {

namespace fs = std::filesystem;

// English with a tokenizer of some thousand tokens; only an order of magnitude is asked of it.
constexpr double kBytesPerToken = 4;
// Text is worth nearly as much the second, third and fourth time, and little more after the sixteenth (Muennighoff et
// al. 2023, arXiv:2305.16264). A parameter for every token is more than Hoffmann et al. advise (2022,
// arXiv:2203.15556: a twentieth): theirs is for those to whom time is scarce and not text.
constexpr int64_t kShortestSequence = 16;
constexpr double kPasses = 4, kMostPasses = 8;
constexpr double kPassesOfFineTuning = 2;
// Without a limit of time: a processor trains more than this for days.
constexpr double kMostParametersOnCpu = 5e6;
// With one: a larger model learns the text by heart.
constexpr double kMostParametersPerToken = 5;
// Fewer steps than these are not training: a larger model is no choice.
constexpr int64_t kFewestSteps = 100;
constexpr int64_t kMostStepsOnCpu = 10'000, kMostSteps = 100'000;
// The rest is for the data, the host and whatever else runs there.
constexpr double kShareOfRoom = 0.8;

int64_t power_of_two_below(double most) {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max(1.0, most))));
}

struct TrainingData {
  std::string path;       // "stories" for the built-in ones
  double tokens = 0;      // in it; an estimate until the tokenizer is chosen
  int64_t vocab = 0;      // of token files: the least that holds their ids
  double text_bytes = 0;  // 0 for token files

  // Stories that are held out are told besides.
  double trained_tokens() const {
    return path == "stories" ? tokens : tokens * (1 - RunConfig{}.data.validation_fraction);
  }
  double bytes_per_token() const { return text_bytes > 0 ? text_bytes / tokens : kBytesPerToken; }
};

TrainingData data_at(const std::string& path) {
  if (path.empty()) {
    auto bytes = static_cast<double>(RunConfig{}.data.stories_bytes);
    return {.path = "stories", .tokens = bytes / kBytesPerToken, .vocab = 0, .text_bytes = bytes};
  }
  DataFacts facts = inspect_data(path);
  if (facts.tokens)
    return {.path = path, .tokens = static_cast<double>(*facts.tokens), .vocab = facts.max_id.value_or(0) + 1};
  double bytes = facts.lengths ? facts.lengths->mean * static_cast<double>(facts.documents.value_or(0)) : 0;
  return {.path = path, .tokens = bytes / kBytesPerToken, .vocab = 0, .text_bytes = bytes};
}

// "about 1.2 million": what is only estimated is not given to the last digit.
std::string about(double count) {
  if (count >= 1e9) return fmt::format("{:.1f} billion", count / 1e9);
  if (count >= 1e6) return fmt::format("{:.1f} million", count / 1e6);
  return count >= 1e4 ? fmt::format("{:.0f} thousand", count / 1e3) : fmt::format("{:.0f}", count);
}

class Proposer {
 public:
  explicit Proposer(const ProposalRequest& request) : request_(request), data_(data_at(request.text)) {}

  Proposal propose() {
    choose_device();
    choose_data();
    choose_sequence();
    choose_model();
    choose_batch();
    choose_microbatch();
    choose_steps();
    choose_optimizer();
    return {draft_.toml(heading()), std::move(reasons_)};
  }

 private:
  bool on_cpu() const { return request_.device == "cpu"; }
  bool fine_tunes() const { return !request_.model.empty(); }
  bool has_budget() const { return request_.minutes > 0; }
  double most_passes() const { return fine_tunes() ? kPassesOfFineTuning : has_budget() ? kMostPasses : kPasses; }
  double tokens_in_step() const { return static_cast<double>(sequences_ * seq_); }

  std::string heading() const {
    std::string start = fine_tunes() ? request_.model : request_.preset.empty() ? "a new model" : request_.preset;
    return fmt::format("Trains {} on {}. Written by sextant new; docs/config.md has every key.", printable(start),
                       printable(data_.path));
  }

  void say(std::string_view what, const std::string& why) { reasons_.push_back(fmt::format("{}: {}", what, why)); }

  void choose_device() {
    draft_.set("device", request_.device, fmt::format("It has {} of memory.", human(request_.room)));
    say("device", fmt::format("{}, with room for {}", request_.device, human(request_.room)));
  }

  void choose_data() {
    std::string tokenizer;
    if (data_.vocab == 0 && !fine_tunes()) {
      vocab_ = power_of_two_below(std::clamp(data_.text_bytes / 1024, 512.0, 32768.0));
      draft_.set("data.tokenizer_vocab", vocab_, "A tokenizer of so many tokens is trained on the text first.");
      tokenizer = fmt::format("{} tokens, trained on the text: more would each be seen too rarely", vocab_);
    }
    count_tokens();
    draft_.set("data.train", std::vector<std::string>{data_.path},
               fmt::format("About {} tokens.", about(data_.tokens)));
    say("data", fmt::format("{}, about {} tokens", data_.path, about(data_.tokens)));
    if (!tokenizer.empty()) say("tokenizer", tokenizer);
  }

  // By the tokenizer that training will make, or has: passes and losses are said in its tokens.
  void count_tokens() {
    if (data_.text_bytes <= 0) return;
    TextMeasureRequest measure{.path = data_.path, .vocab = vocab_, .tokenizer = {}};
    if (fine_tunes()) {
      RunConfig run;
      run.model.from = find_model_directory(request_.model).string();
      measure.tokenizer = tokenizer_path(run);
      if (!measure.tokenizer) return;
    }
    data_.tokens = data_.text_bytes / sextant::bytes_per_token(measure);
  }

  // The part kept for validation must hold some sequences.
  void choose_sequence() {
    double held_out = data_.tokens * RunConfig{}.data.validation_fraction;
    int64_t longest = on_cpu() ? 256 : 1024;
    seq_ = power_of_two_below(std::min(static_cast<double>(longest), held_out / 2));
    if (seq_ < kShortestSequence) {
      double needed = 2 * kShortestSequence / RunConfig{}.data.validation_fraction * kBytesPerToken;
      throw UserError({.place = data_.path,
                       .got = fmt::format("holds about {:.0f} tokens, too few to train on", data_.tokens),
                       .expected = fmt::format("some {:.0f} bytes of text or more", needed)});
    }
    draft_.set("batch.seq", seq_, "Tokens in a sequence.");
  }

  void choose_model() {
    if (fine_tunes()) return start_from_model();
    if (!request_.preset.empty()) {
      choose_preset();
    } else if (has_budget()) {
      choose_size_by_time();
    } else {
      choose_size();
    }
    spec_ = resolve_spec(draft_.run());
    shorten_sequence();
  }

  // Its vocabulary is for its own tokenizer: with one trained here most rows of the embedding would be of no token.
  void choose_preset() {
    draft_.set("model.preset", request_.preset);
    int64_t rows = resolve_spec(draft_.run()).vocab;
    std::string why = request_.preset;
    if (vocab_ > 0 && rows != vocab_) {
      draft_.set(
          "model.vocab", vocab_,
          fmt::format("{} has {} rows, for its own tokenizer: with data.tokenizer = \"its tokenizer.json\" leave "
                      "this line and data.tokenizer_vocab out.",
                      request_.preset, human_count(rows)));
      why += fmt::format(", with {} rows of vocabulary for the tokenizer trained here in place of its {}",
                         human_count(vocab_), human_count(rows));
    }
    say("model", why);
  }

  void start_from_model() {
    fs::path directory = find_model_directory(request_.model);
    draft_.set("model.from", directory.string());
    say("model", fmt::format("the weights and tokenizer of {}", directory.string()));
    // A config whose sequences are longer than the model's would be refused before its length is known.
    draft_.set("batch.seq", kShortestSequence);
    spec_ = resolve_spec(draft_.run());
    DropoutRates rates = resolve_dropout(draft_.run());
    draft_.set("batch.seq", seq_, "Tokens in a sequence.");
    if (rates.any())
      say("dropout", fmt::format("hidden {}, attention {}, embedding {}, as in its config.json", rates.hidden,
                                 rates.attention, rates.embedding));
    shorten_sequence();
  }

  // A model may see less than what was chosen for the device.
  void shorten_sequence() {
    if (spec_.max_seq <= 0 || seq_ <= spec_.max_seq) return;
    seq_ = power_of_two_below(static_cast<double>(spec_.max_seq));
    draft_.set("batch.seq", seq_, fmt::format("Tokens in a sequence; the model sees {}.", spec_.max_seq));
  }

  void set_size(const ModelSize& size) {
    draft_.set("model.architecture", std::string("llama"));
    draft_.set("model.layers", size.layers);
    draft_.set("model.hidden", size.hidden);
    draft_.set("model.heads", size.heads);
    draft_.set("model.kv_heads", size.kv_heads);
    draft_.set("model.tied_head", true);
    if (data_.vocab > 0) draft_.set("model.vocab", data_.vocab, "The ids of the token file.");
  }

  double parameters() {
    ModelSpec spec = resolve_spec(draft_.run());
    return static_cast<double>(parameter_count(build_model(spec, {.seq = seq_}, single_rank_mesh())));
  }

  void choose_size() {
    double most = on_cpu() ? std::min(data_.tokens, kMostParametersOnCpu) : data_.tokens;
    const ModelSize* chosen = &kModelSizes.front();
    for (const ModelSize& size : kModelSizes) {
      set_size(size);
      if (parameters() > most) break;
      chosen = &size;
    }
    set_size(*chosen);
    double count = parameters();
    std::string why = fmt::format("{} parameters, {}", about(count),
                                  count > most          ? "the smallest there is"
                                  : data_.tokens > most ? "as many as a processor trains in hours"
                                                        : "at most one for each token of the text");
    draft_.set("model.architecture", std::string("llama"), why + ".");
    say("model", fmt::format("llama, {} layers of width {}, {}", chosen->layers, chosen->hidden, why));
  }

  // The size with the least expected loss of those that train in the time there is.
  void choose_size_by_time() {
    StepTimer timer(request_.step_seconds);
    const ModelSize* chosen = nullptr;
    double least = 0, seconds = 0;  // of the chosen one: its loss, a step of it
    for (const ModelSize& size : kModelSizes) {
      set_size(size);
      spec_ = resolve_spec(draft_.run());
      choose_batch();
      double count = parameters();
      if (chosen && count > kMostParametersPerToken * data_.tokens) break;
      if (!set_microbatch()) break;
      double step_s = timer.seconds(draft_.run(), count);
      int64_t steps = affordable_steps(step_s);
      if (chosen && steps < std::min(kFewestSteps, worthwhile_steps())) break;
      double loss = expected_bits_per_byte(training_of(count, steps));
      if (chosen && loss >= least) break;
      chosen = &size, least = loss, seconds = step_s;
    }
    if (!chosen) chosen = &kModelSizes.front();  // does not fit, as will be said
    set_size(*chosen);
    step_s_ = seconds;
    std::string why = fmt::format("{} parameters, the least expected loss of the sizes that train in {:g} minutes",
                                  about(parameters()), request_.minutes);
    draft_.set("model.architecture", std::string("llama"), why + ".");
    say("model", fmt::format("llama, {} layers of width {}, {}", chosen->layers, chosen->hidden, why));
  }

  SmallRun training_of(double parameters, int64_t steps) const {
    double bytes = data_.bytes_per_token();
    return {.parameters = parameters,
            .trained_bytes = static_cast<double>(steps) * tokens_in_step() * bytes,
            .unique_bytes = data_.trained_tokens() * bytes};
  }

  void choose_batch() {
    double most = on_cpu() ? 2048 : spec_.hidden >= 768 ? 131072 : 32768;
    double tokens_per_step = std::clamp(data_.tokens / 64, static_cast<double>(seq_), most);
    sequences_ = power_of_two_below(tokens_per_step / static_cast<double>(seq_));
    draft_.set("batch.sequences", sequences_, fmt::format("{} tokens in a step.", sequences_ * seq_));
  }

  // As many as the data are worth.
  int64_t worthwhile_steps() const {
    constexpr int64_t kFewest = 20;
    int64_t most = has_budget() || !on_cpu() ? kMostSteps : kMostStepsOnCpu;
    return std::clamp(static_cast<int64_t>(most_passes() * data_.trained_tokens() / tokens_in_step()), kFewest, most);
  }

  double budget_s() const {
    constexpr double kSecondsPerMinute = 60, kStart = 2;  // reading the text, the first checkpoint
    return kSecondsPerMinute * request_.minutes - kStart;
  }

  double evaluation_s(double step_s) const {
    return evaluation_seconds(step_s, RunConfig{}.train.eval_sequences, sequences_);
  }

  // How often the loss is measured: ten times, unless that takes more than a tenth of the time.
  int64_t evaluations(double step_s) const {
    constexpr int64_t kMost = 10;
    if (!has_budget()) return kMost;
    return std::clamp(static_cast<int64_t>(budget_s() / 10 / evaluation_s(step_s)), int64_t{1}, kMost);
  }

  int64_t affordable_steps(double step_s) const {
    double seconds = budget_s() - static_cast<double>(evaluations(step_s)) * evaluation_s(step_s);
    return std::min(worthwhile_steps(), steps_within(seconds, {.step_s = step_s}, 0));
  }

  void choose_steps() {
    steps_ = worthwhile_steps();
    std::string time;
    if (has_budget()) {
      if (step_s_ == 0) step_s_ = StepTimer(request_.step_seconds).seconds(draft_.run(), parameters());
      int64_t affordable = affordable_steps(step_s_);
      std::string made_in = human_duration(static_cast<double>(affordable) * step_s_);
      time = fmt::format("; at {} a step here {} in all", human_duration(step_s_), made_in);
      if (affordable < steps_)
        time += fmt::format(" (--minutes {:g}; one pass takes {})", request_.minutes,
                            human_duration(step_s_ * data_.trained_tokens() / tokens_in_step()));
      else
        time += fmt::format(": {:.2g} passes are what the text is worth, and less than the {:g} minutes there are",
                            most_passes(), request_.minutes);
      steps_ = affordable;
    }
    double made = static_cast<double>(steps_) * tokens_in_step() / data_.trained_tokens();
    std::string passes =
        fmt::format("{:.2g} passes through the {} training tokens", made, about(data_.trained_tokens()));
    draft_.set("train.steps", steps_, fmt::format("About {}.", passes));
    draft_.set("train.log_every", std::max<int64_t>(1, steps_ / 100));
    draft_.set("train.eval_every", std::max<int64_t>(1, steps_ / evaluations(step_s_)));
    draft_.set("checkpoint.every", std::max<int64_t>(1, steps_ / 5));
    say("steps", fmt::format("{} of {} sequences of {} tokens: about {}{}", steps_, sequences_, seq_, passes, time));
    say_expected_loss();
  }

  // Nothing is known of weights that were trained before, nor of token files whose text is not seen.
  void say_expected_loss() {
    if (fine_tunes() || data_.text_bytes <= 0 || data_.path == "stories") return;
    double bits = expected_bits_per_byte(training_of(parameters(), steps_));
    // The fit is of runs that have learned something: nothing is worse than a guess among all tokens.
    double nats = std::min(bits * std::numbers::ln2 * data_.bytes_per_token(), std::log(spec_.vocab));
    say("expected loss", fmt::format("about {:.1f} bits per byte, {:.1f} nats per token, on English: {}",
                                     nats / std::numbers::ln2 / data_.bytes_per_token(), nats, what_it_writes(bits)));
  }

  bool fits(int64_t microbatch, RecomputeMode recompute) {
    draft_.set("batch.microbatch", microbatch);
    draft_.set("train.recompute", std::string(word_of(recompute)));
    RunConfig run = draft_.run();
    arena_ = largest_arena(lower_run(run, spec_, request_.target(run)).programs);
    return static_cast<double>(arena_.n) <= kShareOfRoom * static_cast<double>(request_.room.n);
  }

  // As many sequences at once as fit; computing activations again comes last. False: not even one.
  bool set_microbatch() {
    microbatch_ = std::min<int64_t>(sequences_, on_cpu() ? 8 : 64);
    while (microbatch_ > 1 && !fits(microbatch_, RecomputeMode::none)) microbatch_ /= 2;
    recompute_ = fits(microbatch_, RecomputeMode::none) ? RecomputeMode::none : RecomputeMode::full;
    return fits(microbatch_, recompute_);
  }

  void choose_microbatch() {
    if (!set_microbatch())
      throw DoesNotFit({.place = fine_tunes() ? request_.model : request_.preset,
                        .got = fmt::format("one sequence of {} tokens needs {} with full recompute, and there are {}",
                                           seq_, human(arena_), human(request_.room)),
                        .expected = "a model that fits this machine",
                        .hint = "`sextant search CONFIG --machine NAME --devices N` finds a layout for several"});
    std::string why = fmt::format("{} of the memory there is.", human(arena_));
    draft_.set("batch.microbatch", microbatch_, "Sequences at once: " + why);
    say("memory", fmt::format("{} sequences at once, recompute {}: {}", microbatch_, word_of(recompute_), why));
  }

  void choose_optimizer() {
    double lr = fine_tunes()           ? 2e-5
                : spec_.hidden <= 128  ? 3e-3
                : spec_.hidden <= 256  ? 2e-3
                : spec_.hidden <= 512  ? 1e-3
                : spec_.hidden <= 1024 ? 6e-4
                                       : 3e-4;
    draft_.set("optimizer.lr", lr,
               fine_tunes() ? "Low: the weights are trained already." : "Higher for narrower models.");
    draft_.set("optimizer.min_lr", std::stod(fmt::format("{:.3g}", lr / 10)));
    draft_.set("optimizer.warmup", std::clamp<int64_t>(steps_ / 20, 1, 2000));
    say("learning rate", fmt::format("{} with cosine decay to a tenth", lr));
  }

  const ProposalRequest& request_;
  TrainingData data_;
  Draft draft_;
  std::vector<std::string> reasons_;
  ModelSpec spec_;
  int64_t vocab_ = 0;  // of the tokenizer that is trained; 0: there is one
  int64_t seq_ = 0, sequences_ = 0, microbatch_ = 0, steps_ = 0;
  RecomputeMode recompute_ = RecomputeMode::none;
  double step_s_ = 0;  // measured or estimated; 0: not yet
  Bytes arena_;
};

}  // namespace

Proposal propose_config(const ProposalRequest& request) {
  return Proposer(request).propose();
}

}  // namespace sextant
