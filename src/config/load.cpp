#include "config/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>

#include "base/files.h"
#include "base/nearest.h"
#include "base/program_folder.h"
#include "base/toml_document.h"
#include "config/check.h"
#include "config/complaints.h"
#include "config/foreign_names.h"
#include "config/schema.h"
#include "config/stored_config.h"
#include "optim/optimizer.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kCommandLine = "command line";

std::optional<ConfigValue> to_list(const TomlValue& value) {
  if (auto text = std::get_if<std::string>(&value.is))
    return text->empty() ? std::vector<std::string>{} : std::vector<std::string>{*text};
  auto list = std::get_if<TomlValue::List>(&value.is);
  if (!list) return std::nullopt;
  std::vector<std::string> out;
  for (const TomlValue& item : *list) {
    auto text = std::get_if<std::string>(&item.is);
    if (!text) return std::nullopt;
    out.push_back(*text);
  }
  return out;
}

bool are_words_of(const Key& key, const std::vector<std::string>& list) {
  std::vector<std::string_view> words = words_of(key);
  return words.empty() ||
         std::ranges::all_of(list, [&](const std::string& item) { return std::ranges::count(words, item) > 0; });
}

std::optional<ConfigValue> to_integer(const TomlValue& value) {
  if (auto integer = std::get_if<int64_t>(&value.is)) return *integer;
  // 2e5 is a float to TOML and a whole number to people.
  constexpr double kExact = 9007199254740992;  // 2^53: above it a double does not know its units
  auto number = std::get_if<double>(&value.is);
  if (!number || !(std::abs(*number) <= kExact) || *number != std::floor(*number)) return std::nullopt;
  return static_cast<int64_t>(*number);
}

std::optional<ConfigValue> to_number(const TomlValue& value) {
  if (auto number = std::get_if<double>(&value.is)) return *number;
  if (auto integer = std::get_if<int64_t>(&value.is)) return static_cast<double>(*integer);
  return std::nullopt;
}

std::optional<ConfigValue> to_numbers(const TomlValue& value, const Range& range) {
  auto list = std::get_if<TomlValue::List>(&value.is);
  if (!list) return std::nullopt;
  std::vector<double> out;
  for (const TomlValue& item : *list) {
    std::optional<ConfigValue> number = to_number(item);
    if (!number || !range.contains(std::get<double>(*number))) return std::nullopt;
    out.push_back(std::get<double>(*number));
  }
  return out;
}

// The value when the key allows it.
std::optional<ConfigValue> allowed_value(const Key& key, const TomlValue& given) {
  switch (key.kind) {
    case Kind::flag:
      if (auto flag = std::get_if<bool>(&given.is)) return *flag;
      return std::nullopt;
    case Kind::list: {
      std::optional<ConfigValue> list = to_list(given);
      return list && are_words_of(key, std::get<std::vector<std::string>>(*list)) ? list : std::nullopt;
    }
    case Kind::numbers:
      return to_numbers(given, key.range);
    case Kind::integer: {
      std::optional<ConfigValue> value = to_integer(given);
      bool fits = value && key.range.contains(static_cast<double>(std::get<int64_t>(*value)));
      return fits ? value : std::nullopt;
    }
    case Kind::number: {
      std::optional<ConfigValue> value = to_number(given);
      return value && key.range.contains(std::get<double>(*value)) ? value : std::nullopt;
    }
    case Kind::text:
      break;
  }
  auto text = std::get_if<std::string>(&given.is);
  if (!text) return std::nullopt;
  std::vector<std::string_view> words = words_of(key);
  bool known = words.empty() || std::ranges::count(words, *text) > 0;
  return known ? std::optional<ConfigValue>(*text) : std::nullopt;
}

std::string hint_for_value(const Key& key, const TomlValue& given) {
  auto text = std::get_if<std::string>(&given.is);
  if (!text || key.choices.empty()) return "";
  // Values of other programs that no letters lead from to ours.
  struct OtherWord {
    std::string_view key, theirs, ours;
  };
  constexpr std::array kOtherWords{OtherWord{"device", "gpu", "cuda"},
                                   OtherWord{"train.precision", "float16", "fp16"},
                                   OtherWord{"train.precision", "half", "fp16"},
                                   OtherWord{"train.precision", "bfloat16", "bf16"},
                                   OtherWord{"train.precision", "float32", "f32"},
                                   OtherWord{"train.precision", "fp32", "f32"},
                                   OtherWord{"train.precision", "amp", "bf16"},
                                   OtherWord{"train.recompute", "true", "full"},
                                   OtherWord{"train.recompute", "false", "none"}};
  for (const OtherWord& word : kOtherWords)
    if (word.key == key.name && word.theirs == *text) return fmt::format("did you mean {}?", word.ours);
  return did_you_mean(*text, words_of(key));
}

