#include "train/step_totals.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>

#include "base/error.h"
#include "train/counted_part.h"

namespace sextant {

namespace {

// The index in a path of "load.{}.peak"; nothing where the path is another.
std::optional<int> index_in(std::string_view path, std::string_view pattern, size_t at) {
  std::string_view before = pattern.substr(0, at), after = pattern.substr(at + 2);
  if (!path.starts_with(before) || !path.ends_with(after) || path.size() <= before.size() + after.size())
    return std::nullopt;
  std::string_view digits = path.substr(before.size(), path.size() - before.size() - after.size());
  int index = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  return error == std::errc() && end == digits.data() + digits.size() ? std::optional(index) : std::nullopt;
}

std::vector<std::string> paths_of(const Fetch& fetch, const std::vector<Program>& programs) {
  size_t at = fetch.path.find("{}");
  std::set<int> indices;
  for (const Program& program : programs) {
    if (at == std::string_view::npos) {
      if (program.find(fetch.path)) return {std::string(fetch.path)};
      continue;
    }
    for (const Value& value : program.values)
      if (value.kind == ValueKind::fetch)
        if (std::optional<int> index = index_in(value.path, fetch.path, at)) indices.insert(*index);
  }
  std::vector<std::string> paths;
  for (int index : indices)
    paths.push_back(fmt::format("{}{}{}", fetch.path.substr(0, at), index, fetch.path.substr(at + 2)));
  return paths;
}

double largest_of(double a, double b) {
  return std::isnan(a) || b <= a ? a : b;
}

}  // namespace

StepPlaces::StepPlaces(const std::vector<Program>& programs) {
  for (const StepNumber* number : step_numbers())
    if (number->fetch)
      for (std::string& path : paths_of(*number->fetch, programs)) places_.push_back({number, std::move(path)});
}

std::pair<size_t, size_t> StepPlaces::of(const StepNumber& number) const {
  auto is_its = [&](const Place& place) { return place.number == &number; };
  auto first = std::ranges::find_if(places_, is_its);
  auto end = std::find_if_not(first, places_.end(), is_its);
  return {static_cast<size_t>(first - places_.begin()), static_cast<size_t>(end - first)};
}

StepReader::StepReader(const StepPlaces& places, Bound& bound, Terms terms)
    : places_(places), bound_(bound), terms_(terms) {
  const Program& program = bound.program();
  for (size_t place = 0; place < places.all().size(); ++place) {
    const Value* value = program.find(places.all()[place].path);
    const Fetch& fetch = fetch_of(place);
    BUG_IF(fetch.joined_by == JoinedBy::same && !value, "rank {} makes no {}", bound.rank(), places.all()[place].path);
    if (!value || value->buffer < 0) continue;
    if (fetch.joined_by == JoinedBy::sum && !counts_part(program, bound.rank(), *value)) continue;
    if (fetch.handed_out == HandedOut::each_step) {
      at_end_.push_back({place, value});
      continue;
    }
    for (const HostAccess& access : fetches(program))
      if (access.value == value->id) of_microbatch_.push_back({place, access});
  }
}

void StepReader::begin(StepTotals& totals) const {
  totals.values.assign(places_.all().size(), 0.0);
  for (size_t place = 0; place < places_.all().size(); ++place)
    if (fetch_of(place).joined_by == JoinedBy::largest) totals.values[place] = -std::numeric_limits<double>::infinity();
}

void StepReader::after(const Action& action, StepTotals& totals) {
  for (const OfMicrobatch& number : of_microbatch_) {
    if (!number.access.is_at(action)) continue;
    if (totals.open.size() >= StepTotals::kMostOpen) collect(totals);
    totals.open.push_back({number.place, bound_.fetch(bound_.program()[number.access.value])});
  }
}

void StepReader::after_schedule(StepTotals& totals) {
  for (const AtEnd& number : at_end_) totals.open.push_back({number.place, bound_.fetch(*number.value)});
}

void StepReader::collect(StepTotals& totals) {
  for (const StepTotals::Ticket& open : totals.open) {
    const Fetch& fetch = fetch_of(open.place);
    double value = static_cast<double>(bound_.collect(open.ticket));
    double& total = totals.values[open.place];
    if (fetch.joined_by == JoinedBy::largest)
      total = largest_of(total, value);
    else if (fetch.handed_out == HandedOut::each_step)
      total = value;
    else
      total += terms_ == Terms::exact ? exact_term(value) : value;
  }
  totals.open.clear();
}

double exact_term(double loss) {
  constexpr double kQuantum = 0x1p-20;
  return std::rint(loss / kQuantum) * kQuantum;
}

void join_over_ranks(const StepPlaces& places, StepTotals& totals, std::span<double> more, HostGroup& group) {
  std::vector<double> sums, largest;
  for (size_t place = 0; place < places.all().size(); ++place) {
    JoinedBy by = places.all()[place].number->fetch->joined_by;
    double own = totals.values[place];
    if (by == JoinedBy::sum) sums.push_back(own);
    if (by == JoinedBy::leader) sums.push_back(group.leads() ? own : 0);
    if (by == JoinedBy::largest) largest.push_back(own);
  }
  sums.insert(sums.end(), more.begin(), more.end());
  group.sum(sums);
  if (!largest.empty()) group.largest(largest);
  auto next_sum = sums.begin(), next_largest = largest.begin();
  for (size_t place = 0; place < places.all().size(); ++place) {
    JoinedBy by = places.all()[place].number->fetch->joined_by;
    if (by == JoinedBy::sum || by == JoinedBy::leader) totals.values[place] = *next_sum++;
    if (by == JoinedBy::largest) totals.values[place] = *next_largest++;
  }
  std::copy(next_sum, sums.end(), more.begin());
}

void report(const StepPlaces& places, const StepTotals& totals, const StepScales& scales, StepValues& values) {
  for (const StepNumber* number : step_numbers()) {
    if (!number->fetch) continue;
    auto [first, count] = places.of(*number);
    if (count > 0) values.set(*number, number->fetch->report(std::span(totals.values).subspan(first, count), scales));
  }
}

}  // namespace sextant
