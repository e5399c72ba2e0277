// Tokenizer, data, source weights and config of a run: stored in every checkpoint, compared when a run resumes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/changes.h"
#include "data/token_file.h"
#include "text/tokenizer.h"

namespace sextant {

struct RunIdentity {
  std::string tokenizer;  // a hash; empty: none
  std::string data;       // a hash of the token files
  // Of the weights of model.from; empty where they were drawn. None: not known, in checkpoints of earlier versions and
  // where the directory has lost its weights since the run began.
  std::optional<std::string> model;
  ConfigValues config;
};

// Equal for two tokenizers that were read from files of the same meaning.
std::string identity_of(const Tokenizer& tokenizer);

// Of what the files hold, wherever they lie: sizes, and all tokens of a file below 64 MiB of ids; of a longer one its
// ends and 256 blocks between, so that a dataset of terabytes costs seconds.
std::string identity_of(const std::vector<std::shared_ptr<const TokenFile>>& files);

}  // namespace sextant
