// Which tokenizer a run reads its text with, and whether it is the one its weights were trained with.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "config/run_config.h"
#include "text/tokenizer.h"

namespace sextant {

// The tokenizer file (tokenizer_files.h) that the config names, by data.tokenizer or model.from; nullopt when one is to
// be trained.
std::optional<std::filesystem::path> tokenizer_path(const RunConfig& run);

// UserError when pretrained weights would be given ids of another tokenizer than theirs, and model.other_tokenizer does
// not say that they may.
void require_tokenizer_of_model(const RunConfig& run);

// For token files, which need no tokenizer: null when there is none, or when the model's own cannot be read, which is
// said.
std::shared_ptr<const Tokenizer> tokenizer_beside_tokens(const RunConfig& run,
                                                         const std::function<void(std::string_view)>& say);

}  // namespace sextant
