#include "base/hub_hint.h"

#include <fmt/format.h>

#include <algorithm>

namespace sextant {

namespace {

bool is_hub_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
         c == '.' || c == '/';
}

// A dot and a word: "notes.md", "tokens.u16". Versions in names of the Hub begin with a digit: "Qwen2.5", "llama-v0.3".
bool has_extension(std::string_view name) {
  size_t dot = name.rfind('.');
  if (dot == name.npos || dot + 1 == name.size()) return false;
  std::string_view word = name.substr(dot + 1);
  bool begins_with_digit = word.front() >= '0' && word.front() <= '9';
  return !begins_with_digit && word.find_first_of("/-_") == word.npos;
}

// NAME or OWNER/NAME, as the Hub has them, and not the name of a file.
bool is_hub_name(std::string_view name) {
  return !name.empty() && name.front() != '.' && name.front() != '/' && name.back() != '/' &&
         std::all_of(name.begin(), name.end(), is_hub_character) && std::count(name.begin(), name.end(), '/') <= 1 &&
         !has_extension(name);
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
