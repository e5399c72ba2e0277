// lower: from a model's Graph to the Program that runs. lower.cpp tells the story pass by pass.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/plan.h"
#include "ir/program.h"
#include "passes/update.h"

namespace sextant {

struct LowerOptions {
  Plan plan;
  std::optional<AdamW> train;  // with it: backward and update; without: forward only (evaluate, generate)
  int64_t transient_from = 0;  // see memory.h
  // Called after every pass with its name and a function that prints the IR as it stands.
  std::function<void(std::string_view pass, const std::function<std::string()>& text)> observe;
};

Program lower(Graph graph, const Target& target, const LowerOptions& options);

// The passes in order, as `observe` will name them.
std::vector<std::string_view> pass_names();

}  // namespace sextant
