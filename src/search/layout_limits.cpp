#include "search/layout_limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <functional>

#include "base/error.h"
#include "schedule/schedules.h"

namespace sextant {

namespace {

struct LimitKey {
  std::string_view name;
  std::function<std::string(const LayoutChoice&)> value;
  std::vector<std::string_view> words = {};  // empty: a whole number
};

std::vector<std::string_view> searched_schedules() {
  std::vector<std::string_view> words;
  for (const ScheduleDef& def : kSchedules)
    if (def.is_searched) words.push_back(def.name);
  return words;
}

std::vector<std::string_view> searched_recompute_modes() {
  std::vector<std::string_view> words;
  for (const RecomputeChoice& mode : kRecomputeModes)
    if (mode.is_searched) words.push_back(mode.word);
  return words;
}

std::vector<LimitKey> make_limit_keys() {
  std::vector<LimitKey> keys;
  for (const MeshAxis& axis : kMeshAxes)
    keys.push_back({axis.name(), [&axis](const LayoutChoice& c) { return std::to_string(axis.size_in(c.mesh)); }});
  std::vector<LimitKey> others{
      {"ep", [](const LayoutChoice& c) { return std::to_string(c.mesh.ep); }},
      {"etp", [](const LayoutChoice& c) { return std::to_string(c.mesh.etp > 0 ? c.mesh.etp : c.mesh.tp); }},
      {"zero", [](const LayoutChoice& c) { return std::to_string(c.mesh.zero); }},
      {"zero_ranks", [](const LayoutChoice& c) { return std::to_string(c.mesh.zero_ranks); }},
      {"chunks", [](const LayoutChoice& c) { return std::to_string(c.chunks); }},
      {"microbatch", [](const LayoutChoice& c) { return std::to_string(c.microbatch); }},
      // Without tensor parallelism there is no sequence to share: both words hold.
      {"sequence_parallel",
       [](const LayoutChoice& c) -> std::string {
         if (c.mesh.tp == 1) return "";
         return c.mesh.sequence_parallel ? "true" : "false";
       },
       {"true", "false"}},
      {"schedule",
       [](const LayoutChoice& c) {
         const bool counts = c.mesh.pp > 1 || find_schedule(c.schedule)->one_rank;
         return counts ? std::string(word_of(c.schedule)) : std::string();
       },
       searched_schedules()},
      {"recompute", [](const LayoutChoice& c) { return std::string(word_of(c.recompute)); },
       searched_recompute_modes()},
  };
  keys.insert(keys.end(), others.begin(), others.end());
  return keys;
}

const std::vector<LimitKey>& limit_keys() {
  static const std::vector<LimitKey> keys = make_limit_keys();
  return keys;
}

const LimitKey* key_named(std::string_view name) {
  auto found = std::ranges::find(limit_keys(), name, &LimitKey::name);
  return found == limit_keys().end() ? nullptr : &*found;
}

bool is_value_of(const LimitKey& key, const std::string& text) {
  if (!key.words.empty()) return std::ranges::count(key.words, text) > 0;
  int64_t number = -1;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && number >= 0;
}

}  // namespace

LayoutLimits::LayoutLimits(const std::vector<std::string>& texts, std::string_view place) {
  for (const std::string& text : texts) {
    size_t equals = text.find('=');
    const LimitKey* key = key_named(std::string_view(text).substr(0, equals));
    if (!key || equals == text.npos) {
      std::vector<std::string_view> names;
      for (const LimitKey& each : limit_keys()) names.push_back(each.name);
      throw UserError({.place = std::string(place),
                       .got = fmt::format("'{}'", text),
                       .expected = fmt::format("KEY=VALUE[,VALUE…] with one of {}", fmt::join(names, ", "))});
    }
    for (size_t begin = equals + 1; begin <= text.size();) {
      size_t end = std::min(text.find(',', begin), text.size());
      std::string value = text.substr(begin, end - begin);
      if (!is_value_of(*key, value))
        throw UserError({.place = std::string(place),
                         .got = fmt::format("'{}' in '{}'", value, text),
                         .expected = key->words.empty() ? std::string("whole numbers")
                                                        : fmt::format("some of {}", fmt::join(key->words, ", "))});
      only_[std::string(key->name)].push_back(std::move(value));
      begin = end + 1;
    }
  }
}

bool LayoutLimits::allow(const LayoutChoice& choice) const {
  return std::ranges::all_of(only_, [&](const auto& limit) {
    std::string value = key_named(limit.first)->value(choice);
    return value.empty() || std::ranges::count(limit.second, value) > 0;
  });
}

std::optional<int64_t> LayoutLimits::most(std::string_view key) const {
  auto found = only_.find(key);
  if (found == only_.end()) return std::nullopt;
  int64_t most = 0;
  for (const std::string& value : found->second) most = std::max<int64_t>(most, std::atoll(value.c_str()));
  return most;
}

std::string LayoutLimits::text() const {
  std::string all;
  for (const auto& [key, values] : only_)
    all += fmt::format("{}{}={}", all.empty() ? "" : " ", key, fmt::join(values, ","));
  return all;
}

}  // namespace sextant
