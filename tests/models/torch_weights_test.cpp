// Weights between us and PyTorch: directories with pytorch_model.bin compute what those with safetensors do, and what
// we write in a 16-bit type is what torch's .to() makes of it. With build/peers there (scripts/peers) also live.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "architecture_data.h"
#include "checkout.h"
#include "model_results.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

const fs::path kTorch = fs::path(checkout::kSources) / "tests/fixtures/torch";
const fs::path kPeer = fs::path(checkout::kSources) / "build/peers/bin/python";
constexpr std::pair<FileDType, DType> kTypes[] = {
    {FileDType::f32, DType::f32}, {FileDType::bf16, DType::bf16}, {FileDType::f16, DType::f16}};

// A directory of its own, gone afterwards.
struct Scratch {
  Scratch() { fs::create_directories(root); }
  ~Scratch() { fs::remove_all(root); }
  const fs::path root = fs::temp_directory_path() / fmt::format("sextant-torch-{}", ::getpid());
};

TEST(TorchWeights, LogitsAreThoseOfSafetensors) {
  Scratch scratch;
  const fs::path& root = scratch.root;
  for (const char* name : {"gpt2", "llama"}) {
    fs::copy(kTorch / name, root / name);
    fs::remove(root / name / "model.safetensors");
    Batch batch{.rows = 1, .seq = 12, .tokens = {}, .targets = {}};
    for (int32_t i = 0; i < 12; ++i) batch.tokens.push_back(i * 7 % 19);
    NamedTensor ours = cached_logits(root / name, batch, 1), theirs = cached_logits(kTorch / name, batch, 1);
    EXPECT_EQ(ours.values, theirs.values) << name;
    EXPECT_NE(ours.values.front(), ours.values.back());
  }
}

Loaded loaded(const fs::path& directory) {
  return Loaded(directory, {.kind = Use::Kind::generate, .cache_positions = 4}, {});
}

TEST(TorchWeights, OverflowNamesTheTensor) {
  Loaded model = loaded(model_fixtures() / "llama");
  EXPECT_EQ(first_overflow(*model.bound, model.spec, FileDType::f16), "");
  const Value& norm = model.program.at("layers.1.mlp.norm.weight");
  std::vector<float> weights = model.read(norm.path);
  for (float least : {65520.0f, -1e6f}) {
    weights[3] = least;
    model.bound->write(norm, std::as_bytes(std::span(weights)));
    EXPECT_EQ(first_overflow(*model.bound, model.spec, FileDType::f16),
              fmt::format("model.layers.1.post_attention_layernorm.weight holds {}", least));
    EXPECT_EQ(first_overflow(*model.bound, model.spec, FileDType::bf16), "");
  }
  weights[3] = 65519.99f;
  model.bound->write(norm, std::as_bytes(std::span(weights)));
  EXPECT_EQ(first_overflow(*model.bound, model.spec, FileDType::f16), "");
}

// A directory that says it is a Mistral, as those are: a Llama with a window.
void make_mistral(const fs::path& directory) {
  fs::copy(model_fixtures() / "llama", directory);
  nlohmann::json config = nlohmann::json::parse(read_file(directory / "config.json"));
  config.update({{"model_type", "mistral"}, {"architectures", {"MistralForCausalLM"}}, {"sliding_window", 4096}});
  write_file_atomically(directory / "config.json", config.dump());
}

// torch.save by transformers, read by us; written by us in every type, read by transformers.
TEST(LiveParity, TransformersAgreesOnWeights) {
  if (!fs::exists(kPeer)) GTEST_SKIP() << "scripts/peers has not been run";
  Scratch scratch;
  const fs::path& root = scratch.root;
  std::string script = fmt::format("{} {}/tests/peers/weights_peer.py", kPeer.string(), checkout::kSources);
  std::string save = script + " save", check = script + " check";
  std::vector<fs::path> sources{root / "source" / "mistral"};
  fs::create_directories(root / "source");
  make_mistral(sources.front());
  for (const std::string& name : model_fixture_names()) sources.push_back(model_fixtures() / name);
  for (const fs::path& source : sources)
    save += fmt::format(" {} {}", source.string(), (root / source.filename()).string());
  ASSERT_EQ(std::system(save.c_str()), 0);
  for (const fs::path& source : sources) {
    std::string name = source.filename();
    WeightsReader before(source), after(root / name);
    for (const std::string& tensor : before.names())
      EXPECT_TRUE(std::ranges::equal(before.tensor(tensor).bytes, after.tensor(tensor).bytes)) << name << " " << tensor;
    Loaded model = loaded(root / name);
    for (const auto& [in_file, dtype] : kTypes) {
      fs::path out = root / fmt::format("{}-{}", name, name_of(dtype));
      fs::create_directories(out);
      save_weights(*model.bound, model.spec, out, {.dtype_of = [&](std::string_view) { return in_file; }});
      write_file_atomically(out / "config.json",
                            hf_config_json(model.spec, read_file(root / name / "config.json"), dtype));
      check += fmt::format(" {} {} {}", (root / name).string(), out.string(), name_of(dtype));
    }
  }
  EXPECT_EQ(std::system(check.c_str()), 0);
}

}  // namespace
}  // namespace sextant
