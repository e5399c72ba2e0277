#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/device.h"
#include "app/json_output.h"
#include "app/verb.h"
#include "app/verbosity_options.h"
#include "base/error.h"
#include "base/threads.h"
#include "base/verbosity.h"
#include "ckpt/model_directory.h"
#include "generate/generator.h"
#include "stories/stories.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {

namespace {

struct GenerateArguments {
  std::string directory;
  std::string prompt;
  double temperature = 0.8;
  int64_t top_k = 0;
  double top_p = 1.0;
  int64_t max_tokens = 256;
  uint64_t seed = 1;
  int64_t samples = 1;
  int64_t context = 0;
  int64_t threads = 0;
  std::vector<std::string> stop;
  int64_t check_stories = 0;  // sentences to write and check against the stories' grammar
  std::string device = "auto";
  Verbosity verbosity = Verbosity::usual;
  bool json = false;
};

void require(bool holds, std::string_view option, std::string got, std::string_view expected) {
  if (!holds) throw UserError({.place = std::string(option), .got = std::move(got), .expected = std::string(expected)});
}

void check_arguments(const GenerateArguments& a) {
  require(is_valid_utf8(a.prompt), "--prompt", "is not UTF-8", "text in UTF-8");
  require(a.temperature >= 0, "--temperature", fmt::format("{}", a.temperature), "a number of at least 0");
  require(a.top_k >= 0, "--top-k", std::to_string(a.top_k), "an integer of at least 0");
  require(a.top_p > 0 && a.top_p <= 1, "--top-p", fmt::format("{}", a.top_p), "a number above 0 and at most 1");
  require(a.max_tokens >= 0, "--max-tokens", std::to_string(a.max_tokens), "an integer of at least 0");
  constexpr int64_t kMostSamples = 1'000'000'000;
  require(a.samples >= 1 && a.samples <= kMostSamples, "--samples", std::to_string(a.samples),
          fmt::format("an integer from 1 to {}", kMostSamples));
  require(a.threads >= 0 && a.threads <= kMaxThreads, "--threads", std::to_string(a.threads),
          fmt::format("an integer from 0 to {}", kMaxThreads));
}

GenerateOptions sampling_options(const GenerateArguments& a, const Tokenizer& tokenizer) {
  GenerateOptions options{.sampling = {a.temperature, a.top_k, a.top_p}, .max_tokens = a.max_tokens, .seed = a.seed};
  for (const std::string& token : a.stop) {
    auto id = tokenizer.token_id(token);
    require(id.has_value(), "--stop", fmt::format("'{}' is not a token of this model", token), "one of its tokens");
    options.stop_tokens.push_back(*id);
  }
  return options;
}

std::string_view remark(StopReason reason) {
  if (reason == StopReason::context_full) return "(stopped: the model sees no further)";
  if (reason == StopReason::max_tokens) return "(stopped: --max-tokens reached)";
  return "";
}

std::string_view word_for(StopReason reason) {
  if (reason == StopReason::context_full) return "context_full";
  return reason == StopReason::max_tokens ? "max_tokens" : "stop_token";
}

// The whole text, with its prompt, once it is made.
nlohmann::ordered_json sample_json(Generator& generator, const GenerateArguments& a, const GenerateOptions& options) {
  StreamDecoder decoder(generator.tokenizer(), Specials::skip);
  std::string text = a.prompt;
  int64_t tokens = 0;
  StopReason reason = generator.generate(a.prompt, options, [&](uint32_t token) {
    text += decoder.push(token);
    ++tokens;
  });
  text += decoder.finish();
  return {{"text", text}, {"tokens", tokens}, {"stopped", word_for(reason)}};
}

// Streams one text to the terminal as it is made.
void write_sample(Generator& generator, const GenerateArguments& a, const GenerateOptions& options) {
  StreamDecoder decoder(generator.tokenizer(), Specials::skip);
  fmt::print("{}", a.prompt);
  StopReason reason = generator.generate(a.prompt, options, [&](uint32_t token) {
    fmt::print("{}", decoder.push(token));
    std::fflush(stdout);
  });
  fmt::print("{}\n", decoder.finish());
  if (!remark(reason).empty() && a.verbosity != Verbosity::quiet) fmt::print(stderr, "{}\n", remark(reason));
}

// A few that the grammar would not have made, so that a person can judge the figure.
void print_some_failures(std::string_view text) {
  int left = 3;
  for (std::string_view sentence : split_sentences(text))
    if (!parses(sentence) && left-- > 0) fmt::print("  does not parse: {}\n", sentence);
}

// Writes stories until there are enough whole sentences, then asks the grammar about them.
void check_stories_of(Generator& generator, const GenerateArguments& a, GenerateOptions options) {
  std::string text;
  constexpr uint64_t kMostStories = 1000;  // a model that never ends a sentence must not keep us here
  for (options.stream = 0; options.stream < kMostStories; ++options.stream) {
    if (static_cast<int64_t>(split_sentences(text).size()) >= a.check_stories) break;
    StreamDecoder decoder(generator.tokenizer(), Specials::skip);
    std::string story = a.prompt;
    generator.generate(a.prompt, options, [&](uint32_t token) { story += decoder.push(token); });
    if (options.stream == 0 && !a.json) fmt::print("{}\n", story);
    // The last sentence of a story that was cut off does not count.
    size_t end = story.find_last_of(".!?\"\n");
    text += story.substr(0, end == std::string::npos ? 0 : end + 1) + "\n";
  }
  StoryCheck check = check_stories(text);
  if (a.json)
    return print_json({{"sentences", check.sentences},
                       {"sentences_parsed", check.parsed},
                       {"words", check.words},
                       {"words_known", check.known}});
  auto percent = [](size_t part, size_t whole) {
    return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  fmt::print("{} sentences: {:.1f} % of {} words are words of the corpus, {:.1f} % of the sentences parse\n",
             check.sentences, percent(check.known, check.words), check.words, percent(check.parsed, check.sentences));
  print_some_failures(text);
}

void add_generate_options(CLI::App& verb, GenerateArguments& a) {
  verb.add_option("directory", a.directory, "a run's --out, one of its checkpoints, or a Hugging Face model")
      ->required();
  verb.add_option("--prompt", a.prompt, "text to go on from");
  verb.add_option("--temperature", a.temperature,
                  "0 = always the likeliest token, whatever --top-k, --top-p and --seed say")
      ->capture_default_str();
  verb.add_option("--top-k", a.top_k, "choose among the k likeliest; 0 = all")->capture_default_str();
  verb.add_option("--top-p", a.top_p, "choose among the likeliest that hold this probability")->capture_default_str();
  verb.add_option("--max-tokens", a.max_tokens, "stop after this many")->capture_default_str();
  verb.add_option("--seed", a.seed, "the same seed writes the same text")->capture_default_str();
  CLI::Option* samples = verb.add_option("--samples", a.samples, "how many texts")->capture_default_str();
  verb.add_option("--stop", a.stop, "token that ends the text (may be repeated)");
  verb.add_option("--context", a.context, "positions to keep; 0 = all the model can see")->capture_default_str();
  verb.add_option("--device", a.device, "where to compute; auto: on a GPU if there is one")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  verb.add_option("--threads", a.threads, "of the CPU; 0 = one per core")->capture_default_str();
  verb.add_option("--check-stories", a.check_stories,
                  "write this many sentences and check them against the built-in stories' grammar")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->excludes(samples);
  verb.add_flag("--json", a.json, "print JSON once all is written: texts, and why each ended");
  add_quiet(verb, a.verbosity, "do not say why the text ended");
}

void run_generate(const GenerateArguments& arguments) {
  check_arguments(arguments);
  std::unique_ptr<Executor> executor = executor_for(arguments.device, static_cast<int>(arguments.threads));
  Generator generator(find_model_directory(arguments.directory), *executor, arguments.context);
  GenerateOptions options = sampling_options(arguments, generator.tokenizer());
  if (arguments.check_stories > 0) return check_stories_of(generator, arguments, options);
  auto samples = nlohmann::ordered_json::array();
  for (int64_t sample = 0; sample < arguments.samples; ++sample) {
    options.stream = static_cast<uint64_t>(sample);
    if (arguments.json) {
      samples.push_back(sample_json(generator, arguments, options));
      continue;
    }
    if (sample > 0) fmt::print("\n---\n");
    write_sample(generator, arguments, options);
  }
  if (arguments.json) print_json({{"samples", std::move(samples)}});
}

constexpr ValueFormat kGenerateValues[] = {
    {"MODEL", "the --out directory of a run, a checkpoint or a Hugging Face directory", "directory"},
    {"SHARE", "", "--top-p"},
    {"TOKENS", "tokens", "--max-tokens"},
    {"TEXTS", "texts", "--samples"},
    {"SENTENCES", "sentences", "--check-stories"},
    {"TEXT", "a text", "--prompt"},
    {"TOKEN", "a token of the tokenizer", "--stop"},
};

}  // namespace

const VerbDef generate_verb{
    .words = "generate",
    .summary = "Write text with a trained model",
    .details = "It may be a run, a checkpoint or any Hugging Face directory",
    .examples = "sextant generate runs/tiny-llama --prompt 'One day' --max-tokens 40",
    .values = kGenerateValues,
    .declare = declare_verb<add_generate_options, run_generate>,
};

}  // namespace sextant
