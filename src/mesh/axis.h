// The axes of a mesh as one table: what the ranks along an axis have of their own, and what follows from that. Passes,
// executors and reports ask an axis for its role and flags, and nobody compares names; docs/extend/axis.md tells how to
// add one.
#pragma once

#include <cstdint>
#include <string_view>

namespace sextant {

// The work that differs between the ranks along an axis. Several axes may have one role: they then share its work.
enum class AxisRole : uint8_t {
  data,      // other sequences: feeds are split along the batch
  context,   // other positions of the same sequences
  tensor,    // other parts of every GEMM
  pipeline,  // other layers: no op has layout rows for it, and no tensor is split along it
};

// How a layer's experts are distributed along an axis. Experts have a layout of their own over the ranks of a stage
// (parallel folding): a mesh has an axis for each part of dp, cp and tp that experts treat alike.
enum class ExpertRole : uint8_t {
  data,    // the same experts, for other tokens
  expert,  // other experts
  tensor,  // other parts of the same experts
};

struct AxisDef {
  std::string_view name;  // in configs, layouts and reports: lower-case letters, digits and '_'
  AxisRole role = AxisRole::data;
  ExpertRole experts = ExpertRole::data;
  bool zero_shards = false;  // ZeRO shards over it what its ranks would hold alike
  bool norm_parts = false;   // its ranks hold other weights, so the gradient norm is a sum over it that no layout shows
  // Its two ranks hold the same pipeline stages, for microbatches that pass through them in opposite directions. They
  // are ranks of the pipeline that a config asks for (Mesh::with_pipeline_copies).
  bool pipeline_copies = false;
  bool only_if_split = false;     // absent from meshes where it has one rank
  std::string_view meaning = {};  // in a sentence, for docs and messages
};

// The axes that a config can ask for, in mesh order: the last is the fastest, whose ranks are nearest to each other.
inline constexpr AxisDef kAxes[] = {
    {.name = "pp",
     .role = AxisRole::pipeline,
     .norm_parts = true,
     .meaning = "Pipeline stages: each holds some of the layers."},
    {.name = "pp_copy",
     .role = AxisRole::data,
     .zero_shards = true,
     .pipeline_copies = true,
     .only_if_split = true,
     .meaning = "Pipeline ranks that hold the same stages, for microbatches in opposite directions (DualPipe)."},
    {.name = "dp_out",
     .role = AxisRole::data,
     .only_if_split = true,
     .meaning = "Data-parallel replicas of the ranks that share ZeRO's shards (HSDP)."},
    {.name = "dp",
     .role = AxisRole::data,
     .zero_shards = true,
     .meaning = "Data-parallel ranks: each takes its share of the sequences."},
    {.name = "dp_ep",
     .role = AxisRole::data,
     .experts = ExpertRole::expert,
     .zero_shards = true,
     .only_if_split = true,
     .meaning = "Data-parallel ranks among which experts are divided."},
    {.name = "cp",
     .role = AxisRole::context,
     .zero_shards = true,
     .meaning = "Context-parallel ranks: each holds a part of every sequence."},
    {.name = "cp_ep",
     .role = AxisRole::context,
     .experts = ExpertRole::expert,
     .zero_shards = true,
     .only_if_split = true,
     .meaning = "Context-parallel ranks among which experts are divided."},
    {.name = "tp_edp",
     .role = AxisRole::tensor,
     .experts = ExpertRole::data,
     .only_if_split = true,
     .meaning = "Tensor-parallel ranks that hold the same experts, each for a part of the tokens."},
    {.name = "tp_ep",
     .role = AxisRole::tensor,
     .experts = ExpertRole::expert,
     .only_if_split = true,
     .meaning = "Tensor-parallel ranks among which experts are divided."},
    {.name = "tp",
     .role = AxisRole::tensor,
     .experts = ExpertRole::tensor,
     .meaning = "Tensor-parallel ranks: each holds a part of every matrix, those of experts too."},
};

constexpr const AxisDef* find_axis(std::string_view name) {  // null when there is none
  for (const AxisDef& axis : kAxes)
    if (axis.name == name) return &axis;
  return nullptr;
}

// Whether ranks along such an axis use the same weights on other data: gradients of weights are summed over it.
constexpr bool differs_in_data(AxisRole role) {
  return role == AxisRole::data || role == AxisRole::context;
}

}  // namespace sextant
