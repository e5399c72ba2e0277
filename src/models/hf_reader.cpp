#include "models/hf_reader.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace sextant {

using nlohmann::json;

std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.size() <= 60 ? text : fmt::format("{} of {} entries", value.type_name(), value.size());
}

bool HfReader::has_entries(std::string_view key) const {
  const json* value = find(key);
  return value && !(value->is_object() && value->empty());
}

bool HfReader::has_integer(std::string_view key) const {
  const json* value = find(key);
  return value && value->is_number_integer();
}

bool HfReader::names(std::string_view key) const {
  return object_.find(key) != object_.end();
}

int64_t HfReader::integer(std::string_view key) {
  if (has(key)) return integer(key, 0);
  complain(key, "is missing", "an integer");
  return 0;
}

int64_t HfReader::integer(std::string_view key, int64_t otherwise) {
  const json* value = find(key);
  return value ? to_integer(key, *value) : otherwise;
}

double HfReader::number(std::string_view key, double otherwise) {
  const json* value = find(key);
  if (!value) return otherwise;
  if (value->is_number()) return value->get<double>();
  complain(key, fmt::format("got {}", shown(*value)), "a number");
  return otherwise;
}

bool HfReader::flag(std::string_view key, bool otherwise) {
  const json* value = find(key);
  if (!value) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  complain(key, fmt::format("got {}", shown(*value)), "true or false");
  return otherwise;
}

std::string HfReader::text(std::string_view key, std::string otherwise) {
  const json* value = find(key);
  if (!value) return otherwise;
  if (value->is_string()) return value->get<std::string>();
  complain(key, fmt::format("got {}", shown(*value)), "a string");
  return otherwise;
}

std::vector<int64_t> HfReader::integers(std::string_view key) {
  const json* value = find(key);
  if (!value) return {};
  if (!value->is_array()) return {to_integer(key, *value)};
  std::vector<int64_t> out;
  for (const json& item : *value) out.push_back(to_integer(key, item));
  return out;
}

std::vector<double> HfReader::numbers(std::string_view key) {
  std::vector<double> list;
  const json* value = find(key);
  if (!value) return list;
  if (!value->is_array()) {
    complain(key, fmt::format("got {}", shown(*value)), "a list of numbers");
    return list;
  }
  for (const json& entry : *value) {
    if (!entry.is_number()) {
      complain(key, fmt::format("got {} in the list", shown(entry)), "numbers");
      return {};
    }
    list.push_back(entry.get<double>());
  }
  return list;
}

std::vector<std::string> HfReader::texts(std::string_view key) {
  std::vector<std::string> list;
  const json* value = find(key);
  if (!value) return list;
  bool strings =
      value->is_array() && std::all_of(value->begin(), value->end(), [](const json& e) { return e.is_string(); });
  if (!strings) {
    complain(key, fmt::format("got {}", shown(*value)), "a list of strings");
    return list;
  }
  for (const json& entry : *value) list.push_back(entry.get<std::string>());
  return list;
}

const json& HfReader::object(std::string_view key) {
  static const json kEmpty = json::object();
  const json* value = find(key);
  if (!value) return kEmpty;
  if (value->is_object()) return *value;
  complain(key, fmt::format("got {}", shown(*value)), "an object");
  return kEmpty;
}

void HfReader::only_values() {
  for (const auto& [key, value] : object_.items())
    if (value.is_object()) complain(key, "is not supported", "a number or a string");
}

void HfReader::only(std::string_view key, bool supported) {
  if (flag(key, supported) != supported)
    complain(key, fmt::format("{} is not supported", !supported), fmt::format("{}", supported));
}

void HfReader::only_one_of(std::string_view key, const std::string& otherwise,
                           std::initializer_list<std::string_view> known) {
  std::string got = text(key, otherwise);
  for (std::string_view word : known)
    if (got == word) return;
  complain(key, fmt::format("{} is not supported", shown(json(got))), fmt::format("{}", fmt::join(known, " or ")));
}

void HfReader::complain(std::string_view key, std::string got, std::string expected) {
  complaints_.push_back(
      {.place = fmt::format("{} {}", place_, key), .got = std::move(got), .expected = std::move(expected)});
}

void HfReader::take_complaints_of(const HfReader& other) {
  complaints_.insert(complaints_.end(), other.complaints_.begin(), other.complaints_.end());
}

double number_of_two(HfReader& first, std::string_view first_key, HfReader& second, std::string_view second_key,
                     double otherwise) {
  if (!first.has(first_key)) return second.number(second_key, otherwise);
  double value = first.number(first_key, otherwise), other = second.number(second_key, value);
  if (other != value)
    second.complain(second_key, fmt::format("{}, but {} {} is {}", other, first.place(), first_key, value),
                    "the same value for both names");
  return value;
}

int64_t HfReader::to_integer(std::string_view key, const json& value) {
  // Bounded here so that arithmetic on sizes cannot overflow; problems_of knows the real limits.
  constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();
  if (value.is_number_integer() && value.get<int64_t>() >= 0 && value.get<int64_t>() <= kLimit)
    return value.get<int64_t>();
  complain(key, fmt::format("got {}", shown(value)), fmt::format("an integer from 0 to {}", kLimit));
  return 0;
}

const json* HfReader::find(std::string_view key) const {
  auto at = object_.find(key);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

}  // namespace sextant
