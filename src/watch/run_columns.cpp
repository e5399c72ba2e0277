#include "watch/run_columns.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sextant {

namespace {

// Of fields that nobody knows: a file that is none of ours must not fill the memory.
constexpr size_t kMostColumns = 256, kMostLists = 32, kWidestList = 1024, kLongestName = 80;

// Fields that are axes, and no curves.
constexpr std::array<std::string_view, 3> kAxisFields{"step", "tokens", "model_flops"};

// Lists of the first step after each start or resume hold until the next one.
constexpr std::array<std::string_view, 1> kListsThatLast{"arena_bytes_by_rank"};

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

// A double that no float holds is drawn at the largest float.
float as_float(double value) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -kLargest, kLargest));
}

// The place on an axis of sums behind `before`. What cannot be added up leaves it where it is: beyond this, neighbours
// would have the same place, and sums of a run that goes on for ages stay far below it.
double advanced(double before, const double* by, double times) {
  constexpr double kFarthest = 1e300;
  if (!by || !(*by > 0)) return before;
  double sum = before + times * *by;
  return sum < kFarthest ? sum : before;
}

// Between means of so many values each; what is not there counts for nothing.
float weighted_mean(float a, double weight_a, float b, double weight_b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  return as_float((a * weight_a + b * weight_b) / (weight_a + weight_b));
}

}  // namespace

std::optional<XAxis> x_axis_named(std::string_view name) {
  auto found = std::ranges::find(kXAxes, name, &NamedAxis::name);
  return found == kXAxes.end() ? std::nullopt : std::optional(found->axis);
}

std::string x_axis_names() {
  std::string names;
  for (const NamedAxis& one : kXAxes) names += (names.empty() ? "" : ", ") + std::string(one.name);
  return names;
}

