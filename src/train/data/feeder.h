// Feeder: gives a bound Program its rank's part of the data. A microbatch is a block of samples over all data-parallel
// ranks; which rows and positions of it a rank reads follows from the layout of the Program's feeds.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "data/sampler.h"
#include "exec/executor.h"
#include "ir/host_access.h"
#include "mesh/placement.h"

namespace sextant {

class Feeder {
 public:
  // Both must outlive the feeder. `end_of_text` ends documents, for a Program that masks them; `seed` is that of the
  // run, for a Program with dropout.
  Feeder(Bound& bound, const BatchSampler& sampler, int32_t end_of_text, uint64_t seed);

  // The samples of a microbatch over all ranks. Those from `end` on are there to fill it up: their targets do not
  // count, and of the others only those at positions from `first_target` up to `end_target`.
  struct Samples {
    int64_t first = 0;
    int64_t end = std::numeric_limits<int64_t>::max();
    int64_t first_target = 0;
    int64_t end_target = std::numeric_limits<int64_t>::max();
  };

  // Writes what the action is the first to read of its microbatch.
  void before(const Action& action, const Samples& samples);

  // Targets of the microbatch that this rank alone accounts for: added up over ranks, each counts once. `depth` is that
  // of multi-token prediction, 0 for the model's own.
  int64_t counted_targets(const Samples& samples, int64_t depth = 0);

  // Of a microbatch, which row this rank's begin with; 0 where it reads none.
  int64_t first_row() const { return feeds_.empty() ? 0 : feeds_.front().rows[0].global; }

 private:
  // Values of a feed for each token.
  enum class Content : uint8_t {
    tokens,        // the one `depth` behind
    targets,       // the one after that; -1 where it does not count
    begins,        // where its document begins
    dropout_keys,  // of each sequence
  };
  struct Feed {
    Content content = Content::tokens;
    const Value* value = nullptr;
    HostAccess access;
    std::vector<Span> rows, positions;  // dropout keys, one per sequence, have no positions
    int64_t depth = 0;                  // of multi-token prediction
  };
  void find_both(Content content, const std::string& path, int64_t depth = 0);
  void find_feed(Content content, std::string_view path, int64_t depth);
  void read_rows(const Feed& feed, const Samples& samples);
  void take_part(const Feed& feed, const std::vector<int32_t>& rows);
  void find_begins(const Feed& feed);
  const std::vector<int32_t>& rows_for(const Feed& feed);  // from what read_rows has read
  void write_dropout_keys(const Feed& feed, int microbatch, const Samples& samples);

  Bound& bound_;
  const BatchSampler& sampler_;
  int32_t end_of_text_;
  uint64_t seed_;
  std::vector<HostAccess> accesses_;
  std::vector<Feed> feeds_;       // that ops of this rank read; in a pipeline of two copies, of both copies' samples
  bool masks_documents_ = false;  // one of them is where documents begin
  std::vector<int32_t> token_rows_, target_rows_, begin_rows_, shifted_rows_;  // whole sequences
  std::vector<int32_t> part_;                                                  // this rank's positions of them
  std::vector<uint64_t> keys_;
};

}  // namespace sextant
