// Model directories: one file, shards with an index, and indexes that lie.
#include "base/files.h"
#include "ckpt/safetensors.h"
#include "ckpt/weights_reader.h"
#include "ckpt/weights_writer.h"
#include "scratch.h"

namespace sextant {
namespace {

using Weights = Scratch;

std::vector<TensorSpec> small_model() {
  std::vector<TensorSpec> specs{{"embed", FileDType::f32, {10, 4}}};
  for (int layer = 0; layer < 5; ++layer) {
    specs.push_back({fmt::format("layers.{}.w", layer), FileDType::f32, {4, 4}});
    specs.push_back({fmt::format("layers.{}.b", layer), FileDType::f32, {4}});
  }
  return specs;
}

std::vector<float> content(const TensorSpec& spec) {
  std::vector<float> values(static_cast<size_t>(spec.shape.count()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(spec.name.size() * 1000 + i) + spec.name.back();
  return values;
}

void save(const std::filesystem::path& directory, const std::vector<TensorSpec>& specs, Bytes max_shard) {
  WeightsWriter writer(directory, plan_weights(specs, {.max_shard = max_shard}));
  for (const TensorSpec& spec : specs) {
    std::vector<float> values = content(spec);
    writer.write(spec.name, std::as_bytes(std::span(values)));
  }
  writer.finish();
}

void expect_content(const WeightsReader& reader, const std::vector<TensorSpec>& specs) {
  EXPECT_EQ(reader.names().size(), specs.size());
  for (const TensorSpec& spec : specs) {
    TensorView view = reader.tensor(spec.name);
    EXPECT_EQ(view.shape, spec.shape);
    std::vector<float> expected = content(spec);
    EXPECT_TRUE(std::ranges::equal(view.bytes, std::as_bytes(std::span(expected)))) << spec.name;
  }
}

TEST_F(Weights, OneFileWhenItFits) {
  std::vector<TensorSpec> specs = small_model();
  save(root, specs, {1'000'000});
  EXPECT_TRUE(std::filesystem::exists(root / "model.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(root / "model.safetensors.index.json"));
  WeightsReader reader(root);
  expect_content(reader, specs);
  EXPECT_EQ(reader.total_bytes(), 160 + 5 * 80);
  EXPECT_EQ(SafetensorsFile(root / "model.safetensors").metadata(), (Metadata{{"format", "pt"}}));
  expect_content(WeightsReader(root / "model.safetensors"), specs);
}

TEST_F(Weights, ShardsAboveTheMaximum) {
  std::vector<TensorSpec> specs = small_model();
  // embed (160 bytes) is larger than a shard; then w (64) and b (16) alternate.
  WeightsPlan plan = plan_weights(specs, {.max_shard = Bytes{144}});
  ASSERT_EQ(plan.shards.size(), 5u);
  EXPECT_EQ(plan.shards[0].file_name, "model-00001-of-00005.safetensors");
  std::vector<int64_t> sizes;
  for (const WeightsPlan::Shard& shard : plan.shards) sizes.push_back(shard.layout.data_bytes());
  EXPECT_EQ(sizes, (std::vector<int64_t>{160, 144, 96, 144, 16}));
  save(root, specs, {144});
  WeightsReader reader(root);
  EXPECT_EQ(reader.file_count(), 5u);
  expect_content(reader, specs);
  expect_content(WeightsReader(root / "model.safetensors.index.json"), specs);
}

TEST(WeightsPlan, IndexAsTransformersWritesIt) {
  WeightsPlan plan =
      plan_weights({{"b", FileDType::bf16, {2, 3}}, {"a", FileDType::f32, {1}}}, {.max_shard = Bytes{12}});
  EXPECT_EQ(plan.index, R"({
  "metadata": {
    "total_parameters": 7,
    "total_size": 16
  },
  "weight_map": {
    "a": "model-00002-of-00002.safetensors",
    "b": "model-00001-of-00002.safetensors"
  }
}
)");
}

TEST(WeightsPlan, RefusesOneNameTwice) {
  EXPECT_THROW(plan_weights({{"a", FileDType::f32, {1}}, {"a", FileDType::f32, {1}}}, {.max_shard = Bytes{4}}), Bug);
}

TEST_F(Weights, RanksWriteTheirRowsOfOneModel) {
  std::vector<TensorSpec> specs = small_model();
  for (int64_t rank : {1, 0}) {
    WeightsWriter writer(root, plan_weights(specs, {.max_shard = Bytes{144}}), Share::part);
    for (const TensorSpec& spec : specs) {
      int64_t half = spec.shape[0] / 2, length = row_length(spec.shape);
      std::vector<float> values = content(spec);
      writer.write_rows(spec.name, {rank * half, rank * half + half},
                        std::as_bytes(std::span(values).subspan(static_cast<size_t>(rank * half * length),
                                                                static_cast<size_t>(half * length))));
    }
    writer.finish();
  }
  expect_content(WeightsReader(root), specs);
}

TEST_F(Weights, SaysWhatADirectoryLacks) {
  EXPECT_IN("no weights here; expected one of model.safetensors, model.safetensors.index.json, pytorch_model.bin,",
            message_of<UserError>([&] { WeightsReader reader(root); }));
  write_text(root / "pytorch_model.bin", "x");
  EXPECT_IN("pytorch_model.bin: not a zip archive", message_of<UserError>([&] { WeightsReader reader(root); }));
  EXPECT_IN("file not found", message_of<UserError>([&] { WeightsReader reader(root / "nowhere"); }));
}

TEST_F(Weights, RefusesIndexesThatLie) {
  save(root, small_model(), {144});
  auto complaint = [&](std::string_view index) {
    write_text(root / "model.safetensors.index.json", index);
    return message_of<UserError>([&] { WeightsReader reader(root); });
  };
  std::string first = "model-00001-of-00005.safetensors";
  EXPECT_EQ(complaint(R"({"metadata":{"total_size":1.5e3,"x":[{}]},"weight_map":{"embed":")" + first + R"("}})"), "");
  EXPECT_IN("tensor \"ghost\" is not in \"model-00001", complaint(R"({"weight_map":{"ghost":")" + first + R"("}})"));
  EXPECT_IN("file not found", complaint(R"({"weight_map":{"embed":"missing.safetensors"}})"));
  EXPECT_IN("the file of tensor \"embed\" is \"../x\"", complaint(R"({"weight_map":{"embed":"../x"}})"));
  EXPECT_IN("is \"..\"", complaint(R"({"weight_map":{"embed":".."}})"));
  EXPECT_IN("is \"/etc/passwd\"", complaint(R"({"weight_map":{"embed":"/etc/passwd"}})"));
  EXPECT_IN("is \"\"", complaint(R"({"weight_map":{"embed":""}})"));
  EXPECT_IN("is \"a\\u0000b\"", complaint(R"({"weight_map":{"embed":"a\u0000b"}})"));
  EXPECT_IN("is no string", complaint(R"({"weight_map":{"embed":7}})"));
  EXPECT_IN("is no string", complaint(R"({"weight_map":{"embed":{"a":"b"}}})"));
  EXPECT_IN("weight_map is not a JSON object", complaint(R"({"weight_map":[]})"));
  EXPECT_IN("weight_map is not a JSON object", complaint(R"({"weight_map":null})"));
  EXPECT_IN("weight_map is missing", complaint("{}"));
  EXPECT_IN("the index is not a JSON object", complaint("[1]"));
  EXPECT_IN("key \"embed\" is given twice",
            complaint(R"({"weight_map":{"embed":")" + first + R"(","embed":")" + first + R"("}})"));
  EXPECT_IN("nested too deeply", complaint(R"({"metadata":)" + std::string(100'000, '[')));
  EXPECT_IN("broken JSON", complaint("{"));
}

TEST_F(Weights, ABrokenShardIsNamed) {
  save(root, small_model(), {144});
  std::filesystem::resize_file(root / "model-00003-of-00005.safetensors", 300);
  EXPECT_IN("model-00003-of-00005.safetensors", message_of<UserError>([&] { WeightsReader reader(root); }));
}

}  // namespace
}  // namespace sextant
