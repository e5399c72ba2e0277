#include "cost/toml_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace sextant {

namespace {

// Says what the place may hold, and fills it when the value is such.
struct Filler {
  const TomlValue& value;

  bool fill(const NumberPlace& place) const {
    std::optional<double> number = number_of(value);
    if (!number || !(*number >= place.allowed.least && *number <= place.allowed.most)) return false;
    *place.to = *number * place.times / place.over;
    return true;
  }
  bool fill(const CountPlace& place) const {
    auto count = std::get_if<int64_t>(&value.is);
    if (!count || *count < place.least || *count > place.most) return false;
    *place.to = *count;
    return true;
  }
  bool fill(const CountsPlace& place) const {
    auto list = std::get_if<TomlValue::List>(&value.is);
    std::vector<int64_t> counts;
    for (size_t i = 0; list && i < list->size(); ++i) {
      auto count = std::get_if<int64_t>(&(*list)[i].is);
      if (!count || *count < place.least || *count > place.most) return false;
      counts.push_back(*count);
    }
    if (counts.empty()) return false;
    *place.to = std::move(counts);
    return true;
  }
  bool fill(const FlagPlace& place) const {
    auto flag = std::get_if<bool>(&value.is);
    if (flag) *place.to = *flag;
    return flag;
  }
  bool fill(const TextPlace& place) const {
    auto text = std::get_if<std::string>(&value.is);
    if (text) *place.to = *text;
    return text;
  }
  bool fill(const TextsPlace& place) const {
    auto list = std::get_if<TomlValue::List>(&value.is);
    if (!list) return false;
    std::vector<std::string> texts;
    for (const TomlValue& item : *list) {
      auto text = std::get_if<std::string>(&item.is);
      if (!text) return false;
      texts.push_back(*text);
    }
    *place.to = std::move(texts);
    return true;
  }
  bool fill(const WordPlace& place) const {
    auto text = std::get_if<std::string>(&value.is);
    auto found = text ? std::find(place.words.begin(), place.words.end(), *text) : place.words.end();
    if (found == place.words.end()) return false;
    *place.to = static_cast<size_t>(found - place.words.begin());
    return true;
  }
};

struct Expected {
  std::string operator()(const NumberPlace& place) const {
    return fmt::format("a number from {} to {}", place.allowed.least, place.allowed.most);
  }
  std::string operator()(const CountPlace& place) const {
    return fmt::format("a whole number from {} to {}", place.least, place.most);
  }
  std::string operator()(const CountsPlace& place) const {
    return fmt::format("a list of whole numbers from {} to {}", place.least, place.most);
  }
  std::string operator()(const FlagPlace&) const { return "true or false"; }
  std::string operator()(const TextPlace&) const { return "a string"; }
  std::string operator()(const TextsPlace&) const { return "a list of strings"; }
  std::string operator()(const WordPlace& place) const {
    return fmt::format("one of {}", fmt::join(place.words, ", "));
  }
};

struct Written {
  std::string operator()(const NumberPlace& place) const { return number_text(*place.to, place.times, place.over); }
  std::string operator()(const CountPlace& place) const { return fmt::format("{}", *place.to); }
  std::string operator()(const CountsPlace& place) const { return fmt::format("[{}]", fmt::join(*place.to, ", ")); }
  std::string operator()(const FlagPlace& place) const { return *place.to ? "true" : "false"; }
  std::string operator()(const TextPlace& place) const { return toml_quoted(*place.to); }
  std::string operator()(const TextsPlace& place) const {
    std::vector<std::string> quoted;
    for (const std::string& text : *place.to) quoted.push_back(toml_quoted(text));
    return fmt::format("[{}]", fmt::join(quoted, ", "));
  }
  std::string operator()(const WordPlace& place) const { return toml_quoted(place.words.at(*place.to)); }
};

}  // namespace

void FieldReader::read(const TomlEntry& entry, std::string_view key, std::span<const Field> fields,
                       std::string_view table) {
  auto field = std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.key == key; });
  if (field == fields.end()) {
    std::vector<std::string_view> known;
    for (const Field& f : fields) known.push_back(f.key);
    std::string where = table.empty() ? "the top of the file" : fmt::format("[{}]", table);
    return complain(entry,
                    {.got = "is not a known key", .hint = fmt::format("{} has {}", where, fmt::join(known, ", "))});
  }
  bool filled = std::visit([&](const auto& place) { return Filler{entry.value}.fill(place); }, field->is);
  if (!filled) complain(entry, {.got = "got " + shown(entry.value), .expected = std::visit(Expected{}, field->is)});
}

void FieldReader::complain(const TomlEntry& entry, Complaint complaint) {
  complaint.place = fmt::format("{}:{}:{} {}", file_, entry.line, entry.column, entry.key);
  complaints_.push_back(std::move(complaint));
}

void FieldReader::throw_if_any() const {
  if (!complaints_.empty()) throw UserError(complaints_);
}

std::string fields_text(std::span<const Field> fields) {
  std::string out;
  for (const Field& field : fields) out += fmt::format("{} = {}\n", field.key, std::visit(Written{}, field.is));
  return out;
}

std::pair<std::string_view, std::string_view> table_and_key(std::string_view dotted) {
  size_t dot = dotted.rfind('.');
  if (dot == dotted.npos) return {"", dotted};
  return {dotted.substr(0, dot), dotted.substr(dot + 1)};
}

std::optional<double> number_of(const TomlValue& value) {
  if (auto number = std::get_if<double>(&value.is)) return *number;
  if (auto count = std::get_if<int64_t>(&value.is)) return static_cast<double>(*count);
  return std::nullopt;
}

std::string number_text(double value, double times, double over) {
  constexpr double kUp = std::numeric_limits<double>::infinity();
  double plain = value / times * over;
  for (double near : {plain, std::nextafter(plain, kUp), std::nextafter(plain, -kUp)}) {
    for (int digits = 1; digits <= 17; ++digits) {
      std::string text = fmt::format("{:.{}g}", near, digits);
      // In the order in which it is read.
      if (std::strtod(text.c_str(), nullptr) * times / over == value) return text;
    }
  }
  return fmt::format("{}", plain);
}

}  // namespace sextant
