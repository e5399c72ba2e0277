// The table of a model's fields: every member has a row, rows follow their members, and a field that is added by one
// row has all that the others have.
#include "models/model_fields.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "models/field_row.h"
#include "models/models.h"
#include "models/presets.h"
#include "models/spec_fields.h"

namespace sextant {
namespace {

template <auto... kMembers>
std::vector<const char*> tags_of() {
  return {&kMemberTag<kMembers>...};
}

// A member that is added to a struct stops the compiler here; its row goes into model_fields.cpp.
std::vector<const char*> members_of_spec() {
  [[maybe_unused]] const auto& [architecture, hf_type, layers, hidden, heads, kv_heads, head_dim, ffn, vocab, max_seq,
                                norm_eps, rope_theta, rope_scaling, rotary_fraction, activation, norm_placement,
                                embedding_width, qkv_bias, out_bias, mlp_bias, qk_norm, window, full_attention_first,
                                full_attention_every, full_attention_layers, attention_chunk, temperature_positions,
                                temperature_strength, inverse_layer_scaling, parallel_residual, no_rope_every,
                                embedding_multiplier, attention_multiplier, residual_multiplier, logits_scaling, latent,
                                experts, mtp_depths, tied_head, init_std, bos_token, eos_tokens, padding_token] =
      ModelSpec{};
  using M = ModelSpec;
  return tags_of<&M::architecture, &M::hf_type, &M::layers, &M::hidden, &M::heads, &M::kv_heads, &M::head_dim, &M::ffn,
                 &M::vocab, &M::max_seq, &M::norm_eps, &M::rope_theta, &M::rotary_fraction, &M::activation,
                 &M::norm_placement, &M::embedding_width, &M::qkv_bias, &M::out_bias, &M::mlp_bias, &M::qk_norm,
                 &M::window, &M::full_attention_first, &M::full_attention_every, &M::full_attention_layers,
                 &M::attention_chunk, &M::temperature_positions, &M::temperature_strength, &M::inverse_layer_scaling,
                 &M::parallel_residual, &M::no_rope_every, &M::embedding_multiplier, &M::attention_multiplier,
                 &M::residual_multiplier, &M::logits_scaling, &M::mtp_depths, &M::tied_head, &M::init_std,
                 &M::bos_token, &M::eos_tokens, &M::padding_token>();
}

std::vector<const char*> members_of_parts() {
  [[maybe_unused]] const auto& [type, factor, original, low, high, fast, slow, truncate, attention, mscale, shorts,
                                longs] = RopeScaling{};
  [[maybe_unused]] const auto& [q_rank, kv_rank, rope_dim, value_dim] = LatentSpec{};
  [[maybe_unused]] const auto& [count, per_token, ffn, normalise, balance_loss, every, dense_layers, dense_first,
                                shared_ffn, score, groups, keep_groups, group_top, scale, correction_bias, speed,
                                forced, drop_above, drop_policy, scope, z_loss, limit, alpha] = ExpertsSpec{};
  using R = RopeScaling;
  using L = LatentSpec;
  using E = ExpertsSpec;
  return tags_of<&R::type, &R::factor, &R::original_max_positions, &R::low_freq_factor, &R::high_freq_factor,
                 &R::beta_fast, &R::beta_slow, &R::truncate, &R::attention_factor, &R::mscale_all_dim, &R::short_factor,
                 &R::long_factor, &L::q_rank, &L::kv_rank, &L::rope_dim, &L::value_dim, &E::count, &E::per_token,
                 &E::ffn, &E::normalise, &E::balance_loss, &E::every, &E::dense_layers, &E::dense_first, &E::shared_ffn,
                 &E::score, &E::groups, &E::keep_groups, &E::group_top, &E::scale, &E::correction_bias,
                 &E::bias_update_speed, &E::forced_balance, &E::drop_above, &E::drop_policy, &E::balance_scope,
                 &E::z_loss, &E::swiglu_limit, &E::swiglu_alpha>();
}

TEST(ModelFields, EveryMemberHasOneRow) {
  std::vector<const char*> members = members_of_spec(), parts = members_of_parts();
  members.insert(members.end(), parts.begin(), parts.end());
  std::multiset<const char*> rows;
  for (const ModelField& field : model_fields()) rows.insert(field.member);
  EXPECT_EQ(rows, std::multiset<const char*>(members.begin(), members.end()));
}

TEST(ModelFields, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const ModelField& field : model_fields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_EQ(find_model_field(field.name), &field);
    EXPECT_TRUE(field.compared_as.empty() || find_model_field(field.compared_as)) << field.name;
  }
  EXPECT_EQ(find_model_field("none"), nullptr);
}

// Setting a field to what it is changes nothing, in every preset.
TEST(ModelFields, GiveBackWhatTheyAreSetTo) {
  for (const Preset& preset : presets()) {
    ModelSpec spec = preset.spec;
    for (const ModelField& field : model_fields()) {
      if (!field.get) continue;
      if (SettingValue value = field.get(preset.spec); !std::holds_alternative<std::monostate>(value))
        field.set(spec, value);
    }
    EXPECT_EQ(spec, preset.spec) << preset.name;
  }
}

TEST(ModelFields, OptionsOfArchitecturesAreFieldsOrParts) {
  for (const ModelDef* def : all_models())
    for (std::string_view option : def->options) {
      bool is_part = std::ranges::count(model_parts(), option, &ModelPart::name) > 0;
      EXPECT_TRUE(is_part || find_model_field(option)) << def->name << ": " << option;
    }
}

// An option that is added: a member (init_std stands for one that weights do not depend on, window for one that they
// do) and a row.
TEST(ModelFields, OneRowIsEnoughForAFieldThatIsAdded) {
  constexpr ModelField kAdded = field<&ModelSpec::window>({.name = "made_up",
                                                           .setting = {.range = from_to(0, 7)},
                                                           .help = "A made-up option.",
                                                           .unset = "0",
                                                           .lacking = "has no made-up option"});
  ModelSpec spec;
  EXPECT_EQ(kAdded.setting.kind, Kind::integer);
  EXPECT_EQ(expected_of(kAdded.setting), "an integer from 0 to 7");
  EXPECT_FALSE(kAdded.is_used(spec));
  kAdded.set(spec, int64_t{3});
  EXPECT_TRUE(kAdded.is_used(spec));
  EXPECT_EQ(kAdded.get(spec), SettingValue(int64_t{3}));
  EXPECT_EQ(kAdded.text(spec), "3");
  EXPECT_EQ(kAdded.role, FieldRole::function);  // a resumed run with another value is refused
  EXPECT_EQ(kAdded.beside_weights, BesideWeights::decided);

  constexpr ModelField kOfTraining =
      field<&ExpertsSpec::z_loss>({.name = "experts.made_up", .role = FieldRole::training});
  EXPECT_EQ(kOfTraining.get(spec), SettingValue()) << "there are no experts";
  kOfTraining.set(spec, 0.5);
  EXPECT_EQ(spec.experts.value().z_loss, 0.5);
  EXPECT_FALSE(kOfTraining.is_key());
}

// Of enums, the words and what they mean are those of their choices.
TEST(ModelFields, EnumsHaveTheWordsOfTheirChoices) {
  const ModelField& scope = model_field<&ExpertsSpec::balance_scope>();
  EXPECT_EQ(words_of(scope.setting), (std::vector<std::string_view>{"all-layers", "layer", "sequence"}));
  ModelSpec spec;
  scope.set(spec, std::string("sequence"));
  EXPECT_EQ(spec.experts->balance_scope, BalanceScope::sequence);
  // longrope has a number for each frequency, and no key for them.
  EXPECT_EQ(words_of(model_field<&RopeScaling::type>().setting).back(), "yarn");
}

}  // namespace
}  // namespace sextant
