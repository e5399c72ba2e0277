#include "text/json_field.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"

namespace sextant {

JsonField::JsonField(const nlohmann::json& value, std::string_view place, std::string path)
    : value_(&value), place_(place), path_(std::move(path)) {}

bool JsonField::is_null() const {
  return value_->is_null();
}

JsonField JsonField::operator[](std::string_view key) const {
  static const nlohmann::json kNull;
  expect(value_->is_object(), "an object");
  auto found = value_->find(key);
  return {found == value_->end() ? kNull : *found, place_,
          path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key)};
}

std::vector<JsonField> JsonField::items() const {
  expect(value_->is_array(), "an array");
  std::vector<JsonField> out;
  for (size_t i = 0; i < value_->size(); ++i) out.push_back({(*value_)[i], place_, fmt::format("{}[{}]", path_, i)});
  return out;
}

const std::string& JsonField::text() const {
  expect(value_->is_string(), "a string");
  return value_->get_ref<const std::string&>();
}

bool JsonField::flag(bool if_missing) const {
  if (is_null()) return if_missing;
  expect(value_->is_boolean(), "true or false");
  return value_->get<bool>();
}

uint32_t JsonField::id() const {
  expect(value_->is_number_unsigned() && value_->get<uint64_t>() < UINT32_MAX, "a token id");
  return value_->get<uint32_t>();
}

void JsonField::expect(bool right, std::string_view what) const {
  if (!right) refuse(fmt::format("is {}", shortened()), what);
}

void JsonField::refuse(std::string_view got, std::string_view expected, std::string_view hint) const {
  throw UserError({.place = path_.empty() ? std::string(place_) : place(),
                   .got = std::string(got),
                   .expected = std::string(expected),
                   .hint = std::string(hint)});
}

std::string JsonField::place() const {
  return fmt::format("{} {}", place_, path_);
}

std::string JsonField::shortened() const {
  if (value_->is_null()) return "missing";
  if (value_->is_structured()) return fmt::format("an {} of {}", value_->type_name(), value_->size());
  std::string text = value_->dump(-1, ' ', true);
  return text.size() <= 60 ? text : text.substr(0, 60) + "...";
}

}  // namespace sextant
