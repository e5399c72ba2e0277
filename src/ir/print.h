// Graphs and Programs as text, one line per value and op. parse.h reads it back to an equal Graph or Program.
//
//   graph tiny-llama
//   mesh pp=1 dp=1 cp=1 tp=1
//   value %0 parameter f32[512, 64] I normal(0.02) embed.weight
//   op %7 = linear(%5, %6) {} forward 0 0 layers.0.attn.qkv      (phase, stage, block, path)
//
// A Program adds buffers, regions and the schedule, and to each value its local shape and buffer.
#pragma once

#include <cstdint>
#include <string>

#include "ir/graph.h"
#include "ir/program.h"

namespace sextant {

std::string print(const Graph& graph);
std::string print(const Program& program);

// The text between the braces of an op: "head_dim=16, heads=4".
std::string attrs_text(const Attrs& attrs);

// 64 bits that change when anything in the text does: two ranks with equal hashes run the same program.
uint64_t hash_of(const Program& program);

}  // namespace sextant
