// The further fields of an event, in their order, with values as JSON has them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sextant {

// JSON text of a value without a type of its own in EventValue: an object, a list of numbers, null.
struct EventJson {
  std::string text;
  bool operator==(const EventJson&) const = default;
};

using EventValue = std::variant<bool, int64_t, double, std::string, std::vector<std::string>, EventJson>;

class EventDetails {
 public:
  using Field = std::pair<std::string, EventValue>;

  EventDetails() = default;
  EventDetails(std::initializer_list<Field> fields) : fields_(fields) {}

  void set(std::string name, EventValue value) { fields_.emplace_back(std::move(name), std::move(value)); }
  std::optional<int64_t> integer(std::string_view name) const {
    for (const auto& [own, value] : fields_)
      if (const int64_t* number = std::get_if<int64_t>(&value); number && own == name) return *number;
    return std::nullopt;
  }

  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }
  bool operator==(const EventDetails&) const = default;

 private:
  std::vector<Field> fields_;
};

}  // namespace sextant
