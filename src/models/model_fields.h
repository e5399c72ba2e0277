// The fields of a model, one row each: how it is called in configs and messages, what it may be, what holds where it is
// not given, which architectures have it, and whether weights depend on it. Keys of the config and their docs, range
// checks, what a resumed run may change, `list models` and the JSON schema are made of these rows.
//
// A field is a member of ModelSpec or of one of its parts, and one row of kModelFields in model_fields.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/error.h"
#include "describe/setting.h"
#include "models/spec.h"

namespace sextant {

enum class FieldRole : uint8_t {
  function,  // what the weights compute: config.json holds it, and weights go with no other
  training,  // losses, routing and first weights in training: the same weights may be trained on with another
  naming,    // the name of a format, ids of tokens: weights do not depend on it
};

// Whether a config may give the field beside model.from, whose weights and config.json decide the others.
enum class BesideWeights : uint8_t { decided, free };

struct ModelField {
  std::string_view name;  // below "model." in a config: "experts.groups"
  FieldRole role = FieldRole::function;
  BesideWeights beside_weights = BesideWeights::decided;
  Setting setting = {};
  std::string_view help = {};   // empty: no key of the config has it
  std::string_view unset = {};  // what holds where it is not given
  bool zero_is_none = false;    // 0 stands for "there is none", whatever the range says

  // An option: a field that only some architectures compute. "has no window"; empty: all have it.
  std::string_view lacking = {};
  std::string_view option = {};                 // of ModelDef::options; empty = its name
  bool of_rope = false;                         // only where RoPE is
  bool (*is_used)(const ModelSpec&) = nullptr;  // whether it differs from having no such option

  // In comparisons of two models: whether it counts beside the others, and its value as text. Fields that say one thing
  // together are compared as one of them.
  std::string_view compared_as = {};
  bool (*counts)(const ModelSpec&) = nullptr;  // null: always
  std::string (*text)(const ModelSpec&) = nullptr;

  std::span<const std::string_view> follows_from = {};  // where it is not given: fields that are to blame, too

  // monostate where the model has not the part that the field is of.
  SettingValue (*get)(const ModelSpec&) = nullptr;
  void (*set)(ModelSpec&, const SettingValue&) = nullptr;  // the value must be of the kind; makes the part
  const char* member = nullptr;                            // &kMemberTag of it

  bool is_key() const { return !help.empty(); }
  std::string_view option_name() const { return option.empty() ? name : option; }
};

// In the order of docs/config.md.
std::span<const ModelField> model_fields();
const ModelField* find_model_field(std::string_view name);  // null when there is none

// A part of ModelSpec that only some architectures have, with fields of its own.
struct ModelPart {
  std::string_view name;  // "rope_scaling": also the option of ModelDef
  std::string_view lacking;
  bool of_rope = false;
  bool (*is_used)(const ModelSpec&) = nullptr;
};
std::span<const ModelPart> model_parts();

// Fields by their members: model_field<&ExpertsSpec::count>().
template <auto kMember>
inline constexpr char kMemberTag = 0;

template <auto kMember>
const ModelField& model_field() {
  static const ModelField* const found = [] {
    for (const ModelField& field : model_fields())
      if (field.member == &kMemberTag<kMember>) return &field;
    BUG("a member of a model has no row");
  }();
  return *found;
}

// The type of a given value; a config holds the word of an enum.
template <class Member>
struct FieldValueOf {
  using Type = Member;
};
template <class Inner>
struct FieldValueOf<std::optional<Inner>> {
  using Type = typename FieldValueOf<Inner>::Type;
};
template <class Class, class Member>
Member member_type_of(Member Class::*);
template <auto kMember>
using FieldType = typename FieldValueOf<decltype(member_type_of(kMember))>::Type;

template <class T>
SettingValue to_setting(const T& value) {
  if constexpr (HasChoices<T>)
    return std::string(word_of(value));
  else if constexpr (std::is_same_v<T, bool> || !std::is_integral_v<T>)
    return value;
  else
    return static_cast<int64_t>(value);
}

template <class T>
T from_setting(const SettingValue& value) {
  if constexpr (HasChoices<T>)
    return value_of_word<T>(std::get<std::string>(value)).value();
  else
    return std::get<T>(value);
}

}  // namespace sextant
