// Options that several verbs take, in the same words.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sextant {

constexpr int64_t kMaxSteps = 1'000'000'000'000, kMaxPositions = int64_t{1} << 30;

// The config, required, and key=value pairs for it.
void add_config(CLI::App& verb, std::string& config, std::vector<std::string>& overrides);

// auto, cpu or cuda.
CLI::Option* add_device(CLI::App& verb, std::string& device, const std::string& about);

// "14.8T" as a number; nothing where the option was not given.
std::optional<double> given_quantity(const std::string& text, const char* option);

}  // namespace sextant
