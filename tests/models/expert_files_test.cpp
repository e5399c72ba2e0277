// The forms in which directories hold experts: matrix by matrix, all of a layer in one tensor, transposed. Each is read
// as the same model and written back byte for byte. The stacked directories were written by transformers
// (tests/peers/make_expert_fixtures.py), the transposed ones are made of them here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "architecture_data.h"
#include "checkout.h"
#include "model_results.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

const fs::path kStacked = fs::path(checkout::kSources) / "tests/fixtures/expert_files";

struct ScratchDirectory {
  explicit ScratchDirectory(std::string_view name)
      : path(fs::temp_directory_path() / fmt::format("sextant-experts-{}-{}", name, ::getpid())) {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~ScratchDirectory() { fs::remove_all(path); }
  const fs::path path;
};

Loaded loaded_experts(const fs::path& directory) {
  return Loaded(directory, {.kind = Use::Kind::generate, .cache_positions = 4}, {});
}

// The last two dims of every tensor of three change places.
void write_transposed(const fs::path& from, const fs::path& to) {
  WeightsReader source(from);
  std::vector<TensorSpec> specs;
  for (const std::string& name : source.names()) {
    TensorView view = source.tensor(name);
    GlobalShape shape = view.shape;
    if (shape.rank() == 3) shape = {shape[0], shape[2], shape[1]};
    specs.push_back({name, view.dtype, shape});
  }
  SafetensorsWriter writer(to / "model.safetensors", plan_safetensors(specs, {{"format", "pt"}}));
  for (const std::string& name : source.names()) {
    TensorView view = source.tensor(name);
    std::vector<std::byte> bytes(view.bytes.begin(), view.bytes.end());
    if (view.shape.rank() == 3)
      for (int64_t e = 0; e < view.shape[0]; ++e)
        for (int64_t r = 0; r < view.shape[1]; ++r)
          for (int64_t c = 0; c < view.shape[2]; ++c)
            std::memcpy(bytes.data() + 4 * ((e * view.shape[2] + c) * view.shape[1] + r),
                        view.bytes.data() + 4 * ((e * view.shape[1] + r) * view.shape[2] + c), 4);
    writer.write(name, bytes);
  }
  writer.finish();
  fs::copy_file(from / "config.json", to / "config.json");
}

void expect_same_files(const fs::path& a, const fs::path& b) {
  WeightsReader before(a), after(b);
  ASSERT_EQ(before.names(), after.names());
  for (const std::string& name : before.names()) {
    EXPECT_EQ(before.tensor(name).shape, after.tensor(name).shape) << name;
    EXPECT_TRUE(std::ranges::equal(before.tensor(name).bytes, after.tensor(name).bytes)) << name;
  }
}

void expect_model_of(const std::string& name, const fs::path& directory, ExpertFiles form) {
  Loaded one_by_one = loaded_experts(model_fixtures() / name), model = loaded_experts(directory);
  for (const Value& value : model.program.values)
    if (value.kind == ValueKind::parameter) {
      EXPECT_EQ(model.read(value.path), one_by_one.read(value.path)) << name << " " << value.path;
    }
  EXPECT_EQ(expert_files_in(WeightsReader(directory), model.spec), form) << name;
  ScratchDirectory out("again");
  save_weights(*model.bound, model.spec, out.path, {.experts = form});
  expect_same_files(directory, out.path);
}

class ExpertFilesOf : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, ExpertFilesOf,
                         testing::Values("mixtral", "olmoe", "qwen2moe", "qwen3moe", "deepseekv2", "deepseekv3"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(ExpertFilesOf, StacksAreReadAndWrittenBack) {
  expect_model_of(GetParam(), kStacked / GetParam(), ExpertFiles::stacked);
}

TEST_P(ExpertFilesOf, TransposedStacksAreReadAndWrittenBack) {
  ScratchDirectory turned("turned");
  write_transposed(kStacked / GetParam(), turned.path);
  expect_model_of(GetParam(), turned.path, ExpertFiles::stacked_transposed);
}

TEST_P(ExpertFilesOf, OneByOneIsWrittenBack) {
  expect_model_of(GetParam(), model_fixtures() / GetParam(), ExpertFiles::as_listed);
}

// Experts of gpt-oss in mxfp4 beside the same in f32, transposed, by the test's own arithmetic.
TEST(Mxfp4Directory, IsTheModelOfItsDequantizedWeights) {
  ScratchDirectory drawn("mxfp4-drawn"), quantized("mxfp4"), plain("mxfp4-plain"), again("mxfp4-again");
  const std::string config = R"({"model_type": "gpt_oss", "num_hidden_layers": 1, "hidden_size": 64,
    "intermediate_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 97,
    "num_local_experts": 3, "num_experts_per_tok": 2, "max_position_embeddings": 64})";
  ModelSpec spec = spec_from_hf_config(config, "config.json");
  auto executor = make_cpu_executor(1);
  Program program = lower(build_model(spec, {.kind = Use::Kind::generate, .cache_positions = 4}, single_rank_mesh()),
                          executor->target(), {});
  auto arena = executor->allocate(program.arena_bytes);
  auto bound = executor->bind(program, *arena);
  initialize_weights(*bound, 3);
  save_weights(*bound, spec, drawn.path);

