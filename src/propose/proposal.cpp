#include "propose/proposal.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <filesystem>

#include "base/error.h"
#include "base/printable.h"
#include "ckpt/model_directory.h"
#include "config/resolve.h"
#include "data/data_facts.h"
#include "models/model.h"
#include "propose/draft.h"
#include "propose/model_sizes.h"
#include "run/fit.h"
#include "run/programs.h"
#include "run/resolve_spec.h"

namespace sextant {

namespace {

namespace fs = std::filesystem;

// English with a tokenizer of some thousand tokens; only an order of magnitude is asked of it.
constexpr double kBytesPerToken = 4;
// Text is worth nearly as much the second, third and fourth time (Muennighoff et al. 2023, arXiv:2305.16264). A
// parameter for every token is more than Hoffmann et al. advise (2022, arXiv:2203.15556: a twentieth): theirs is for
// those to whom time is scarce and not text.
constexpr int64_t kShortestSequence = 16;
constexpr double kPasses = 4;
constexpr double kPassesOfFineTuning = 2;
// A processor trains more than this for days.
constexpr double kMostParametersOnCpu = 5e6;
constexpr int64_t kMostStepsOnCpu = 10'000, kMostSteps = 100'000;
// The rest is for the data, the host and whatever else runs there.
constexpr double kShareOfRoom = 0.8;

int64_t power_of_two_below(double most) {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max(1.0, most))));
}

struct TrainingData {
  std::string path;       // "stories" for the built-in ones
  double tokens = 0;      // in it, about
  int64_t vocab = 0;      // of token files: the least that holds their ids
  double text_bytes = 0;  // 0 for token files
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
    choose_steps();
    choose_microbatch();
    choose_optimizer();
    return {draft_.toml(heading()), std::move(reasons_)};
  }

 private:
  bool on_cpu() const { return request_.device == "cpu"; }
  bool fine_tunes() const { return !request_.model.empty(); }
  double passes() const { return fine_tunes() ? kPassesOfFineTuning : kPasses; }

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
    draft_.set("data.train", std::vector<std::string>{data_.path},
               fmt::format("About {} tokens.", about(data_.tokens)));
    say("data", fmt::format("{}, about {} tokens", data_.path, about(data_.tokens)));
    if (data_.vocab > 0 || fine_tunes()) return;
    int64_t vocab = power_of_two_below(std::clamp(data_.text_bytes / 1024, 512.0, 32768.0));
    draft_.set("data.tokenizer_vocab", vocab, "A tokenizer of so many tokens is trained on the text first.");
    say("tokenizer", fmt::format("{} tokens, trained on the text: more would each be seen too rarely", vocab));
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
      draft_.set("model.preset", request_.preset);
      say("model", request_.preset);
    } else {
      choose_size();
    }
    spec_ = resolve_spec(draft_.run());
    shorten_sequence();
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

  void choose_steps() {
    double most = on_cpu() ? 2048 : spec_.hidden >= 768 ? 131072 : 32768;
    double tokens_per_step = std::clamp(data_.tokens / 64, static_cast<double>(seq_), most);
    sequences_ = power_of_two_below(tokens_per_step / static_cast<double>(seq_));
    draft_.set("batch.sequences", sequences_, fmt::format("{} tokens in a step.", sequences_ * seq_));
    auto tokens_in_step = static_cast<double>(sequences_ * seq_);
    constexpr int64_t kFewest = 20;
    steps_ = std::clamp(static_cast<int64_t>(passes() * data_.tokens / tokens_in_step), kFewest,
                        on_cpu() ? kMostStepsOnCpu : kMostSteps);
    double made = static_cast<double>(steps_) * tokens_in_step / data_.tokens;
    draft_.set("train.steps", steps_, fmt::format("About {:.2g} passes through the data.", made));
    draft_.set("train.log_every", std::max<int64_t>(1, steps_ / 100));
    draft_.set("train.eval_every", std::max<int64_t>(1, steps_ / 10));
    draft_.set("checkpoint.every", std::max<int64_t>(1, steps_ / 5));
    say("steps", fmt::format("{} of {} sequences of {} tokens: about {:.2g} passes through the data", steps_,
                             sequences_, seq_, made));
  }

  bool fits(int64_t microbatch, const std::string& recompute) {
    draft_.set("batch.microbatch", microbatch);
    draft_.set("train.recompute", recompute);
    RunConfig run = draft_.run();
    arena_ = largest_arena(lower_run(run, spec_, request_.target(run)).programs);
    return static_cast<double>(arena_.n) <= kShareOfRoom * static_cast<double>(request_.room.n);
  }

  // As many sequences at once as fit; computing activations again comes last.
  void choose_microbatch() {
    int64_t microbatch = std::min<int64_t>(sequences_, on_cpu() ? 8 : 64);
    while (microbatch > 1 && !fits(microbatch, "none")) microbatch /= 2;
    std::string recompute = fits(microbatch, "none") ? "none" : "full";
    if (!fits(microbatch, recompute))
      throw DoesNotFit({.place = fine_tunes() ? request_.model : request_.preset,
                        .got = fmt::format("one sequence of {} tokens needs {} with full recompute, and there are {}",
                                           seq_, human(arena_), human(request_.room)),
                        .expected = "a model that fits this machine",
                        .hint = "`sextant plan --search --machine NAME --devices N` finds a layout for several"});
    std::string why = fmt::format("{} of the memory there is.", human(arena_));
    draft_.set("batch.microbatch", microbatch, "Sequences at once: " + why);
    say("memory", fmt::format("{} sequences at once, recompute {}: {}", microbatch, recompute, why));
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
  int64_t seq_ = 0, sequences_ = 0, steps_ = 0;
  Bytes arena_;
};

}  // namespace

Proposal propose_config(const ProposalRequest& request) {
  return Proposer(request).propose();
}

}  // namespace sextant
