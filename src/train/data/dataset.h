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
#include "train/data/cache_contents.h"
#include "train/data/cache_manifest.h"

namespace sextant {

struct Dataset {
  std::shared_ptr<const Tokenizer> tokenizer;  // null for token files without one
  std::vector<std::shared_ptr<const TokenFile>> train_files;
  // Where the documents of each came from, in the same order; empty where they were given as tokens.
  std::vector<std::shared_ptr<const DocumentOrigins>> train_origins;
  BatchSampler train;
  std::optional<BatchSampler> validation;
  int64_t train_tokens = 0;
  int64_t validation_tokens = 0;
  std::optional<int32_t> document_end;  // the id that ends a document, where it is known
  int32_t end_of_text = -1;             // with data.mask_documents: the id that ends a document
  // Of the validation tokens, in nats. None where a comparison with it says nothing: they are too few to tell, or the
  // weights that training starts from have been trained before.
  std::optional<double> unigram_entropy;
  std::optional<double> validation_bytes_per_token;  // of text, over the targets that are measured; with a tokenizer
};

using Say = std::function<void(std::string_view line)>;

// `spec` has its vocabulary: every id of the data is held to it. `say` gets a line per long piece of work. Of the
// processes of a run one need look at the contents of a token cache.
Dataset open_dataset(const RunConfig& run, const ModelSpec& spec, ThreadTeam& team, const Say& say,
                     CacheCheck check = CacheCheck::contents);

// How many samples of the validation data a measurement takes, from the first on: a small validation set is measured
// once, not over and over.
int64_t measured_samples(const RunConfig& run, const BatchSampler& validation);

}  // namespace sextant
