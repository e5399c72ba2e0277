#include "run/tokenizer_choice.h"

#include "base/error.h"
#include "run/run_identity.h"
#include "text/tokenizer_files.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

std::optional<fs::path> tokenizer_of_model(const RunConfig& run) {
  if (!run.model.from) return std::nullopt;
  return find_tokenizer(*run.model.from);
}

constexpr const char* kAllow =
    "model.other_tokenizer=true trains on all the same, from weights to which the ids mean nothing";

}  // namespace

std::optional<fs::path> tokenizer_path(const RunConfig& run) {
  if (!run.data.tokenizer.empty()) return run.data.tokenizer;
  return tokenizer_of_model(run);
}

void require_tokenizer_of_model(const RunConfig& run) {
  if (!run.model.from || run.model.other_tokenizer) return;
  std::optional<fs::path> own = tokenizer_of_model(run);
  if (!own && run.data.tokenizer.empty())
    throw UserError(
        {.place = run.place_of("model.from"),
         .got = fmt::format(
             "{} has no tokenizer.json, tokenizer.model or vocab.json with merges.txt, and the data is text",
             *run.model.from),
         .expected = "the tokenizer that the weights were trained with: data.tokenizer, or data in token files",
         .hint = kAllow});
  if (!own || run.data.tokenizer.empty()) return;
  if (identity_of(Tokenizer::load(*own)) != identity_of(Tokenizer::load(run.data.tokenizer)))
    throw UserError({.place = run.place_of("data.tokenizer"),
                     .got = fmt::format("{} is not the tokenizer of {}", run.data.tokenizer, *run.model.from),
                     .expected = "the tokenizer that the weights were trained with",
                     .hint = fmt::format("leave data.tokenizer out; or {}", kAllow)});
}

std::shared_ptr<const Tokenizer> tokenizer_beside_tokens(const RunConfig& run,
                                                         const std::function<void(std::string_view)>& say) {
  std::optional<fs::path> path = tokenizer_path(run);
  if (!path) return nullptr;
  try {
    return std::make_shared<const Tokenizer>(Tokenizer::load(*path));
  } catch (const UserError& error) {
    if (!run.data.tokenizer.empty()) throw;
    say(fmt::format("the model's tokenizer cannot be read, and the token files do not need it: {}", error.what()));
    return nullptr;
  }
}

}  // namespace sextant
