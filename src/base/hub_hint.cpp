#include "base/hub_hint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace sextant {

namespace {

bool is_hub_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
         c == '.' || c == '/';
}

// NAME or OWNER/NAME, as the Hub has them, and not the name of a file.
bool is_hub_name(std::string_view name) {
  constexpr std::array<std::string_view, 18> kFiles{".json", ".model", ".txt", ".jsonl",   ".ndjson", ".csv",
                                                    ".tsv",  ".gz",    ".zst", ".parquet", ".arrow",  ".feather",
                                                    ".bin",  ".ds",    ".idx", ".u16",     ".u32",    ".toml"};
  return !name.empty() && name.front() != '.' && name.front() != '/' && name.back() != '/' &&
         std::all_of(name.begin(), name.end(), is_hub_character) && std::count(name.begin(), name.end(), '/') <= 1 &&
         std::none_of(kFiles.begin(), kFiles.end(), [&](std::string_view end) { return name.ends_with(end); });
}

std::string_view folder_of(std::string_view name) {
  return name.substr(name.rfind('/') + 1);
}

}  // namespace

std::string dataset_download_hint(std::string_view name) {
  if (!is_hub_name(name)) return "";
  return fmt::format(
      "nothing is downloaded: fetch a data set of the Hugging Face Hub first (hf download {0} --repo-type dataset "
      "--local-dir {1}) and give its folder or files: data.train={1}",
      name, folder_of(name));
}

std::string tokenizer_download_hint(std::string_view name) {
  if (!is_hub_name(name)) return "";
  return fmt::format(
      "nothing is downloaded: fetch a tokenizer of the Hugging Face Hub first (hf download {0} tokenizer.json "
      "--local-dir {1}) and name the file: {1}/tokenizer.json",
      name, folder_of(name));
}

std::string model_download_hint(std::string_view name) {
  if (!is_hub_name(name)) return "";
  return fmt::format(
      "nothing is downloaded: fetch a model of the Hugging Face Hub first (hf download {} --local-dir {}) and give its "
      "directory",
      name, folder_of(name));
}

}  // namespace sextant
