// A value of a JSON file and the way to it, so that errors name the place.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

class JsonField {
 public:
  JsonField(const nlohmann::json& value, std::string_view place) : value_(&value), place_(place) {}

  const nlohmann::json& json() const { return *value_; }
  bool is_null() const;

  JsonField operator[](std::string_view key) const;  // a key that is missing reads as null
  std::vector<JsonField> items() const;
  const std::string& text() const;
  bool flag(bool if_missing) const;
  uint32_t id() const;
  std::string type() const { return (*this)["type"].text(); }

  void expect(bool right, std::string_view what) const;
  [[noreturn]] void refuse(std::string_view got, std::string_view expected, std::string_view hint = "") const;
  std::string place() const;

 private:
  JsonField(const nlohmann::json& value, std::string_view place, std::string path);
  std::string shortened() const;

  const nlohmann::json* value_;
  std::string_view place_;
  std::string path_;
};

}  // namespace sextant
