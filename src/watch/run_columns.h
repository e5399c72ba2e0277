// The metrics of one run as columns of floats: a row per step, a column per numeric field, found in the file rather
// than listed here. Lists (one number per layer with experts) are kept as pictures of bounded size.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "watch/chunked_array.h"
#include "watch/metrics_line.h"

namespace sextant {

// Quantity on the horizontal axis. `seconds` is the sum of `step_s`: time spent in steps. `flops` is the sum of
// `model_flops`: of each run by its own model.
enum class XAxis : uint8_t { step, tokens, seconds, flops };
struct NamedAxis {
  std::string_view name;
  XAxis axis;
};
inline constexpr std::array<NamedAxis, 4> kXAxes{
    {{"step", XAxis::step}, {"tokens", XAxis::tokens}, {"seconds", XAxis::seconds}, {"flops", XAxis::flops}}};
std::optional<XAxis> x_axis_named(std::string_view name);
std::string x_axis_names();  // with commas between them

// One field. While almost every row has it, values stand row by row, NaN where there is none; a field of few rows, such
// as a validation loss, keeps the rows it has.
class MetricColumn {
 public:
  explicit MetricColumn(std::string name, size_t first_row) : name_(std::move(name)), first_row_(first_row) {}

  const std::string& name() const { return name_; }
  size_t size() const { return values_.size(); }
  size_t row(size_t i) const { return sparse_ ? rows_[i] : first_row_ + i; }
  float value(size_t i) const { return values_[i]; }
  bool is_sparse() const { return sparse_; }   // most rows have no value
  size_t first_at_or_after(size_t row) const;  // an index; size() where there is none

  void set(size_t row, float value);  // row: the last one set, or a later one
  void truncate(size_t rows);         // those and all later ones go
  size_t bytes() const { return values_.bytes() + rows_.bytes(); }

 private:
  void become_sparse();

  std::string name_;
  size_t first_row_ = 0, filled_ = 0;  // filled_: NaNs of rows without the field
  bool sparse_ = false;
  ChunkedArray<uint32_t> rows_;
  ChunkedArray<float> values_;
};

// A field that is a list. At most 2 * kListRows rows are kept: beyond that, neighbours are merged into their mean. It
// is as wide as the widest of its rows: a run that goes on with other ranks has lists of another length. NaN: no value.
class ListColumn {
 public:
  static constexpr size_t kListRows = 512;
  ListColumn(std::string name, size_t width) : name_(std::move(name)), width_(width) {}

  const std::string& name() const { return name_; }
  size_t width() const { return width_; }
  size_t size() const { return rows_.size(); }
  size_t row(size_t i) const { return rows_[i]; }  // the first of those merged
  // The row at which it no longer tells how the run is: the next one, or sooner where lists came more often before.
  size_t until_row(size_t i) const;
  float value(size_t i, size_t element) const { return values_[i * width_ + element]; }

  void add(size_t row, std::span<const double> values);
  void truncate(size_t rows);
  size_t bytes() const { return rows_.capacity() * sizeof(uint32_t) + values_.capacity() * sizeof(float); }

 private:
  void widen(size_t width);
  void merge_neighbours();

  std::string name_;
  size_t width_ = 0, each_ = 1, in_last_ = 0;  // rows merged into one, and how many of them the last one has
  std::vector<uint32_t> rows_;
  std::vector<float> values_;
};

class RunColumns {
 public:
  // False where the line is no line of metrics. A step that is not above the last one takes the place of it and of all
  // that follow: the run went back.
  enum class Lines : uint8_t { all, some };  // some: lines are left out, and the time of their steps is estimated
  bool add_line(std::string_view line, Lines lines = Lines::all);

  size_t rows() const { return steps_.size(); }
  // Runs of other programs, and of ours before lines had FLOPs, do not have that axis.
  bool has_axis(XAxis axis) const { return rows() > 0 && (axis != XAxis::flops || flops_.size() > 0); }
  double x(XAxis axis, size_t row) const;
  size_t first_row_at_or_after(XAxis axis, double x) const;
  // The row of a step, or of the first one after it; rows() where there is none.
  size_t row_of_step(int64_t step) const { return first_row_at_or_after(XAxis::step, static_cast<double>(step)); }

  const std::vector<MetricColumn>& columns() const { return columns_; }
  const std::vector<ListColumn>& lists() const { return lists_; }
  const MetricColumn* column(std::string_view name) const;
  const ListColumn* list(std::string_view name) const;
  // The last value of a field; nothing where it has none.
  std::optional<float> last(std::string_view name) const;
  size_t bytes() const;

 private:
  void truncate(size_t rows);
  void add_flops(const double* flops, double steps);  // of the row that was added last
  MetricColumn* column_for(std::string_view name, size_t hint);
  ListColumn* list_for(std::string_view name, size_t width);

  MetricsLine line_;  // reused
  ChunkedArray<double> steps_, tokens_, seconds_;
  ChunkedArray<double> flops_;  // empty until a line has them
  std::vector<MetricColumn> columns_;
  std::vector<ListColumn> lists_;
};

}  // namespace sextant