size_t MetricColumn::first_at_or_after(size_t wanted) const {
  if (!sparse_) return wanted <= first_row_ ? 0 : std::min(wanted - first_row_, size());
  size_t low = 0, high = size();
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (rows_[middle] < wanted)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void MetricColumn::set(size_t wanted, float value) {
  if (size() > 0 && row(size() - 1) == wanted) {
    values_.at(size() - 1) = value;
    return;
  }
  if (!sparse_) {
    size_t gap = wanted - first_row_ - size();
    if (2 * (filled_ + gap) > size() + gap + 8) become_sparse();
    for (size_t i = 0; i < gap && !sparse_; ++i, ++filled_) values_.push_back(kNone);
  }
  if (sparse_) rows_.push_back(static_cast<uint32_t>(wanted));
  values_.push_back(value);
}

void MetricColumn::become_sparse() {
  ChunkedArray<float> kept;
  for (size_t i = 0; i < size(); ++i) {
    if (std::isnan(values_[i])) continue;
    rows_.push_back(static_cast<uint32_t>(first_row_ + i));
    kept.push_back(values_[i]);
  }
  values_ = std::move(kept);
  sparse_ = true;
}

void MetricColumn::truncate(size_t rows) {
  size_t size = first_at_or_after(rows);
  values_.truncate(size);
  if (sparse_) rows_.truncate(size);
  filled_ = std::min(filled_, size);
  if (size == 0) first_row_ = std::min(first_row_, rows);
}

void ListColumn::add(size_t row, std::span<const double> values) {
  if (values.size() > width_) widen(values.size());
  auto value_at = [&](size_t e) { return e < values.size() ? as_float(values[e]) : kNone; };
  if (in_last_ > 0 && in_last_ < each_) {
    float* last = values_.data() + (size() - 1) * width_;
    for (size_t e = 0; e < width_; ++e) last[e] = weighted_mean(last[e], static_cast<double>(in_last_), value_at(e), 1);
    ++in_last_;
    return;
  }
  if (size() == 2 * kListRows) merge_neighbours();
  rows_.push_back(static_cast<uint32_t>(row));
  for (size_t e = 0; e < width_; ++e) values_.push_back(value_at(e));
  in_last_ = 1;
}

void ListColumn::widen(size_t width) {
  std::vector<float> values;
  values.reserve(size() * width);
  for (size_t i = 0; i < size(); ++i)
    for (size_t e = 0; e < width; ++e) values.push_back(e < width_ ? value(i, e) : kNone);
  values_ = std::move(values);
  width_ = width;
}

void ListColumn::merge_neighbours() {
  for (size_t i = 0; i < kListRows; ++i) {
    rows_[i] = rows_[2 * i];
    for (size_t e = 0; e < width_; ++e)
      values_[i * width_ + e] = weighted_mean(value(2 * i, e), 1, value(2 * i + 1, e), 1);
  }
  rows_.resize(kListRows);
  values_.resize(kListRows * width_);
  each_ *= 2;
}

size_t ListColumn::until_row(size_t i) const {
  constexpr size_t kEnd = std::numeric_limits<size_t>::max();
  size_t next = i + 1 < size() ? row(i + 1) : kEnd;
  if (std::ranges::count(kListsThatLast, name_) > 0) return next;
  // The usual way from one list to the next; of those around it, as a run may measure more often after a while.
  constexpr size_t kAround = 8;
  std::vector<size_t> gaps;
  for (size_t k = i > kAround ? i - kAround : 0; k < std::min(i + kAround, size() - 1); ++k)
    gaps.push_back(row(k + 1) - row(k));
  if (gaps.empty()) return next;  // one alone has no usual way
  auto middle = gaps.begin() + static_cast<std::ptrdiff_t>((gaps.size() - 1) / 2);
  std::ranges::nth_element(gaps, middle);
  return next == kEnd || next - row(i) > 2 * *middle ? row(i) + *middle : next;
}

void ListColumn::truncate(size_t rows) {
  // Merged rows cannot be separated: the last entry kept may include rows that are removed.
  size_t kept = static_cast<size_t>(std::ranges::lower_bound(rows_, rows) - rows_.begin());
  if (kept == size()) return;
  rows_.resize(kept);
  values_.resize(kept * width_);
  in_last_ = each_;
}

bool RunColumns::add_line(std::string_view text, Lines lines) {
  if (!line_.parse(text)) return false;
  const double* step = line_.number("step");
  if (!step || !(*step >= 0 && *step < 9e15) || *step != std::floor(*step)) return false;
  if (rows() > 0 && *step <= steps_.back()) truncate(row_of_step(static_cast<int64_t>(*step)));
  size_t row = rows();
  if (row == std::numeric_limits<uint32_t>::max()) return false;
  const double* tokens = line_.number("tokens");
  const double* seconds = line_.number("step_s");
  double tokens_before = row > 0 ? tokens_.back() : 0, seconds_before = row > 0 ? seconds_.back() : 0;
  double steps = lines == Lines::some ? *step - (row > 0 ? steps_.back() : 0) : 1;  // that the line stands for
  steps_.push_back(*step);
  tokens_.push_back(tokens && *tokens >= tokens_before && std::isfinite(*tokens) ? *tokens : tokens_before);
  seconds_.push_back(advanced(seconds_before, seconds, steps));
  add_flops(line_.number("model_flops"), steps);
  size_t hint = 0;
  for (const MetricsLine::Number& number : line_.numbers()) {
    if (std::ranges::count(kAxisFields, number.name) > 0 || !std::isfinite(number.value)) continue;
    if (MetricColumn* column = column_for(number.name, hint++)) column->set(row, as_float(number.value));
  }
  for (const MetricsLine::List& list : line_.lists())
    if (ListColumn* column = list_for(list.name, list.count))
      column->add(row, std::span(line_.list_values()).subspan(list.first, list.count));
  return true;
}

void RunColumns::add_flops(const double* flops, double steps) {
  bool known = flops && *flops > 0 && std::isfinite(*flops);
  if (!known && flops_.size() == 0) return;
  while (flops_.size() + 1 < rows()) flops_.push_back(0);  // lines before the first that has them
  flops_.push_back(advanced(flops_.size() > 0 ? flops_.back() : 0, known ? flops : nullptr, steps));
}

MetricColumn* RunColumns::column_for(std::string_view name, size_t hint) {
  // Lines have their fields in the same order.
  if (hint < columns_.size() && columns_[hint].name() == name) return &columns_[hint];
  auto found = std::ranges::find(columns_, name, &MetricColumn::name);
  if (found != columns_.end()) return &*found;
  if (columns_.size() == kMostColumns || name.empty() || name.size() > kLongestName) return nullptr;
  return &columns_.emplace_back(std::string(name), rows() - 1);
}

ListColumn* RunColumns::list_for(std::string_view name, size_t width) {
  auto found = std::ranges::find(lists_, name, &ListColumn::name);
  if (width == 0 || width > kWidestList) return nullptr;
  if (found != lists_.end()) return &*found;
  if (lists_.size() == kMostLists || name.empty() || name.size() > kLongestName) return nullptr;
  return &lists_.emplace_back(std::string(name), width);
}

double RunColumns::x(XAxis axis, size_t row) const {
  switch (axis) {
    case XAxis::step:
      return steps_[row];
    case XAxis::tokens:
      return tokens_[row];
    case XAxis::seconds:
      return seconds_[row];
    case XAxis::flops:
      return row < flops_.size() ? flops_[row] : 0;
  }
  return 0;
}

size_t RunColumns::first_row_at_or_after(XAxis axis, double wanted) const {
  size_t low = 0, high = rows();
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (x(axis, middle) < wanted)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

const MetricColumn* RunColumns::column(std::string_view name) const {
  auto found = std::ranges::find(columns_, name, &MetricColumn::name);
  return found == columns_.end() ? nullptr : &*found;
}

const ListColumn* RunColumns::list(std::string_view name) const {
  auto found = std::ranges::find(lists_, name, &ListColumn::name);
  return found == lists_.end() ? nullptr : &*found;
}

std::optional<float> RunColumns::last(std::string_view name) const {
  const MetricColumn* found = column(name);
  if (!found) return std::nullopt;
  for (size_t i = found->size(); i-- > 0;)
    if (!std::isnan(found->value(i))) return found->value(i);
  return std::nullopt;
}

size_t RunColumns::bytes() const {
  size_t sum = steps_.bytes() + tokens_.bytes() + seconds_.bytes() + flops_.bytes();
  for (const MetricColumn& column : columns_) sum += column.bytes();
  for (const ListColumn& list : lists_) sum += list.bytes();
  return sum;
}

void RunColumns::truncate(size_t rows) {
  steps_.truncate(rows);
  tokens_.truncate(rows);
  seconds_.truncate(rows);
  flops_.truncate(std::min(rows, flops_.size()));
  for (MetricColumn& column : columns_) column.truncate(rows);
  for (ListColumn& list : lists_) list.truncate(rows);
}

}  // namespace sextant