// A key of earlier versions, and what has taken its place.
std::optional<std::string_view> successor_of(std::string_view name) {
  if (name == "train.eval_batches")
    return "train.eval_sequences has taken its place: it counts sequences, where eval_batches counted microbatches of "
           "batch.microbatch "
           "sequences each";
  return std::nullopt;
}

std::vector<std::string_view> section_names() {
  std::vector<std::string_view> names;
  for (const Section& section : sections())
    if (!section.name.empty()) names.push_back(section.name);
  return names;
}

std::string all_sections() {
  return fmt::format("known sections: {}; docs/glossary.md has our keys by the names of other programs",
                     fmt::join(section_names(), ", "));
}

std::string hint_for_key(std::string_view name) {
  if (auto successor = successor_of(name)) return std::string(*successor);
  std::string ours = answer_for_foreign_name(name);
  if (!ours.empty()) return ours;
  std::string_view section = section_of(name);
  std::vector<std::string_view> all, beside;
  for (const Key& key : schema()) {
    all.push_back(key.name);
    if (section_of(key.name) == section) beside.push_back(key.name.substr(section.empty() ? 0 : section.size() + 1));
  }
  std::string hint = did_you_mean(name, all);
  if (hint.empty()) hint = answer_for_foreign_name(name, ForeignMatch::last_part);
  if (!hint.empty() || beside.empty()) return hint;
  if (section.empty()) return fmt::format("keys are in sections, such as train.steps; {}", all_sections());
  return fmt::format("[{}] has {}", section, fmt::join(beside, ", "));
}

std::string hint_for_section(std::string_view name) {
  const std::vector<std::string_view> names = section_names();
  auto meant = nearest(name, names);
  return meant ? fmt::format("did you mean [{}]?", *meant) : all_sections();
}

bool is_foreign_name(std::string_view name) {
  if (!answer_for_foreign_name(name).empty()) return true;
  std::string_view section = name.substr(0, name.find('.'));
  bool own = section == name || is_section(section) || hint_for_section(section).starts_with("did you mean");
  return !own && !answer_for_foreign_name(name, ForeignMatch::last_part).empty();
}

std::string trimmed(const std::string& text) {
  size_t begin = text.find_first_not_of(' ');
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

// Applies entries to a config, one after the other.
class Loader {
 public:
  Loader(RunConfig& run, Complaints& complaints) : run_(run), complaints_(complaints) {}

  void read_file(std::string_view toml, std::string_view source) {
    for (const TomlEntry& entry : parse_toml(toml, source))
      apply(entry, fmt::format("{}:{}:{} {}", source, entry.line, entry.column, entry.key));
  }

  void read_override(const std::string& text) {
    std::string place = fmt::format("{}: {}", kCommandLine, text);
    size_t equals = text.find('=');
    if (equals == text.npos) {
      complaints_.add({.place = place, .got = "has no '='", .expected = "key=value"});
      return;
    }
    for (const TomlEntry& entry : entries_of_override(text, equals)) apply(entry, place);
  }

 private:
  // An override is a line of TOML, except that strings need no quotes.
  std::vector<TomlEntry> entries_of_override(const std::string& text, size_t equals) {
    std::string name = trimmed(text.substr(0, equals)), raw = trimmed(text.substr(equals + 1));
    const Key* key = find_key(name);
    // In sections of another program: the whole name says which key of ours it is.
    if (!key && is_foreign_name(name)) return {{.key = name, .value = {raw}}};
    bool quoted = !raw.empty() && std::string_view("\"'[{").find(raw[0]) != std::string_view::npos;
    bool wants_words = key && (key->kind == Kind::text || key->kind == Kind::list);
    if (raw.find('\n') == raw.npos && (quoted || !wants_words)) {
      try {
        return parse_toml(text, kCommandLine);
      } catch (const UserError& error) {
        if (quoted && key) {
          complaints_.add({.place = fmt::format("{}: {}", kCommandLine, text), .got = error.complaints().front().got});
          return {};
        }
      }
    }
    return {{.key = name, .value = {raw}}};
  }

  void apply(const TomlEntry& entry, const std::string& place) {
    const std::string& name = entry.key;
    if (!unknown_section_.empty() && name.starts_with(unknown_section_)) return;
    bool table = std::holds_alternative<TomlValue::Table>(entry.value.is);
    const Key* key = find_key(name);
    if (key) return set(*key, entry.value, place);
    if (table && is_section(name)) return;
    if (table) {
      unknown_section_ = name + ".";
      complaints_.add({.place = place, .got = "is not a known section", .hint = hint_for_section(name)});
    } else if (is_section(name)) {
      complaints_.add({.place = place,
                       .got = "got " + shown(entry.value),
                       .expected = fmt::format("a section of keys, [{}]", name)});
    } else {
      complaints_.add({.place = place, .got = "is not a known key", .hint = hint_for_key(name)});
    }
  }

  void set(const Key& key, const TomlValue& given, const std::string& place) {
    run_.places.insert_or_assign(std::string(key.name), place);
    if (auto value = allowed_value(key, given)) {
      key.set(run_, *value);
    } else {
      complaints_.distrust(key.name);
      complaints_.add({.place = place,
                       .got = "got " + shown(given),
                       .expected = expected_of(key),
                       .hint = hint_for_value(key, given)});
    }
  }

  RunConfig& run_;
  Complaints& complaints_;
  std::string unknown_section_;  // one complaint about the section is enough
};

// The config that was meant where there is none of this name: one beside it, or one that comes with the program.
std::string hint_for_file(const fs::path& file) {
  const std::string text = file.string();
  if (size_t equals = text.find('='); equals != std::string::npos && find_key(text.substr(0, equals)))
    return "the config comes first, key=value pairs behind it";
  std::string name = file.extension() == ".toml" ? file.stem().string() : file.filename().string();
  for (const fs::path& folder : {file.parent_path(), program_folder("configs")}) {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder.empty() ? fs::path(".") : folder, none))
      if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
    std::vector<std::string_view> views(names.begin(), names.end());
    if (auto meant = nearest(name, views)) return fmt::format("did you mean {}.toml?", (folder / *meant).string());
  }
  return "`sextant list configs` lists those that come with the program, `sextant new` writes one";
}

