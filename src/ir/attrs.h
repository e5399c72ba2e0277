// Attrs: the constants of an op (heads, eps, …), by name. They never change between steps: what does is a feed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sextant {

using AttrValue =
    std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>, std::vector<std::string>>;

class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string, AttrValue>> entries);

  void set(std::string_view name, AttrValue value);  // kept sorted by name, so equal attrs print alike
  bool has(std::string_view name) const { return find(name) != nullptr; }
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;  // an integer is read as a real
  int64_t integer_or(std::string_view name, int64_t otherwise) const;
  std::string text_or(std::string_view name, std::string_view otherwise) const;
  const std::vector<int64_t>& integers(std::string_view name) const;
  double real_or(std::string_view name, double otherwise) const;
  const std::vector<double>& reals(std::string_view name) const;
  const std::vector<std::string>& names(std::string_view name) const;  // empty where there is none

  const std::vector<std::pair<std::string, AttrValue>>& entries() const { return entries_; }
  bool operator==(const Attrs&) const = default;

 private:
  const AttrValue* find(std::string_view name) const;
  std::vector<std::pair<std::string, AttrValue>> entries_;
};

}  // namespace sextant
