// HfReader: takes values out of one JSON object of a config.json and collects what is wrong with them. An absent key
// and null mean the same, unless one asks.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sextant {

// A value as a message shows it: whole when it is short.
std::string shown(const nlohmann::json& value);

class HfReader {
 public:
  HfReader(const nlohmann::json& object, std::string place) : object_(object), place_(std::move(place)) {}

  bool has(std::string_view key) const { return find(key) != nullptr; }
  bool has_entries(std::string_view key) const;  // not where it is an empty object
  bool names(std::string_view key) const;        // also where it is null
  bool has_integer(std::string_view key) const;

  int64_t integer(std::string_view key);  // a complaint where it is missing
  int64_t integer(std::string_view key, int64_t otherwise);
  double number(std::string_view key, double otherwise);
  bool flag(std::string_view key, bool otherwise);
  std::string text(std::string_view key, std::string otherwise);
  std::vector<int64_t> integers(std::string_view key);  // also of a single one
  std::vector<double> numbers(std::string_view key);    // empty where it is missing
  std::vector<std::string> texts(std::string_view key);
  const nlohmann::json& object(std::string_view key);  // the object under `key`, or an empty one

  void only_values();  // a complaint about every object inside

  // Features that change the mathematics in a way our models do not know.
  void only(std::string_view key, bool supported);
  void only_one_of(std::string_view key, const std::string& otherwise, std::initializer_list<std::string_view> known);

  void complain(std::string_view key, std::string got, std::string expected);
  void take_complaints_of(const HfReader& other);
  const std::vector<Complaint>& complaints() const { return complaints_; }
  const std::string& place() const { return place_; }

 private:
  int64_t to_integer(std::string_view key, const nlohmann::json& value);
  const nlohmann::json* find(std::string_view key) const;

  const nlohmann::json& object_;
  std::string place_;
  std::vector<Complaint> complaints_;
};

// A number that two objects may give, the first of them by preference; a complaint where they differ.
double number_of_two(HfReader& first, std::string_view first_key, HfReader& second, std::string_view second_key,
                     double otherwise);

}  // namespace sextant
