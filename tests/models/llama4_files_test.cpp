// Directories of Llama 4: as released, with the model for text inside of another, and what its config.json may say.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "architecture_data.h"
#include "checkout.h"
#include "ckpt/safetensors_writer.h"
#include "model_results.h"
#include "models/presets.h"

namespace sextant {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

const fs::path kText = fs::path(checkout::kSources) / "tests/fixtures/models/llama4";

// The directory of Llama4ForConditionalGeneration with that text model.
class WrappedLlama4 : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(path_);
    fs::create_directories(path_);
    json text = json::parse(read_file(kText / "config.json"));
    write_file_atomically(
        path_ / "config.json",
        json{{"model_type", "llama4"}, {"text_config", text}, {"vision_config", json::object()}}.dump());
    WeightsReader source(kText);
    std::vector<TensorSpec> specs{{"multi_modal_projector.linear_1.weight", FileDType::f32, {2, 3}},
                                  {"vision_model.class_embedding", FileDType::f32, {6}}};
    for (const std::string& name : source.names())
      specs.push_back({"language_model." + name, source.tensor(name).dtype, source.tensor(name).shape});
    SafetensorsWriter writer(path_ / "model.safetensors", plan_safetensors(specs, {{"format", "pt"}}));
    const std::vector<std::byte> zeros(6 * sizeof(float));
    for (const TensorSpec& spec : specs)
      writer.write(spec.name, spec.name.starts_with("language_model.")
                                  ? source.tensor(spec.name.substr(std::string("language_model.").size())).bytes
                                  : std::span<const std::byte>(zeros));
    writer.finish();
  }
  void TearDown() override { fs::remove_all(path_); }

  const fs::path path_ = fs::temp_directory_path() / fmt::format("sextant-llama4-{}", ::getpid());
};

TEST_F(WrappedLlama4, TheModelForTextIsReadAndWrittenAlone) {
  Use use{.kind = Use::Kind::generate, .cache_positions = 4};
  Loaded wrapped(path_, use, {}), text(kText, use, {});
  EXPECT_EQ(wrapped.spec, text.spec);
  for (const Value& value : wrapped.program.values)
    if (value.kind == ValueKind::parameter) {
      EXPECT_EQ(wrapped.read(value.path), text.read(value.path)) << value.path;
    }
  EXPECT_EQ(unread_models(wrapped.spec, WeightsReader(path_)),
            "vision_model.* and multi_modal_projector.* hold 2 tensors that are not read: of llama4 only the model for "
            "text is trained and written");
  EXPECT_EQ(unread_models(text.spec, WeightsReader(kText)), "");

  fs::path out = path_ / "out";
  fs::create_directories(out);
  save_weights(*wrapped.bound, wrapped.spec, out);
  WeightsReader before(kText), after(out);
  ASSERT_EQ(before.names(), after.names());
  for (const std::string& name : before.names())
    EXPECT_TRUE(std::ranges::equal(before.tensor(name).bytes, after.tensor(name).bytes)) << name;
  json config = json::parse(hf_config_json(wrapped.spec, read_file(path_ / "config.json"), DType::f32, {}));
  EXPECT_EQ(config["model_type"], "llama4_text");
  EXPECT_EQ(config["architectures"], json{"Llama4ForCausalLM"});
  EXPECT_FALSE(config.contains("vision_config"));
  EXPECT_EQ(config["router_jitter_noise"], 0.0);  // what the spec does not say is as it was
  EXPECT_EQ(spec_from_hf_config(config.dump(), "x"), text.spec);
}

ModelSpec read_text(const json& changes) {
  json file = architecture_data("llama4")["released"]["llama4-scout"];
  file["text_config"].update(changes);
  return spec_from_hf_config(file.dump(), "config.json");
}

std::string complaint_about_text(const json& changes) {
  try {
    read_text(changes);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Llama4Config, LayersWithExperts) {
  EXPECT_EQ(read_text({{"moe_layers", {1, 3, 5, 7}}, {"num_hidden_layers", 8}}).experts->every, 2);
  // Layers that a shortened model no longer has are no fault.
  EXPECT_EQ(read_text({{"moe_layers", {3, 7, 11, 15}}, {"num_hidden_layers", 8}}).experts->every, 4);
  ModelSpec uneven = read_text({{"moe_layers", {3, 0}}, {"num_hidden_layers", 4}});
  EXPECT_EQ(uneven.experts->every, 1);
  EXPECT_EQ(uneven.experts->dense_layers, (std::vector<int64_t>{1, 2}));
  uneven.padding_token.reset();
  EXPECT_EQ(spec_from_hf_config(hf_config_json(uneven), "x"), uneven);
  EXPECT_EQ(complaint_about_text({{"moe_layers", json::array()}}),
            "config.json text_config moe_layers: no layer of the model has experts; expected numbers of layers, the "
            "first being 0");
}

TEST(Llama4Config, Attention) {
  EXPECT_EQ(read_text({{"no_rope_layer_interval", 6}}).no_rope_every, 6);  // no_rope_layers is empty there
  EXPECT_EQ(read_text({{"no_rope_layers", {1, 0, 1, 0}}, {"num_hidden_layers", 4}}).no_rope_every, 2);
  EXPECT_EQ(read_text({{"attn_temperature_tuning", 4}}), read_text({{"attn_temperature_tuning", true}}));
  EXPECT_EQ(read_text({{"attn_temperature_tuning", false}, {"floor_scale", 0}}).temperature_positions, 0);
  EXPECT_EQ(complaint_about_text({{"floor_scale", 0}}),
            "config.json text_config floor_scale: got 0; expected an integer of at least 1");
  EXPECT_EQ(complaint_about_text({{"attention_chunk_size", nullptr}}),
            "config.json text_config attention_chunk_size: is null, and layers with RoPE have chunked attention; "
            "expected a number above 0: transformers cannot compute such a model either");
  EXPECT_EQ(complaint_about_text({{"layer_types", {"full_attention"}}, {"num_hidden_layers", 1}}),
            "config.json text_config layer_types: other layers with chunked_attention than those with RoPE; expected "
            "chunked_attention for layers with RoPE and full_attention for the others, or no such key");
  EXPECT_EQ(
      complaint_about_text({{"no_rope_layers", {1, 0, 0, 1}}, {"num_hidden_layers", 4}}),
      "config.json text_config no_rope_layers: layers without RoPE that do not follow at one interval; expected 4 "
      "numbers, 0 for every n-th and 1 for the others");
}

TEST(Llama4Config, TheModelForTextMustBeThere) {
  json file = architecture_data("llama4")["released"]["llama4-scout"];
  auto complaint = [&] {
    try {
      spec_from_hf_config(file.dump(), "config.json");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  file["quantization_config"] = {{"quant_method", "compressed-tensors"}};
  EXPECT_NE(complaint().find("text_config quantization_config: weights quantized by \"compressed-tensors\""),
            std::string::npos)
      << complaint();
  file.erase("text_config");
  EXPECT_EQ(complaint(), "config.json text_config: is missing; expected an object: the model for text of llama4");
}

}  // namespace
}  // namespace sextant