void require_config(const fs::path& file) {
  std::error_code none;
  if (fs::status(file, none).type() != fs::file_type::not_found) return;
  throw UserError(
      {.place = file.string(), .got = "file not found", .expected = "a run's TOML file", .hint = hint_for_file(file)});
}

// From here on nobody has to know whose default holds.
void fill_optimizer_settings(OptimizerSection& section) {
  const OptimizerDef* def = find_optimizer(section.name);
  BUG_IF(!def, "unknown optimizer {}", section.name);
  static_cast<OptimizerSettings&>(section) = with_defaults(*def, section);
}

}  // namespace

RunConfig parse_config(std::string_view toml, std::string_view source, std::span<const std::string> overrides) {
  RunConfig run;
  run.source = source;
  Complaints complaints;
  Loader loader(run, complaints);
  bool readable = true;
  try {
    loader.read_file(toml, source);
  } catch (const UserError& error) {
    complaints.add(error.complaints());
    readable = false;
  }
  for (const std::string& text : overrides) loader.read_override(text);
  if (run.name.empty()) run.name = source == kCommandLine ? "run" : std::filesystem::path(source).stem().string();
  // Half a file would only bring complaints about what the other half says.
  if (readable) check_together(run, complaints);
  complaints.throw_if_any();
  fill_optimizer_settings(run.optimizer);
  return run;
}

RunConfig load_config(const std::filesystem::path& file, std::span<const std::string> overrides) {
  if (file.empty()) return parse_config("", kCommandLine, overrides);
  require_config(file);
  return parse_config(read_file(file), file.string(), overrides);
}

ConfigValues stored_config(const fs::path& file) {
  RunConfig run;
  Complaints unknown;
  Loader(run, unknown).read_file(read_file(file), file.string());
  fill_optimizer_settings(run.optimizer);
  return config_values(run);
}

std::string config_toml(const RunConfig& run) {
  std::string out;
  for (const Section& section : sections()) {
    if (!section.name.empty()) out += fmt::format("\n[{}]\n", section.name);
    for (const Key& key : schema()) {
      if (section_of(key.name) != section.name) continue;
      ConfigValue value = key.get(run);
      if (std::holds_alternative<std::monostate>(value)) continue;
      std::string_view name = key.name.substr(section.name.empty() ? 0 : section.name.size() + 1);
      out += fmt::format("{}{} = {}\n", run.given(key.name) ? "" : "# ", name, toml_text(value));
    }
  }
  return out;
}

}  // namespace sextant
