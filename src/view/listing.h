// A Graph or Program to read: every op with its values below it, as `explain` shows it. ir/print.h has the text that is
// read back by machines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/program.h"

namespace sextant {

// Where a value lies in a rank's memory, once that is planned.
struct ListedPlace {
  std::string_view buffer;  // its class: "saved"
  int64_t offset = 0, bytes = 0;
};

struct ListedValue {
  bool is_output = false;
  ValueId id = kNoValue;
  std::string type;    // "f32[4, 64, 128]", of all ranks together
  std::string layout;  // "tp:S(2)"
  std::string_view kind;
  std::string path;
  std::string local;                 // "[4, 64, 64]"; empty before partition
  std::optional<ListedPlace> place;  // none before memory
};

struct ListedOp {
  int number = 0;      // over all regions; what `waits` of other ops name
  std::string region;  // "forward of chunk 0"; empty in a Graph
  std::string_view name;
  std::string path, attrs;
  std::string_view phase, lane;
  int stage = 0;
  int layer = -1;  // -1: outside the layers
  RunsFor runs_for = RunsFor::every_microbatch;
  std::vector<int32_t> waits;       // numbers of messages that must have ended before
  std::vector<ListedValue> values;  // inputs, then outputs
};

struct ListingFilter {
  std::optional<int> layer;
  const OpDef* kind = nullptr;  // null: all

  bool keeps(const Op& op) const { return (!layer || op.block == *layer) && (!kind || op.def == kind); }
  bool is_set() const { return layer || kind; }
  std::string text() const;  // "layer 3, op linear"
};

std::vector<ListedOp> listed_ops(const Graph& graph, const ListingFilter& filter);
std::vector<ListedOp> listed_ops(const Program& program, const ListingFilter& filter);

// The meaning of the columns of a listing.
std::string_view listing_legend();

// A heading, and the ops that the filter keeps.
std::string listing(const Graph& graph, const ListingFilter& filter);
std::string listing(const Program& program, const ListingFilter& filter);

}  // namespace sextant
