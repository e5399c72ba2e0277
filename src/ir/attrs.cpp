#include "ir/attrs.h"

#include <algorithm>

#include "base/error.h"

namespace sextant {

Attrs::Attrs(std::initializer_list<std::pair<std::string, AttrValue>> entries) {
  for (const auto& [name, value] : entries) set(name, value);
}

void Attrs::set(std::string_view name, AttrValue value) {
  auto at = std::lower_bound(entries_.begin(), entries_.end(), name, [](const auto& e, auto n) { return e.first < n; });
  if (at != entries_.end() && at->first == name)
    at->second = std::move(value);
  else
    entries_.emplace(at, std::string(name), std::move(value));
}

const AttrValue* Attrs::find(std::string_view name) const {
  for (const auto& [key, value] : entries_)
    if (key == name) return &value;
  return nullptr;
}

int64_t Attrs::integer(std::string_view name) const {
  const AttrValue* value = find(name);
  BUG_IF(!value || !std::holds_alternative<int64_t>(*value), "no integer attr '{}'", name);
  return std::get<int64_t>(*value);
}

double Attrs::real(std::string_view name) const {
  const AttrValue* value = find(name);
  bool number = value && (std::holds_alternative<double>(*value) || std::holds_alternative<int64_t>(*value));
  BUG_IF(!number, "no number attr '{}'", name);
  return std::holds_alternative<double>(*value) ? std::get<double>(*value)
                                                : static_cast<double>(std::get<int64_t>(*value));
}

int64_t Attrs::integer_or(std::string_view name, int64_t otherwise) const {
  return has(name) ? integer(name) : otherwise;
}

std::string Attrs::text_or(std::string_view name, std::string_view otherwise) const {
  const AttrValue* value = find(name);
  return value ? std::get<std::string>(*value) : std::string(otherwise);
}

const std::vector<int64_t>& Attrs::integers(std::string_view name) const {
  const AttrValue* value = find(name);
  BUG_IF(!value || !std::holds_alternative<std::vector<int64_t>>(*value), "no list of integers '{}'", name);
  return std::get<std::vector<int64_t>>(*value);
}

double Attrs::real_or(std::string_view name, double otherwise) const {
  return has(name) ? real(name) : otherwise;
}

const std::vector<double>& Attrs::reals(std::string_view name) const {
  const AttrValue* value = find(name);
  BUG_IF(!value || !std::holds_alternative<std::vector<double>>(*value), "no list of numbers '{}'", name);
  return std::get<std::vector<double>>(*value);
}

const std::vector<std::string>& Attrs::names(std::string_view name) const {
  static const std::vector<std::string> none;
  const AttrValue* value = find(name);
  BUG_IF(value && !std::holds_alternative<std::vector<std::string>>(*value), "attr '{}' is not a list of names", name);
  return value ? std::get<std::vector<std::string>>(*value) : none;
}

}  // namespace sextant
