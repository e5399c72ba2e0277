#include "train/data/feeder.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "exec/dropout_mask.h"
#include "ir/mtp_paths.h"

namespace sextant {

Feeder::Feeder(Bound& bound, const BatchSampler& sampler, int32_t end_of_text, uint64_t seed)
    : bound_(bound),
      sampler_(sampler),
      end_of_text_(end_of_text),
      seed_(seed),
      accesses_(microbatch_feeds(bound.program())) {
  find_both(Content::tokens, "tokens");
  find_both(Content::targets, "targets");
  find_both(Content::begins, "begins");
  find_both(Content::dropout_keys, "dropout_keys");
  for (int64_t depth = 1; bound.program().find(mtp_paths(depth).loss); ++depth) {
    find_both(Content::tokens, mtp_paths(depth).tokens, depth);
    find_both(Content::targets, mtp_paths(depth).targets, depth);
  }
  for (const Feed& feed : feeds_) {
    if (feed.content == Content::dropout_keys) {
      keys_.resize(static_cast<size_t>(feed.value->local.count()));
      continue;
    }
    BUG_IF(feed.rows.size() != 1, "{}: a rank's rows are {} pieces", feed.value->path, feed.rows.size());
    size_t whole = static_cast<size_t>(feed.rows[0].count * feed.value->shape[1]);
    for (std::vector<int32_t>* rows : {&token_rows_, &target_rows_, &begin_rows_, &shifted_rows_}) rows->resize(whole);
    part_.resize(static_cast<size_t>(feed.value->local.count()));
    masks_documents_ = masks_documents_ || feed.content == Content::begins;
  }
}

// In a pipeline of two copies there is one for each.
void Feeder::find_both(Content content, const std::string& path, int64_t depth) {
  find_feed(content, path, depth);
  find_feed(content, crossed_path(path), depth);
}

void Feeder::find_feed(Content content, std::string_view path, int64_t depth) {
  const Program& program = bound_.program();
  const Value* value = program.find(path);
  if (!value) return;
  auto access = std::ranges::find(accesses_, value->id, &HostAccess::value);
  if (access == accesses_.end()) return;
  Coordinate at = coordinate_of_data(program, access->chunk, coordinate_of(program.mesh, bound_.rank()));
  Feed feed{content, value, *access, held(value->shape[0], value->layout, 0, program.mesh, at), {}, depth};
  if (value->shape.rank() > 1) feed.positions = held(value->shape[1], value->layout, 1, program.mesh, at);
  feeds_.push_back(std::move(feed));
}

void Feeder::read_rows(const Feed& feed, const Samples& samples) {
  int64_t first = samples.first + feed.rows[0].global, seq = feed.value->shape[1];
  sampler_.fill(first, feed.rows[0].count, token_rows_, target_rows_);
  int64_t counted = std::clamp<int64_t>(samples.end - first, 0, feed.rows[0].count);
  std::fill(target_rows_.begin() + counted * seq, target_rows_.end(), -1);
  int64_t begin = std::min(samples.first_target, seq), end = std::clamp(samples.end_target, begin, seq);
  if (begin == 0 && end == seq) return;
  for (auto row = target_rows_.begin(); row != target_rows_.end(); row += seq) {
    std::fill(row, row + begin, -1);
    std::fill(row + end, row + seq, -1);
  }
}

void Feeder::take_part(const Feed& feed, const std::vector<int32_t>& rows) {
  int64_t seq = feed.value->shape[1], width = feed.value->local[1];
  for (int64_t row = 0; row < feed.rows[0].count; ++row)
    for (const Span& span : feed.positions)
      for (int64_t i = 0; i < span.count; ++i)
        part_[static_cast<size_t>(row * width + span.local + i)] =
            rows[static_cast<size_t>(row * seq + span.global_at(i))];
}

// A token that ends a document is its last one.
void Feeder::find_begins(const Feed& feed) {
  int64_t seq = feed.value->shape[1];
  for (int64_t row = 0; row < feed.rows[0].count; ++row) {
    int32_t begin = 0;
    for (int64_t i = 0; i < seq; ++i) {
      begin_rows_[static_cast<size_t>(row * seq + i)] = begin;
      if (token_rows_[static_cast<size_t>(row * seq + i)] == end_of_text_) begin = static_cast<int32_t>(i + 1);
    }
  }
}

const std::vector<int32_t>& Feeder::rows_for(const Feed& feed) {
  if (feed.content == Content::begins || (masks_documents_ && feed.depth > 0)) find_begins(feed);
  if (feed.content == Content::begins) return begin_rows_;
  if (feed.depth == 0) return feed.content == Content::tokens ? token_rows_ : target_rows_;
  int64_t seq = feed.value->shape[1], depth = feed.depth;
  for (int64_t row = 0; row < feed.rows[0].count; ++row) {
    auto at = [&](const std::vector<int32_t>& rows, int64_t i) { return rows[static_cast<size_t>(row * seq + i)]; };
    for (int64_t i = 0; i < seq; ++i) {
      int32_t& shifted = shifted_rows_[static_cast<size_t>(row * seq + i)];
      if (feed.content == Content::tokens) {
        // Behind the last token of a sequence its target is known too, and then nothing: none of these counts.
        shifted = i + depth < seq ? at(token_rows_, i + depth) : i + depth == seq ? at(target_rows_, seq - 1) : 0;
        shifted = std::max(shifted, 0);
      } else {
        // Where the token that is looked at is the last of its document or sequence, its target counts as the model's
        // own does.
        bool counts = i + depth < seq && (!masks_documents_ || at(begin_rows_, i + depth) <= i);
        shifted = counts ? at(target_rows_, i + depth) : -1;
      }
    }
  }
  return shifted_rows_;
}

void Feeder::write_dropout_keys(const Feed& feed, int microbatch, const Samples& samples) {
  for (const Span& span : feed.rows)
    for (int64_t i = 0; i < span.count; ++i)
      keys_[static_cast<size_t>(span.local + i)] = dropout_key(seed_, samples.first + span.global + i);
  bound_.write(*feed.value, std::as_bytes(std::span(keys_)), 0, microbatch);
}

void Feeder::before(const Action& action, const Samples& samples) {
  for (const Feed& feed : feeds_) {
    if (!feed.access.is_at(action)) continue;
    if (feed.content == Content::dropout_keys) {
      write_dropout_keys(feed, action.microbatch, samples);
      continue;
    }
    read_rows(feed, samples);
    take_part(feed, rows_for(feed));
    bound_.write(*feed.value, std::as_bytes(std::span(part_)), 0, action.microbatch);
  }
}

int64_t Feeder::counted_targets(const Samples& samples, int64_t depth) {
  auto targets = std::find_if(feeds_.begin(), feeds_.end(), [&](const Feed& feed) {
    return feed.content == Content::targets && feed.depth == depth;
  });
  if (targets == feeds_.end()) return 0;
  const Mesh& mesh = bound_.program().mesh;
  Coordinate at = coordinate_of(mesh, bound_.rank());
  for (int axis = 0; axis < mesh.axis_count(); ++axis) {
    bool same_elsewhere =
        targets->value->layout.at(axis).kind != StateKind::sharded && mesh.role(axis) != AxisRole::pipeline;
    if (same_elsewhere && at[static_cast<size_t>(axis)] != 0) return 0;
  }
  read_rows(*targets, samples);
  take_part(*targets, rows_for(*targets));
  return std::count_if(part_.begin(), part_.end(), [](int32_t t) { return t >= 0; });
}

}  // namespace sextant
