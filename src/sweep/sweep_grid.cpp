#include "sweep/sweep_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"

namespace sextant {

namespace {

constexpr size_t kMostRuns = 10'000;

struct SweptKey {
  std::string key;
  std::vector<std::string> values;
};

std::vector<std::string> split_outside_brackets(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  char quote = 0;
  for (char c : text) {
    if (quote != 0)
      quote = c == quote ? 0 : quote;
    else if (c == '"' || c == '\'')
      quote = c;
    else
      depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == ',' && depth == 0 && quote == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

SweptKey swept_key(const std::string& pair) {
  size_t equals = pair.find('=');
  if (equals == std::string::npos || equals == 0)
    throw UserError({.place = "sweep", .got = fmt::format("\"{}\"", pair), .expected = "key=value or key=value,value"});
  SweptKey swept{pair.substr(0, equals), split_outside_brackets(pair.substr(equals + 1))};
  for (const std::string& value : swept.values)
    if (value.empty() && swept.values.size() > 1)
      throw UserError({.place = pair, .got = "an empty value", .expected = "a value between any two commas"});
  if (std::set<std::string>(swept.values.begin(), swept.values.end()).size() < swept.values.size())
    throw UserError({.place = pair, .got = "a value stands there twice", .expected = "different values"});
  return swept;
}

// A directory of one name.
std::string as_file_name(std::string text) {
  std::ranges::replace(text, '/', '_');
  return text;
}

}  // namespace

std::vector<SweepRun> sweep_grid(const std::vector<std::string>& given) {
  std::vector<SweptKey> keys;
  size_t runs = 1;
  for (const std::string& pair : given) {
    keys.push_back(swept_key(pair));
    if (std::ranges::count(keys, keys.back().key, &SweptKey::key) > 1)
      throw UserError({.place = keys.back().key, .got = "is given twice", .expected = "one list of values"});
    if (runs *= keys.back().values.size(); runs > kMostRuns)
      throw UserError(
          {.place = "sweep", .got = "the values make too many runs", .expected = fmt::format("at most {}", kMostRuns)});
  }
  if (runs == 1)
    throw UserError({.place = "sweep",
                     .got = "no key has several values",
                     .expected = "such as optimizer.lr=1e-4,3e-4",
                     .hint = "`sextant train` runs a single config"});
  std::vector<SweepRun> grid(1);
  for (const SweptKey& key : keys) {
    std::vector<SweepRun> longer;
    for (const SweepRun& run : grid)
      for (const std::string& value : key.values) {
        SweepRun next = run;
        std::string pair = fmt::format("{}={}", key.key, value);
        if (key.values.size() > 1) next.name += (next.name.empty() ? "" : " ") + as_file_name(pair);
        next.overrides.push_back(std::move(pair));
        longer.push_back(std::move(next));
      }
    grid = std::move(longer);
  }
  return grid;
}

}  // namespace sextant
