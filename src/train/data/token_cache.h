// Text to token files, once. The cache directory of a run holds, under a key of everything that decides the content
// (paths, sizes and hashes of the files, the tokenizer, its size), a tokenizer.json, the tokenized documents and a
// manifest.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/threads.h"
#include "config/run_config.h"
#include "data/token_file.h"
#include "text/tokenizer.h"
#include "train/data/cache_contents.h"
#include "train/data/cache_manifest.h"

namespace sextant {

struct TokenizedData {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<std::shared_ptr<const TokenFile>> train;
  // Of the documents of each of them, in the same order; empty where they were given as tokens.
  std::vector<std::shared_ptr<const DocumentOrigins>> train_origins;
  std::vector<std::shared_ptr<const TokenFile>> validation;  // empty: split off the training data
};

// A cache that is not as it was written, as far as `check` looks, is made again.
TokenizedData tokenize_once(const RunConfig& run, ThreadTeam& team, const std::function<void(std::string_view)>& say,
                            CacheCheck check);

}  // namespace sextant
