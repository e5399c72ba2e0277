#include "generate/generator.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/rng.h"
#include "ckpt/model_directory.h"
#include "ckpt/model_weights.h"
#include "models/hf_config.h"
#include "models/model.h"
#include "passes/lower.h"
#include "text/tokenizer_files.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

// Prompt tokens per prefill run: enough to keep the matrix units busy, few enough to waste little.
constexpr int64_t kPrefillBlock = 64;

Program program_for(const ModelSpec& spec, int64_t block, int64_t context, const Executor& executor) {
  Use use{.kind = Use::Kind::generate, .batch = 1, .seq = block, .cache_positions = context};
  return lower(build_model(spec, use, single_rank_mesh()), executor.target(), {});
}

int64_t checked_context(const ModelSpec& spec, int64_t context) {
  if (context == 0) return spec.max_seq;
  if (context > 0 && context <= spec.max_seq) return context;
  throw UserError({.place = "--context",
                   .got = std::to_string(context),
                   .expected = fmt::format("1 to {}, the positions this model can see", spec.max_seq)});
}

ModelSpec spec_of_whole_model(const std::filesystem::path& directory) {
  require_whole_weights(directory);
  return spec_from_hf_config(read_file(directory / "config.json"), (directory / "config.json").string());
}

std::filesystem::path tokenizer_in(const std::filesystem::path& directory) {
  return find_tokenizer(directory).value_or(directory / kTokenizerFile);
}

}  // namespace

Generator::Generator(const std::filesystem::path& directory, Executor& executor, int64_t context)
    : spec_(spec_of_whole_model(directory)),
      tokenizer_(Tokenizer::load(tokenizer_in(directory))),
      context_(checked_context(spec_, context)),
      prefill_program_(program_for(spec_, std::min(kPrefillBlock, context_), context_, executor)),
      decode_program_(program_for(spec_, 1, context_, executor)),
      arena_(executor.allocate(std::max(prefill_program_.arena_bytes, decode_program_.arena_bytes))),
      prefill_(executor.bind(prefill_program_, *arena_)),
      decode_(executor.bind(decode_program_, *arena_)),
      logits_(static_cast<size_t>(spec_.vocab)) {
  if (static_cast<int64_t>(tokenizer_.vocab_size()) > spec_.vocab)
    throw UserError({.place = tokenizer_in(directory).string(),
                     .got = fmt::format("{} ids for a model of {}", tokenizer_.vocab_size(), spec_.vocab),
                     .expected = "the model's own tokenizer"});
  WeightsReader weights(directory);
  refuse_other_head(spec_, weights);
  load_weights(*decode_, spec_, weights);
  // transformers' generate stops by this file.
  fs::path generation = directory / "generation_config.json";
  if (!fs::exists(generation)) return;
  std::vector<int64_t> ends = eos_in_generation_config(read_file(generation), generation.string());
  spec_.eos_tokens.insert(spec_.eos_tokens.end(), ends.begin(), ends.end());
}

std::span<const float> Generator::advance(Bound& bound, std::span<const int32_t> tokens, int64_t start) {
  const Program& program = bound.program();
  bound.write(program.at("tokens"), std::as_bytes(tokens));
  write_value(bound, program.at("start"), static_cast<int32_t>(start));
  write_value(bound, program.at("at"), static_cast<int32_t>(tokens.size() - 1));
  run_schedule(bound);
  bound.read(program.at("logits"), std::as_writable_bytes(std::span(logits_)));
  // Weights are finite (load_weights): activations have overflowed. The likeliest of such logits would be any token.
  auto bad = std::ranges::find_if(logits_, [](float logit) { return !std::isfinite(logit); });
  if (bad != logits_.end())
    throw RunError(fmt::format("generate, position {}", start + static_cast<int64_t>(tokens.size()) - 1),
                   fmt::format("the logit of token {} is {}, expected finite logits", bad - logits_.begin(), *bad),
                   "activations overflow with these weights: use an earlier checkpoint of the model",
                   ExitCode::non_finite);
  return logits_;
}

bool Generator::ends(uint32_t token, const GenerateOptions& options) const {
  return std::find(spec_.eos_tokens.begin(), spec_.eos_tokens.end(), static_cast<int64_t>(token)) !=
             spec_.eos_tokens.end() ||
         std::find(options.stop_tokens.begin(), options.stop_tokens.end(), token) != options.stop_tokens.end();
}

std::vector<int32_t> Generator::prompt_ids(std::string_view prompt) const {
  std::vector<uint32_t> ids = tokenizer_.encode_with_special(prompt);
  if (ids.empty()) {
    auto start = tokenizer_.bos_id() ? tokenizer_.bos_id() : tokenizer_.eos_id();
    if (!start)
      throw UserError({.place = "--prompt",
                       .got = "the prompt is empty and the tokenizer names no token to start from",
                       .expected = "some text"});
    ids.push_back(*start);
  }
  if (static_cast<int64_t>(ids.size()) >= context_)
    throw UserError({.place = "--prompt",
                     .got = fmt::format("the prompt has {} tokens", ids.size()),
                     .expected = fmt::format("fewer than {}, the positions there are", context_)});
  return {ids.begin(), ids.end()};
}

StopReason Generator::generate(std::string_view prompt, const GenerateOptions& options,
                               const std::function<void(uint32_t)>& take) {
  std::vector<int32_t> ids = prompt_ids(prompt);
  auto block = static_cast<size_t>(prefill_program_.at("tokens").shape[1]);
  std::span<const float> logits;
  size_t at = 0;
  while (at < ids.size()) {  // whole blocks, then what is left token by token
    size_t count = ids.size() - at >= block ? block : 1;
    Bound& bound = count == block ? *prefill_ : *decode_;
    logits = advance(bound, std::span(ids).subspan(at, count), static_cast<int64_t>(at));
    at += count;
  }
  TokenSampler sampler(options.sampling);
  Random random(options.seed, "generate", options.stream);
  for (int64_t made = 0; made < options.max_tokens; ++made) {
    uint32_t token = sampler.sample(logits, random.uniform(static_cast<uint64_t>(made)));
    if (ends(token, options)) return StopReason::stop_token;
    take(token);
    if (static_cast<int64_t>(at) == context_) return StopReason::context_full;
    auto next = static_cast<int32_t>(token);
    logits = advance(*decode_, {&next, 1}, static_cast<int64_t>(at++));
  }
  return StopReason::max_tokens;
}

}  // namespace sextant
