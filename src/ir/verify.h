// Invariants of a Graph and a Program, checked after every pass. A violation is a BUG that names the pass.
#pragma once

#include <cstdint>
#include <string_view>

#include "ir/graph.h"
#include "ir/program.h"

namespace sextant {

enum class Stage : uint8_t {
  built,        // types agree with the definitions, values are made before use and once
  inferred,     // and each op's layouts are one of its rows
  partitioned,  // every value has its local shape
  planned,  // every value has a buffer that holds it; everything lies inside its space's arena, and only copies cross
  final,    // what runs: a dry run of the schedule finds every value where it is read (verify_memory.h)
};

void verify(const Graph& graph, Stage stage, std::string_view after);
void verify(const Program& program, Stage stage, std::string_view after);

}  // namespace sextant
