// The files of a Hugging Face directory that say how a model is used, beside its weights: they go along unchanged into
// every checkpoint that is trained from it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

struct ModelFile {
  std::string name;  // inside the directory
  std::string text;
};

struct ModelFiles {
  std::string config;                // the text of config.json; empty where there is no such directory
  std::vector<ModelFile> tokenizer;  // tokenizer.json and what belongs to it, chat templates among them
  std::vector<ModelFile> generation;

  bool has_tokenizer_file(std::string_view name) const;
};

// UserError when a file that is there cannot be read.
ModelFiles read_model_files(const std::filesystem::path& directory);

// Writes all but config.json.
void write_model_files(const ModelFiles& files, const std::filesystem::path& directory);

}  // namespace sextant
