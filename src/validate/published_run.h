// PublishedRun: one measured training configuration of a table such as published_runs.csv: what ran where, and how
// fast.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/mesh_axes.h"

namespace sextant {

enum class Grade : uint8_t { a, a_minus, b, c, unknown };

struct PublishedRun {
  std::string file;  // by its name alone
  int line = 0;
  std::string source, model, arch, gpu, recompute, seq_parallel, precision, schedule, how_known;
  std::string shared_experts, dispatcher, balance;  // of models with experts, in the words of the source
  std::optional<int64_t> layers, hidden, heads, kv_heads, ffn, vocab, seq, gpus, gpus_per_node;
  std::array<std::optional<int64_t>, kMeshAxes.size()> sizes = {};  // of the axes, in the order of kMeshAxes
  std::optional<int64_t> ep, etp, chunks, zero, batch, microbatch;
  std::optional<int64_t> experts, experts_per_token;
  std::optional<double> iter_s, tokens_per_s_per_gpu, tflops_per_gpu, memory_gb, params_b;
  bool out_of_memory = false;
  std::string unreadable;  // the first cell that should be a number and is none: "vpp 'max'"
  Grade grade = Grade::unknown;

  std::optional<int64_t> size(int64_t MeshSection::*axis) const;
  // The sizes as the row has them, 1 where it says nothing; nullopt where it leaves out an axis that is always told.
  std::optional<MeshSection> mesh() const;

  // From the step time, or from tokens per second.
  std::optional<double> measured_seconds() const;
  // A clock was read: the time was not made from a utilisation, with a count of FLOPs that its source does not state.
  bool timed() const;
  bool dense() const;        // no experts, no state-space layers
  bool has_experts() const;  // and no state-space layers
  // Dense, graded A, with shape, layout and batch given: what predictions are judged on.
  bool judged() const;
  // With experts, graded A, with shape, layout and batch given and a speed: what those of experts are judged on.
  bool judged_experts() const;
};

// UserError for what is no CSV, or has no such columns; a cell that cannot be read is reported in its row.
std::vector<PublishedRun> parse_published_runs(std::string_view text, std::string_view place);

// Stands for the tables that come with the program (data/published), wherever a file of published runs may be named.
inline constexpr std::string_view kPublishedRuns = "published";

// The rows of one file, or of all that come with the program.
std::vector<PublishedRun> read_published_runs(const std::string& file);

std::string_view name_of(Grade grade);

}  // namespace sextant
