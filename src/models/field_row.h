// Makes the row of a model field from the member that holds it. Inside models/ only, and of tests that add a field.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "models/model_fields.h"

namespace sextant {

namespace field_row {

// How a part stands in a spec.
inline std::optional<RopeScaling>& slot_of(ModelSpec& spec, const RopeScaling*) {
  return spec.rope_scaling;
}
inline std::optional<LatentSpec>& slot_of(ModelSpec& spec, const LatentSpec*) {
  return spec.latent;
}
inline std::optional<ExpertsSpec>& slot_of(ModelSpec& spec, const ExpertsSpec*) {
  return spec.experts;
}

template <class Part>
const Part* part_of(const ModelSpec& spec) {
  if constexpr (std::is_same_v<Part, ModelSpec>) {
    return &spec;
  } else {
    const std::optional<Part>& slot = slot_of(const_cast<ModelSpec&>(spec), static_cast<const Part*>(nullptr));
    return slot ? &*slot : nullptr;
  }
}

template <class Part>
Part& make_part(ModelSpec& spec) {
  if constexpr (std::is_same_v<Part, ModelSpec>) {
    return spec;
  } else {
    std::optional<Part>& slot = slot_of(spec, static_cast<const Part*>(nullptr));
    return slot ? *slot : slot.emplace();
  }
}

template <class Part, class T>
Part part_type_of(T Part::*);

template <class T>
constexpr bool kIsOptional = false;
template <class T>
constexpr bool kIsOptional<std::optional<T>> = true;

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
  else
    return Kind::text;
}

// A number as the shortest text that gives it back.
template <class T>
std::string text_of(const T& value) {
  if constexpr (kIsOptional<T>)
    return value ? text_of(*value) : "none";
  else if constexpr (HasChoices<T>)
    return std::string(word_of(value));
  else if constexpr (std::is_same_v<T, std::vector<int64_t>> || std::is_same_v<T, std::vector<double>>)
    return fmt::format("{}", fmt::join(value, ", "));
  else
    return fmt::format("{}", value);
}

}  // namespace field_row

// A row with all that follows from the member.
template <auto kMember>
constexpr ModelField field(ModelField row) {
  using Part = decltype(field_row::part_type_of(kMember));
  using Member = decltype(member_type_of(kMember));
  using Value = FieldType<kMember>;
  row.member = &kMemberTag<kMember>;
  row.setting.kind = field_row::kind_of<Value>();
  if constexpr (HasChoices<Value>)
    if (row.setting.choices.empty()) row.setting.choices = kTextsOf<choices_of(Value{})>;
  if (!row.is_used)
    row.is_used = [](const ModelSpec& spec) {
      const Part* part = field_row::part_of<Part>(spec);
      return part && part->*kMember != Part{}.*kMember;
    };
  if (!row.text)
    row.text = [](const ModelSpec& spec) -> std::string {
      const Part* part = field_row::part_of<Part>(spec);
      return part ? field_row::text_of(part->*kMember) : "unused";
    };
  if constexpr (!std::is_same_v<Member, std::vector<int64_t>>) {
    row.get = [](const ModelSpec& spec) -> SettingValue {
      const Part* part = field_row::part_of<Part>(spec);
      if (!part) return {};
      if constexpr (field_row::kIsOptional<Member>)
        return part->*kMember ? to_setting<Value>(*(part->*kMember)) : SettingValue();
      else
        return to_setting<Value>(part->*kMember);
    };
    row.set = [](ModelSpec& spec, const SettingValue& value) {
      field_row::make_part<Part>(spec).*kMember = from_setting<Value>(value);
    };
  }
  return row;
}

}  // namespace sextant
