// The data of a run: from the config's paths (or the built-in stories) to samplers of token sequences. Text is
// tokenized once and kept in the cache directory, under a name made from everything that decides its content.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/threads.h"
#include "config/run_config.h"
#include "data/sampler.h"
#include "models/spec.h"
#include "text/tokenizer.h"
#include "train/data/cache_manifest.h"

namespace sextant {

struct Dataset {
  std::shared_ptr<const Tokenizer> tokenizer;  // null for token files without one
  std::vector<std::shared_ptr<const TokenFile>> train_files;
  BatchSampler train;
  std::optional<BatchSampler> validation;
  int64_t train_tokens = 0;
  int64_t validation_tokens = 0;
  int32_t end_of_text = -1;    // with data.mask_documents: the id that ends a document
  double unigram_entropy = 0;  // of the validation tokens (of the training tokens where there are none), in nats
};

using Say = std::function<void(std::string_view line)>;

// `spec` has its vocabulary: every id of the data is held to it. `say` gets a line per long piece of work. Of the
// processes of a run one need look at the contents of a token cache.
Dataset open_dataset(const RunConfig& run, const ModelSpec& spec, ThreadTeam& team, const Say& say,
                     CacheCheck check = CacheCheck::contents);

}  // namespace sextant
