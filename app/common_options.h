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

// --only: limits of a search for layouts.
CLI::Option* add_only(CLI::App& verb, std::vector<std::string>& limits);

// --imbalance: how tokens go to the ranks of experts.
CLI::Option* add_imbalance(CLI::App& verb, std::string& imbalance);

// "14.8T" as a number; nothing where the option was not given.
std::optional<double> given_quantity(const std::string& text, const char* option);

}  // namespace sextant
