// A key, a recompute mode and a field of models that are added by one declaration each appear wherever keys do.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "config/json_schema.h"
#include "config/make_key.h"
#include "config/reference.h"
#include "models/field_row.h"

namespace sextant {
namespace {

// The modes of ir/plan.h and one more.
constexpr auto kMoreModes = [] {
  std::array<Choice<RecomputeMode>, std::size(kRecomputeModes) + 1> modes{};
  for (size_t i = 0; i < std::size(kRecomputeModes); ++i) modes[i] = kRecomputeModes[i];
  modes.back() = {static_cast<RecomputeMode>(std::size(kRecomputeModes)), "tuesdays", "every block, on Tuesdays"};
  return modes;
}();

std::vector<Key> with_made_up_keys() {
  std::vector<Key> keys(schema().begin(), schema().end());
  for (Key& key : keys)
    if (key.name == "train.recompute") key = KEY(train.recompute, among<kMoreModes>(), "Computed again.");
  keys.push_back(make_key(
      "train.made_up", [](auto& run) -> auto& { return run.train.check_gemms; }, from_to(0, 1), "A made-up share."));
  static constexpr ModelField kField = field<&ModelSpec::window>(
      {.name = "made_up", .setting = {.range = from_to(0, 7)}, .help = "A made-up field.", .unset = "0"});
  Key of_model;
  static_cast<Setting&>(of_model) = kField.setting;
  of_model.name = "model.made_up", of_model.help = kField.help, of_model.unset = kField.unset;
  of_model.model_field = &kField;
  keys.push_back(of_model);
  return keys;
}

const Key& key_named(const std::vector<Key>& keys, std::string_view name) {
  return *std::ranges::find(keys, name, &Key::name);
}

TEST(MadeUpKeys, AreInPageHelpAndSchema) {
  const std::vector<Key> keys = with_made_up_keys();
  const std::string page = config_reference(keys), help = config_help("train", keys), json = config_json_schema(keys);
  EXPECT_NE(page.find("| `made_up` | number from 0 to 1 | `0` | A made-up share. |"), page.npos);
  EXPECT_NE(page.find("| `made_up` | integer from 0 to 7 | 0 | A made-up field. |"), page.npos);
  EXPECT_NE(page.find("`tuesdays`: every block, on Tuesdays"), page.npos);
  EXPECT_NE(help.find("train.made_up\n    A made-up share."), help.npos);
  EXPECT_NE(help.find("tuesdays"), help.npos);
  EXPECT_NE(json.find("\"tuesdays\""), json.npos);
  EXPECT_NE(json.find("A made-up field. Not given: 0."), json.npos);
  EXPECT_EQ(config_reference().find("tuesdays"), std::string::npos);
}

TEST(MadeUpKeys, SetWhatTheyAreDeclaredWith) {
  const std::vector<Key> keys = with_made_up_keys();
  RunConfig run;
  key_named(keys, "train.recompute").set(run, std::string("tuesdays"));
  EXPECT_EQ(run.train.recompute, kMoreModes.back().value);
  EXPECT_EQ(key_named(keys, "train.recompute").get(run), ConfigValue(std::string("tuesdays")));
  const Key& of_model = key_named(keys, "model.made_up");
  of_model.set(run, int64_t{3});
  ModelSpec spec;
  for (const auto& [field, value] : run.model.fields) field->set(spec, value);
  EXPECT_EQ(spec.window, 3);
  // Weights depend on it: a resumed run that has another value is refused.
  EXPECT_EQ(of_model.on_resume(), OnResume::refused);
  EXPECT_EQ(key_named(keys, "train.made_up").on_resume(), OnResume::accepted);
}

}  // namespace
}  // namespace sextant
