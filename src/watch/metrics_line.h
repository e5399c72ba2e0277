// One line of metrics.jsonl, read without building a tree: files have hundreds of thousands of lines. In: a line. Out:
// its numbers (true and false are 1 and 0) and lists of numbers by name, in which null is NaN; texts, nulls and objects
// are passed over.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace sextant {

class MetricsLine {
 public:
  struct Number {
    std::string_view name;  // of the line that was parsed
    double value = 0;
  };
  struct List {
    std::string_view name;
    size_t first = 0, count = 0;  // of list_values()
  };

  // False where the line is no JSON object, such as one cut off by a crash. Numbers that no double holds count as
  // infinite; fields whose names have escapes are passed over.
  bool parse(std::string_view line);

  const std::vector<Number>& numbers() const { return numbers_; }
  const std::vector<List>& lists() const { return lists_; }
  const std::vector<double>& list_values() const { return list_values_; }
  // The last of that name; nullptr: none.
  const double* number(std::string_view name) const;

 private:
  std::vector<Number> numbers_;
  std::vector<List> lists_;
  std::vector<double> list_values_;
};

}  // namespace sextant
