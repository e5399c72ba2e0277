#include "ckpt/model_files.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/path_error.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

constexpr const char* kTokenizerFiles[] = {
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json",
    "merges.txt",     "tokenizer.model",       "chat_template.jinja",     "chat_template.json"};
constexpr const char* kGenerationFile = "generation_config.json";
constexpr const char* kTemplates = "additional_chat_templates";  // a folder of them, where there are several

void read_if_there(const fs::path& directory, const std::string& name, std::vector<ModelFile>& into) {
  if (fs::is_regular_file(look_at(directory / name))) into.push_back({name, read_file(directory / name)});
}

}  // namespace

bool ModelFiles::has_tokenizer_file(std::string_view name) const {
  return std::any_of(tokenizer.begin(), tokenizer.end(), [&](const ModelFile& file) { return file.name == name; });
}

ModelFiles read_model_files(const fs::path& directory) {
  ModelFiles files{.config = read_file(directory / "config.json"), .tokenizer = {}, .generation = {}};
  for (const char* name : kTokenizerFiles) read_if_there(directory, name, files.tokenizer);
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory / kTemplates, ignored))
    read_if_there(directory, fmt::format("{}/{}", kTemplates, entry.path().filename().string()), files.tokenizer);
  read_if_there(directory, kGenerationFile, files.generation);
  return files;
}

void write_model_files(const ModelFiles& files, const fs::path& directory) {
  for (const auto* list : {&files.tokenizer, &files.generation})
    for (const ModelFile& file : *list) {
      fs::path path = directory / file.name;
      std::error_code error;
      fs::create_directories(path.parent_path(), error);
      if (error) throw RunError(path.parent_path().string(), fmt::format("cannot create: {}", error.message()));
      write_file_atomically(path, file.text);
    }
}

}  // namespace sextant
