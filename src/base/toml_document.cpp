#include "base/toml_document.h"

// Deeper lists and inline tables are refused, so that neither the parser nor we recurse without bound.
#define TOML_MAX_NESTED_VALUES 16
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "base/error.h"
#include "base/toml_guard.h"

namespace sextant {

namespace {

bool is_bare(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; });
}

std::string date_text(const auto& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

TomlValue convert(const toml::node& node) {
  if (auto flag = node.as_boolean()) return {flag->get()};
  if (auto integer = node.as_integer()) return {integer->get()};
  if (auto number = node.as_floating_point()) return {number->get()};
  if (auto text = node.as_string()) return {text->get()};
  if (auto date = node.as_date()) return {TomlValue::Date{date_text(date->get())}};
  if (auto time = node.as_time()) return {TomlValue::Date{date_text(time->get())}};
  if (auto both = node.as_date_time()) return {TomlValue::Date{date_text(both->get())}};
  if (auto array = node.as_array()) {
    TomlValue::List list;
    for (const toml::node& item : *array) list.push_back(convert(item));
    return {std::move(list)};
  }
  return {TomlValue::Table{}};
}

void flatten(const toml::table& table, const std::string& prefix, std::vector<TomlEntry>& entries) {
  for (const auto& [key, node] : table) {
    std::string name = prefix + (is_bare(key.str()) ? std::string(key.str()) : toml_quoted(key.str()));
    const toml::source_position at = key.source().begin;
    entries.push_back({name, convert(node), static_cast<int>(at.line), static_cast<int>(at.column)});
    if (const toml::table* inner = node.as_table()) flatten(*inner, name + ".", entries);
  }
}

// "Error while parsing key-value pair: cannot redefine existing integer 'heads' as string" speaks of the parser;
// people want to hear of their file.
Complaint complaint_of(const toml::parse_error& error, std::string_view place) {
  std::string_view what = error.description();
  const toml::source_position at = error.source().begin;
  Complaint complaint{.place = fmt::format("{}:{}:{}", place, at.line, at.column)};
  if (what.find("cannot redefine existing") != what.npos) {
    size_t open = what.find('\''), close = what.find('\'', open + 1);
    bool named = open != what.npos && close != what.npos;
    complaint.got =
        named ? fmt::format("{} is given twice", what.substr(open + 1, close - open - 1)) : "a key is given twice";
    complaint.expected = "each key and each table once";
    return complaint;
  }
  if (size_t colon = what.find(": "); what.starts_with("Error while parsing") && colon != what.npos)
    what.remove_prefix(colon + 2);
  complaint.got = fmt::format("not valid TOML: {}", what);
  return complaint;
}

}  // namespace

std::vector<TomlEntry> parse_toml(std::string_view text, std::string_view place) {
  guard_toml(text, place);
  std::vector<TomlEntry> entries;
  try {
    flatten(toml::parse(text, place), "", entries);
  } catch (const toml::parse_error& error) {
    throw UserError(complaint_of(error, place));
  }
  // toml++ sorts tables by key; people read top down. A table stands before what is in it.
  std::stable_sort(entries.begin(), entries.end(), [](const TomlEntry& a, const TomlEntry& b) {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
  return entries;
}

std::string toml_quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\u{:04X}", c);
    else
      out += c;
  }
  return out + '"';
}

std::string shown(const TomlValue& value) {
  struct Visitor {
    std::string operator()(const TomlValue::Table&) const { return "a table"; }
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(int64_t integer) const { return fmt::format("{}", integer); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(const std::string& text) const {
      return text.size() <= 80 ? toml_quoted(text) : fmt::format("a string of {} bytes", text.size());
    }
    std::string operator()(const TomlValue::List& list) const {
      return list.empty() ? "an empty list" : fmt::format("a list of {}", list.size());
    }
    std::string operator()(const TomlValue::Date& date) const { return fmt::format("the date {}", date.text); }
  };
  return std::visit(Visitor{}, value.is);
}

}  // namespace sextant
