// Hints for a file or folder that was not found and may have been meant as a name on the Hugging Face Hub.
#pragma once

#include <string>
#include <string_view>

namespace sextant {

// "nothing is downloaded: hf download ... gets it"; nothing where `name`, which was given, is no name of the Hub.
std::string dataset_download_hint(std::string_view name);
std::string tokenizer_download_hint(std::string_view name);
std::string model_download_hint(std::string_view name);

}  // namespace sextant
