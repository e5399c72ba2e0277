// StepNumber: one number of a step, declared once in step_numbers.def. The declaration gives how Programs hand it out
// and how its parts are joined over microbatches and ranks (step_totals.h), its field in metrics.jsonl (metrics.h), its
// row in docs/metrics.md, its column and label in `watch`, its Prometheus metric (sextant_NAME) and its TensorBoard tag
// (NAME). Code sets and reads it by a typed handle: metrics[number::grad_norm].
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sextant {

// std::monostate: the line has the field, and its value is not known (JSON null).
using StepValue = std::variant<std::monostate, bool, int64_t, double, std::vector<int64_t>, std::vector<double>>;

struct StepMetrics;
struct StepNumber;

enum class HandedOut : uint8_t {
  each_microbatch,  // read when the unit that makes it has run: the next microbatch may overwrite it
  each_step,        // read at the end of the schedule
};

// How the parts of a number become one, over microbatches and over ranks.
enum class JoinedBy : uint8_t {
  sum,      // over the ranks that have parts of their own (counted_part.h)
  largest,  // over all ranks
  leader,   // all ranks use the value of rank 0: theirs may differ in the last bits
  same,     // all ranks make the same value
};

// By which joined values become what is reported.
struct StepScales {
  double batch_tokens = 0;
  double microbatch_share = 0;               // of the batch, over all ranks
  std::span<const double> mtp_targets = {};  // of the batch, by depth of multi-token prediction
};

// The report of a number that is joined: from one value, or from one for each index of the path.
using Report = StepValue (*)(std::span<const double> joined, const StepScales& scales);

// A fetch of the Programs of training.
struct Fetch {
  std::string_view path;  // "{}" in it: an index, such as a layer's; the number has a value for each that Programs have
  HandedOut handed_out = HandedOut::each_step;
  JoinedBy joined_by = JoinedBy::sum;
  Report report = nullptr;
};

// The value that a line of metrics.jsonl has, where it is not the number itself; nothing: the line has no such field.
using Shown = std::optional<StepValue> (*)(const StepNumber& number, const StepMetrics& metrics);

struct StepNumber {
  std::string_view name;
  // A number without `about` is no field of metrics.jsonl.
  std::string_view unit = {}, when = {}, about = {};
  std::string_view label = {};                // for people; empty: the name
  std::optional<Fetch> fetch = std::nullopt;  // nothing: the host measures it
  Shown shown = nullptr;
};

// A StepNumber with the type of its values.
template <class T>
struct TypedStepNumber {
  StepNumber number;
};

// Values of numbers, for one step.
class StepValues {
 public:
  // T{} where it has no value.
  template <class T>
  T operator[](const TypedStepNumber<T>& of) const {
    return find(of).value_or(T{});
  }
  template <class T>
  std::optional<T> find(const TypedStepNumber<T>& of) const {
    const StepValue* value = find(of.number);
    const T* typed = value ? std::get_if<T>(value) : nullptr;
    return typed ? std::optional<T>(*typed) : std::nullopt;
  }
  template <class T>
  void set(const TypedStepNumber<T>& of, T value) {
    set(of.number, StepValue(std::in_place_type<T>, std::move(value)));
  }
  template <class T>
  void set_if(const TypedStepNumber<T>& of, const std::optional<T>& value) {
    if (value) set(of, *value);
  }
  template <class T>
  void set_unknown(const TypedStepNumber<T>& of) {
    set(of.number, std::monostate());
  }

  const StepValue* find(const StepNumber& number) const;
  void set(const StepNumber& number, StepValue value);

 private:
  std::vector<std::pair<const StepNumber*, StepValue>> values_;
};

// All declared numbers, in the order of the fields of a line.
std::vector<const StepNumber*> step_numbers();
const StepNumber* find_step_number(std::string_view name);  // null: there is none

// Adds a number to the declared ones while it lives; for programs that embed Sextant, and for tests. `number` must
// outlive it. Not while a run is under way.
class AddedStepNumber {
 public:
  explicit AddedStepNumber(const StepNumber& number);
  ~AddedStepNumber();
  AddedStepNumber(const AddedStepNumber&) = delete;
  AddedStepNumber& operator=(const AddedStepNumber&) = delete;

 private:
  const StepNumber* number_;
};

}  // namespace sextant
