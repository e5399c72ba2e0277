// Hops: the redistribute ops that bring a value from the layout it has into another, one op per transfer.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "mesh/redistribution.h"

namespace sextant {

// The ops in order; the last one's output has the layout `to`. Empty when the value has it already.
std::vector<Op> make_hops(Graph& graph, ValueId from, const Layout& to, const std::string& path);

// Whether an op is a hop by this transfer.
bool is_hop(const Op& op, Transfer transfer);

// Writes the transfer and the axes that a redistribute op's layouts call for into its attrs.
void label_hop(const Graph& graph, Op& op);

}  // namespace sextant
