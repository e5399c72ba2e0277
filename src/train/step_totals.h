// The numbers that the Programs of a step hand out (Fetch of step_number.h), from their fetches to one value for all
// microbatches and ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/host_group.h"
#include "exec/executor.h"
#include "ir/host_access.h"
#include "train/step_number.h"

namespace sextant {

// All values that the Programs of a run hand out, in the same places on every rank.
class StepPlaces {
 public:
  struct Place {
    const StepNumber* number = nullptr;
    std::string path;
  };

  StepPlaces() = default;
  explicit StepPlaces(const std::vector<Program>& programs);  // of all pipeline ranks

  const std::vector<Place>& all() const { return places_; }
  // The first place of a number, and how many it has: none where no Program hands it out.
  std::pair<size_t, size_t> of(const StepNumber& number) const;
  template <class T>
  bool has(const TypedStepNumber<T>& number) const {
    return of(number.number).second > 0;
  }

 private:
  std::vector<Place> places_;
};

// Values of one step that is under way, by place.
struct StepTotals {
  // Losses of a step that may be open at once.
  static constexpr size_t kMostOpen = 256;

  struct Ticket {
    size_t place = 0;
    int64_t ticket = 0;
  };
  std::vector<double> values;
  std::vector<Ticket> open;
};

// Reads what one Program hands out.
class StepReader {
 public:
  // How a value of a microbatch enters a sum.
  enum class Terms : uint8_t {
    as_they_are,
    // Multiples of 2^-20: f64 adds up to 2^33 of these without rounding, so the sum does not depend on its order.
    exact,
  };
  // Both must outlive this.
  StepReader(const StepPlaces& places, Bound& bound, Terms terms);

  void begin(StepTotals& totals) const;
  void after(const Action& action, StepTotals& totals);  // each action of the schedule
  void after_schedule(StepTotals& totals);
  // Waits for what is open.
  void collect(StepTotals& totals);

  size_t fetches_at_end() const { return at_end_.size(); }

 private:
  struct OfMicrobatch {
    size_t place = 0;
    HostAccess access;
  };
  struct AtEnd {
    size_t place = 0;
    const Value* value = nullptr;
  };
  const Fetch& fetch_of(size_t place) const { return *places_.all()[place].number->fetch; }

  const StepPlaces& places_;
  Bound& bound_;
  Terms terms_;
  std::vector<OfMicrobatch> of_microbatch_;
  std::vector<AtEnd> at_end_;
};

// A term of StepReader::Terms::exact.
double exact_term(double loss);

// Joins the values of all ranks, and in the same message adds up `more` over them.
void join_over_ranks(const StepPlaces& places, StepTotals& totals, std::span<double> more, HostGroup& group);

// Before they are joined: of a number that all ranks make alike, its value; nothing where no Program hands it out.
template <class T>
std::optional<double> own_value(const StepPlaces& places, const StepTotals& totals, const TypedStepNumber<T>& number) {
  auto [first, count] = places.of(number.number);
  return count > 0 ? std::optional(totals.values[first]) : std::nullopt;
}

// The reports of all numbers, joined.
void report(const StepPlaces& places, const StepTotals& totals, const StepScales& scales, StepValues& values);

}  // namespace sextant
