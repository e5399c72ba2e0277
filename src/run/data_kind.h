// Whether the data of a run is text or token files, by its config alone.
#pragma once

#include <string>
#include <vector>

#include "config/run_config.h"
#include "data/token_file.h"

namespace sextant {

bool is_stories(const std::vector<std::string>& paths);  // the built-in corpus
bool are_token_files(const RunConfig& run, const std::vector<std::string>& paths);
bool has_text(const RunConfig& run);                        // whether the training data must be tokenized
TokenFileOptions token_file_options(const RunConfig& run);  // as data.format states them

}  // namespace sextant
