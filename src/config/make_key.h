// Makes the row of a config key from the field of RunConfig that it sets. Of the table in schema.cpp, and of tests that
// add a key.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "config/schema.h"

namespace sextant {

// Parts of a row, in any order: a text is the help.
struct Unset {
  std::string_view meaning;
};
constexpr Unset unset(std::string_view meaning) {
  return {meaning};
}

// The words of a text that names an entry of a registry.
struct Words {
  std::span<const ChoiceText> choices;
};
constexpr Words one_of(std::span<const ChoiceText> choices) {
  return {choices};
}

// The choices of a field whose type has more values than the key takes.
template <const auto& kChoices>
struct Among {};
template <const auto& kChoices>
constexpr Among<kChoices> among() {
  return {};
}

namespace key_row {

template <class T>
struct Plain {
  using Type = T;
};
template <class T>
struct Plain<std::optional<T>> {
  using Type = T;
};

template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;

template <class T>
concept HasText = requires(const T& value) {
  { value.text() } -> std::same_as<std::string>;
  T::from_text(std::string_view());
};

template <class T>
constexpr Kind kind_of() {
  if constexpr (std::is_same_v<T, bool>)
    return Kind::flag;
  else if constexpr (std::is_same_v<T, int64_t>)
    return Kind::integer;
  else if constexpr (std::is_same_v<T, double>)
    return Kind::number;
  else if constexpr (std::is_same_v<T, std::vector<double>>)
    return Kind::numbers;
  else if constexpr (kIsVector<T>)
    return Kind::list;
  else
    return Kind::text;
}

// The choices of an enum, if no others are named.
template <class T, class... Parts>
struct ChoicesOf {
  static constexpr const auto& get() { return choices_of(T{}); }
};
template <class T, const auto& kChoices, class... Parts>
struct ChoicesOf<T, Among<kChoices>, Parts...> {
  static constexpr const auto& get() { return kChoices; }
};
template <class T, class Part, class... Parts>
struct ChoicesOf<T, Part, Parts...> : ChoicesOf<T, Parts...> {};

template <class Choices, class T>
std::string word_in(const Choices& choices, T value) {
  for (const auto& choice : choices)
    if (choice.value == value) return std::string(choice.word);
  BUG("a value of a key has no word");
}

// Between what a field holds and what a key does.
template <class T, class... Parts>
T to_field(const ConfigValue& value) {
  if constexpr (std::is_enum_v<T>) {
    std::optional<T> known = value_in(ChoicesOf<T, Parts...>::get(), std::get<std::string>(value));
    BUG_IF(!known, "a key is set to a word that it has not: {}", std::get<std::string>(value));
    return *known;
  } else if constexpr (HasText<T>) {
    return T::from_text(std::get<std::string>(value));
  } else if constexpr (kIsVector<T>) {
    if constexpr (std::is_enum_v<typename T::value_type>) {
      T list;
      for (const std::string& word : std::get<std::vector<std::string>>(value))
        list.push_back(*value_of_word<typename T::value_type>(word));
      return list;
    } else {
      return std::get<T>(value);
    }
  } else {
    return std::get<T>(value);
  }
}

template <class T, class... Parts>
ConfigValue from_field(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return word_in(ChoicesOf<T, Parts...>::get(), value);
  } else if constexpr (HasText<T>) {
    return value.text();
  } else if constexpr (kIsVector<T>) {
    if constexpr (std::is_enum_v<typename T::value_type>) {
      std::vector<std::string> list;
      for (auto item : value) list.emplace_back(word_of(item));
      return list;
    } else {
      return value;
    }
  } else {
    return value;
  }
}

constexpr void add(Key& key, Words words) {
  key.choices = words.choices;
}
constexpr void add(Key& key, Unset unset) {
  key.unset = unset.meaning;
}
constexpr void add(Key& key, Range range) {
  key.range = range;
}
constexpr void add(Key& key, std::string_view help) {
  key.help = help;
}
constexpr void add(Key& key, OnResume changed) {
  key.changed = changed;
}
constexpr void add(Key& key, Affects affects) {
  key.affects = affects;
}
template <const auto& kChoices>
constexpr void add(Key& key, Among<kChoices>) {
  key.choices = kTextsOf<kChoices>;
}

template <class T>
constexpr void add_choices(Key& key) {
  if constexpr (HasChoices<T>) {
    key.choices = kTextsOf<choices_of(T{})>;
  } else if constexpr (kIsVector<T>) {
    if constexpr (HasChoices<typename T::value_type>) key.choices = kTextsOf<choices_of(typename T::value_type{})>;
  }
}

}  // namespace key_row

// `Access` is a lambda without captures from the config to the field.
template <class Access, class... Parts>
constexpr Key make_key(std::string_view name, Access, Parts... parts) {
  using Field = std::remove_cvref_t<std::invoke_result_t<Access, RunConfig&>>;
  using Value = typename key_row::Plain<Field>::Type;
  Key key;
  key.name = name;
  key.kind = key_row::kind_of<Value>();
  key_row::add_choices<Value>(key);
  key.setter = [](RunConfig& run, const ConfigValue& value) {
    Access{}(run) = key_row::to_field<Value, Parts...>(value);
  };
  key.getter = [](const RunConfig& run) -> ConfigValue {
    const Field& field = Access{}(run);
    if constexpr (std::is_same_v<Field, Value>)
      return key_row::from_field<Value, Parts...>(field);
    else
      return field ? key_row::from_field<Value, Parts...>(*field) : ConfigValue();
  };
  (key_row::add(key, parts), ...);
  return key;
}

}  // namespace sextant

// A macro, so that a key's name and its field are one text and cannot disagree.
#define KEY(path, ...) \
  make_key(            \
      #path, [](auto& run) -> auto& { return run.path; }, __VA_ARGS__)