  WeightsReader source(drawn.path);
  auto is_matrix = [&](const std::string& name) { return source.tensor(name).shape.rank() == 3; };
  std::vector<TensorSpec> specs, plain_specs;
  for (const std::string& name : source.names()) {
    GlobalShape shape = source.tensor(name).shape;  // of experts: [experts, columns, rows]
    plain_specs.push_back({name, FileDType::f32, shape});
    if (!is_matrix(name)) {
      specs.push_back({name, FileDType::f32, shape});
      continue;
    }
    specs.push_back({name + "_blocks", FileDType::u8, {shape[0], shape[2], shape[1] / 32, 16}});
    specs.push_back({name + "_scales", FileDType::u8, {shape[0], shape[2], shape[1] / 32}});
  }
  SafetensorsWriter codes(quantized.path / "model.safetensors", plan_safetensors(specs, {{"format", "pt"}}));
  SafetensorsWriter numbers(plain.path / "model.safetensors", plan_safetensors(plain_specs, {{"format", "pt"}}));
  const float magnitudes[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (const std::string& name : source.names()) {
    TensorView view = source.tensor(name);
    if (!is_matrix(name)) {
      codes.write(name, view.bytes);
      numbers.write(name, view.bytes);
      continue;
    }
    int64_t experts = view.shape[0], columns = view.shape[1], rows = view.shape[2];
    std::vector<uint8_t> blocks(static_cast<size_t>(experts * rows * columns / 2)),
        scales(static_cast<size_t>(experts * rows * columns / 32));
    std::vector<float> values(static_cast<size_t>(experts * rows * columns));
    for (int64_t i = 0; i < experts * rows * columns; ++i) {
      int64_t e = i / (rows * columns), row = i / columns % rows, column = i % columns;
      auto code = static_cast<uint8_t>((7 * i + i / 16) % 16), scale = static_cast<uint8_t>(120 + (i / 32) % 5);
      blocks[static_cast<size_t>(i / 2)] |= static_cast<uint8_t>(i % 2 == 0 ? code : code << 4);
      scales[static_cast<size_t>(i / 32)] = scale;
      values[static_cast<size_t>((e * columns + column) * rows + row)] =
          std::ldexp((code < 8 ? 1.0f : -1.0f) * magnitudes[code % 8], scale - 127);
    }
    codes.write(name + "_blocks", std::as_bytes(std::span(blocks)));
    codes.write(name + "_scales", std::as_bytes(std::span(scales)));
    numbers.write(name, std::as_bytes(std::span(values)));
  }
  codes.finish();
  numbers.finish();
  std::string with_method = config;
  with_method.insert(1, R"("quantization_config": {"quant_method": "mxfp4"}, )");
  write_file_atomically(plain.path / "config.json", config);
  write_file_atomically(quantized.path / "config.json", with_method);
  Loaded got = loaded_experts(quantized.path), wanted = loaded_experts(plain.path);
  for (const Value& value : got.program.values)
    if (value.kind == ValueKind::parameter) {
      EXPECT_EQ(got.read(value.path), wanted.read(value.path)) << value.path;
    }
  // Written as plain numbers, in the transposed form of the architecture.
  ExpertFiles form = expert_files_in(WeightsReader(quantized.path), got.spec);
  save_weights(*got.bound, got.spec, again.path, {.experts = form});
  expect_same_files(plain.path, again.path);
  EXPECT_EQ(hf_config_json(got.spec, with_method).find("quantization_config"), std::string::npos);
}

// The experts of gpt-oss are stored transposed; a directory that has them the other way is read and written so too.
TEST(ExpertFilesOfGptOss, StacksThatAreNotTransposed) {
  ScratchDirectory turned("gptoss-turned"), again("gptoss-again");
  write_transposed(model_fixtures() / "gptoss", turned.path);
  Loaded as_released = loaded_experts(model_fixtures() / "gptoss"), model = loaded_experts(turned.path);
  for (const Value& value : model.program.values)
    if (value.kind == ValueKind::parameter) {
      EXPECT_EQ(model.read(value.path), as_released.read(value.path)) << value.path;
    }
  ExpertFiles form = expert_files_in(WeightsReader(turned.path), model.spec);
  EXPECT_EQ(form, ExpertFiles::stacked);
  save_weights(*model.bound, model.spec, again.path, {.experts = form});
  expect_same_files(turned.path, again.path);
}

// A directory in fp8 by blocks: of every matrix the codes of its bytes, each block with a scale of its own.
TEST(Fp8Directory, IsTheModelOfItsDequantizedWeights) {
  ScratchDirectory quantized("fp8"), plain("fp8-plain");
  WeightsReader source(model_fixtures() / "mixtral");
  auto is_linear = [](const std::string& name, const TensorView& view) {
    return view.shape.rank() == 2 && name.find("_proj") != std::string::npos;
  };
  std::vector<TensorSpec> specs, plain_specs;
  for (const std::string& name : source.names()) {
    TensorView view = source.tensor(name);
    plain_specs.push_back({name, FileDType::f32, view.shape});
    specs.push_back({name, is_linear(name, view) ? FileDType::f8_e4m3 : FileDType::f32, view.shape});
    if (is_linear(name, view)) specs.push_back({name + "_scale_inv", FileDType::f32, {1, 1}});
  }
  SafetensorsWriter codes(quantized.path / "model.safetensors", plan_safetensors(specs, {{"format", "pt"}}));
  SafetensorsWriter numbers(plain.path / "model.safetensors", plan_safetensors(plain_specs, {{"format", "pt"}}));
  float scale = 0.01f;
  for (const std::string& name : source.names()) {
    TensorView view = source.tensor(name);
    if (!is_linear(name, view)) {
      codes.write(name, view.bytes);
      numbers.write(name, view.bytes);
      continue;
    }
    // 0x38 + k is 1 + k/8: eight codes of which the numbers are plain to see.
    std::vector<uint8_t> bytes;
    std::vector<float> values;
    scale += 0.01f;
    for (size_t i = 0; i < view.bytes.size() / 4; ++i) {
      auto k = static_cast<uint8_t>(std::to_integer<uint8_t>(view.bytes[4 * i]) & 7);
      bytes.push_back(static_cast<uint8_t>((i % 3 == 0 ? 0x80 : 0) | (0x38 + k)));
      values.push_back((i % 3 == 0 ? -1.0f : 1.0f) * (1.0f + static_cast<float>(k) / 8) * scale);
    }
    codes.write(name, std::as_bytes(std::span(bytes)));
    codes.write(name + "_scale_inv", std::as_bytes(std::span(&scale, 1)));
    numbers.write(name, std::as_bytes(std::span(values)));
  }
  codes.finish();
  numbers.finish();
  std::string config = read_file(model_fixtures() / "mixtral/config.json");
  write_file_atomically(plain.path / "config.json", config);
  std::string with_method =
      config.replace(config.find('{'), 1, R"({"quantization_config": {"quant_method": "fp8", "fmt": "e4m3"},)");
  write_file_atomically(quantized.path / "config.json", with_method);
  Loaded got = loaded_experts(quantized.path), wanted = loaded_experts(plain.path);
  for (const Value& value : got.program.values)
    if (value.kind == ValueKind::parameter) {
      EXPECT_EQ(got.read(value.path), wanted.read(value.path)) << value.path;
    }
  EXPECT_EQ(hf_config_json(got.spec, with_method).find("quantization_config"), std::string::npos);
}

TEST(ExpertFilesShapes, AStackOfOtherSizesIsRefused) {
  ScratchDirectory other("other");
  fs::copy(kStacked / "mixtral", other.path, fs::copy_options::recursive);
  std::string config = read_file(other.path / "config.json");
  size_t at = config.find("\"intermediate_size\": 40");
  ASSERT_NE(at, std::string::npos);
  write_file_atomically(other.path / "config.json", config.replace(at, 23, "\"intermediate_size\": 42"));
  std::string said;
  try {
    loaded_experts(other.path);
  } catch (const UserError& error) {
    said = error.what();
  }
  EXPECT_NE(said.find("model.layers.0.mlp.experts.gate_up_proj"), std::string::npos) << said;
  EXPECT_NE(said.find("[5, 80, 48]"), std::string::npos) << said;
  EXPECT_NE(said.find("[5, 84, 48]"), std::string::npos) << said;
}

}  // namespace
}  // namespace sextant
