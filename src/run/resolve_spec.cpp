#include "run/resolve_spec.h"

#include "base/error.h"
#include "config/resolve.h"
#include "run/data_kind.h"
#include "run/tokenizer_choice.h"

namespace sextant {

ModelSpec resolve_spec(const RunConfig& run) {
  ModelSpec spec = resolve_model(run);
  if (spec.vocab > 0) return spec;
  if (auto path = tokenizer_path(run)) {
    spec.vocab = Tokenizer::load(*path).vocab_size();
  } else if (has_text(run)) {
    spec.vocab = run.data.tokenizer_vocab;
  } else {
    // A file that is missing, or is text under another name, is what is wrong, and not the vocabulary.
    for (const std::string& path : run.data.train) open_token_file(path, token_file_options(run));
    throw UserError({.place = run.place_of("model.vocab"),
                     .got = "token files do not say how many ids there are",
                     .expected = "model.vocab, or data.tokenizer to take it from"});
  }
  return spec;
}

}  // namespace sextant
