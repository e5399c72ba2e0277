// The inverse of print.h. UserError with the line number when the text is not one of ours.
#pragma once

#include <functional>
#include <string_view>

#include "ir/graph.h"
#include "ir/program.h"

namespace sextant {

// Definitions are looked up by name, since ir/ does not know which ops exist.
using OpLookup = std::function<const OpDef*(std::string_view name)>;
using AxisLookup = std::function<const AxisDef*(std::string_view name)>;

Graph parse_graph(std::string_view text, const OpLookup& ops, const AxisLookup& axes = find_axis);
Program parse_program(std::string_view text, const OpLookup& ops, const AxisLookup& axes = find_axis);

}  // namespace sextant
