// tests/fixtures/architectures/NAME.json: what tests expect of the architecture NAME of models.def.
//
//   defaults  fields of ModelSpec that differ from the plain model of tests/config/defaults_test.cpp
//   counts    parameters of each preset, as published; where no exact number is, as transformers counts a model of the
//             same config.json
//   billions  the same as papers print it, where transformers has no such model
//   released  for presets: the config.json that its authors released
//   refused   [{"preset", "changes", "message"}]: what is said about a released config.json with these changes
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "checkout.h"

namespace sextant {

inline nlohmann::json architecture_data(std::string_view architecture) {
  std::filesystem::path file = std::filesystem::path(checkout::kSources) / "tests/fixtures/architectures" /
                               (std::string(architecture) + ".json");
  std::ifstream in(file);
  if (!in) throw std::runtime_error(file.string() + " is missing: every architecture of models.def has one");
  return nlohmann::json::parse(in);
}

inline std::filesystem::path model_fixtures() {
  return std::filesystem::path(checkout::kSources) / "tests/fixtures/models";
}

// The Hugging Face directories of tests/fixtures/models, by name.
inline std::vector<std::string> model_fixture_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(model_fixtures()))
    if (std::filesystem::exists(entry.path() / "config.json")) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace sextant
