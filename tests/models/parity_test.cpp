// Whole models against PyTorch's transformers: logits, loss and every parameter's gradient, tensor by tensor. The expected
// numbers were made by tests/peers/make_model_fixtures.py.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/files.h"
#include "ckpt/convert.h"
#include "ckpt/model_weights.h"
#include "ckpt/safetensors.h"
#include "exec/cpu/cpu_executor.h"
#include "models/hf_config.h"
#include "models/model.h"
#include "passes/lower.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

const fs::path kFixtures = fs::path(SEXTANT_SOURCE_DIR) / "tests/fixtures/models";

std::vector<float> floats(const TensorView& view) {
  std::vector<float> x(static_cast<size_t>(view.shape.count()));
  load_rows(view, {0, row_count(view.shape)}, Transpose::no, x);
  return x;
}

std::vector<int32_t> integers(const TensorView& view) {
  std::vector<int32_t> x(static_cast<size_t>(view.shape.count()));
  std::memcpy(x.data(), view.bytes.data(), view.bytes.size());
  return x;
}

double norm(std::span<const float> x) {
  double sum = 0;
  for (float v : x) sum += static_cast<double>(v) * v;
  return std::sqrt(sum);
}

double distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
  return std::sqrt(sum);
}

struct Case {
  const char* model;     // the Hugging Face directory
  const char* expected;  // the folder with the numbers
  double z_loss;
  RecomputeMode recompute;
};

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  return fmt::format("{}_{}", info.param.expected, static_cast<int>(info.param.recompute));
}

// A bound program with the weights of a fixture in it.
struct Loaded {
  Loaded(const fs::path& directory, const Use& use, const LowerOptions& options)
      : spec(spec_from_hf_config(read_file(directory / "config.json"), "config.json")),
        executor(make_cpu_executor(2)),
        program(lower(build_model(spec, use, single_rank_mesh()), executor->target(), options)),
        arena(executor->allocate(program.arena_bytes)),
        bound(executor->bind(program, *arena)) {
    load_weights(*bound, spec, WeightsReader(directory));
  }
  std::vector<float> read(std::string_view path) const {
    const Value& value = program.at(path);
    std::vector<float> x(static_cast<size_t>(value.shape.count()));
    bound->read(value, std::as_writable_bytes(std::span(x)));
    return x;
  }

  ModelSpec spec;
  std::unique_ptr<Executor> executor;
  Program program;
  std::unique_ptr<Arena> arena;
  std::unique_ptr<Bound> bound;
};

class Parity : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Models, Parity,
                         testing::Values(Case{"gpt2", "gpt2", 0, RecomputeMode::none},
                                         Case{"gpt2", "gpt2", 0, RecomputeMode::selective},
                                         Case{"gpt2", "gpt2", 0, RecomputeMode::full},
                                         Case{"llama", "llama", 0, RecomputeMode::none},
                                         Case{"llama", "llama", 0, RecomputeMode::selective},
                                         Case{"llama", "llama", 0, RecomputeMode::full},
                                         Case{"llama3", "llama3", 0, RecomputeMode::none},
                                         Case{"llama", "llama_zloss", 1e-3, RecomputeMode::none}),
                         name_of_case);

TEST_P(Parity, LossAndEveryGradient) {
  SafetensorsFile expected(kFixtures / GetParam().expected / "expected.safetensors");
  fs::path ids = kFixtures / GetParam().model / "expected.safetensors";
  SafetensorsFile inputs(ids);
  std::vector<int32_t> tokens = integers(inputs.tensor("input_ids")), targets = integers(inputs.tensor("targets"));
  GlobalShape shape = inputs.tensor("input_ids").shape;

  LowerOptions options{.train = AdamW{}};
  options.plan.recompute = GetParam().recompute;
  Loaded model(kFixtures / GetParam().model, {.batch = shape[0], .seq = shape[1], .z_loss = GetParam().z_loss}, options);
  int64_t counted = 0;
  for (int32_t t : targets) counted += t >= 0;
  model.bound->write(model.program.at("tokens"), std::as_bytes(std::span(tokens)));
  model.bound->write(model.program.at("targets"), std::as_bytes(std::span(targets)));
  write_value(*model.bound, model.program.at("loss_scale"), 1.0f / static_cast<float>(counted));
  model.bound->run({.region = RegionKind::forward});
  model.bound->run({.region = RegionKind::backward});

  float loss = read_value<float>(*model.bound, model.program.at("loss")) / static_cast<float>(counted);
  float wanted = floats(expected.tensor("loss"))[0];
  EXPECT_NEAR(loss, wanted, 1e-5 * std::abs(wanted));

  double all = 0;
  std::vector<HfTensor> tensors = architecture_of(model.spec).tensors(model.spec);
  for (const HfTensor& tensor : tensors) {
    double n = norm(floats(expected.tensor("grad." + tensor.name)));
    all += n * n;
  }
  all = std::sqrt(all);
  for (const HfTensor& tensor : tensors) {
    std::vector<float> theirs = floats(expected.tensor("grad." + tensor.name));
    std::vector<float> packed = model.read("grad." + tensor.parameter);
    const Value& value = model.program.at(tensor.parameter);
    int64_t columns = value.shape.rank() == 2 ? value.shape[1] : 1;
    std::vector<float> ours(packed.begin() + tensor.first_row * columns,
                            packed.begin() + (tensor.first_row + tensor.rows) * columns);
    if (tensor.order == HfTensor::Order::transposed) {
      std::vector<float> flipped(ours.size());
      for (int64_t r = 0; r < tensor.rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
          flipped[static_cast<size_t>(c * tensor.rows + r)] = ours[static_cast<size_t>(r * columns + c)];
      ours = flipped;
    }
    ASSERT_EQ(ours.size(), theirs.size()) << tensor.name;
    EXPECT_LE(distance(ours, theirs), 1e-5 * std::max(norm(theirs), 1e-4 * all)) << tensor.name;
  }
}

// Logits through the generation graph: prefill of the whole prompt, then position by position with the cache.
TEST_P(Parity, LogitsWithAndWithoutCache) {
  SafetensorsFile inputs(kFixtures / GetParam().model / "expected.safetensors");
  std::vector<int32_t> tokens = integers(inputs.tensor("input_ids"));
  std::vector<float> logits = floats(inputs.tensor("logits"));
  GlobalShape shape = inputs.tensor("input_ids").shape;
  int64_t seq = shape[1], vocab = inputs.tensor("logits").shape[2];
  for (int64_t block : {seq, int64_t{1}}) {
    Loaded model(kFixtures / GetParam().model,
                 {.kind = Use::Kind::generate, .batch = 1, .seq = block, .cache_positions = seq}, {});
    for (int64_t start = 0; start < seq; start += block) {
      model.bound->write(model.program.at("tokens"),
                         std::as_bytes(std::span(tokens).subspan(static_cast<size_t>(start), static_cast<size_t>(block))));
      write_value(*model.bound, model.program.at("start"), static_cast<int32_t>(start));
      write_value(*model.bound, model.program.at("at"), static_cast<int32_t>(block - 1));
      run_schedule(*model.bound);
      std::vector<float> ours = model.read("logits");
      std::span<const float> theirs(logits.data() + (start + block - 1) * vocab, static_cast<size_t>(vocab));
      EXPECT_LE(distance(ours, theirs), 1e-5 * norm(theirs)) << "position " << start + block - 1;
    }
  }
}

TEST(RoundTrip, TensorsAreByteIdentical) {
  for (const char* name : {"gpt2", "llama", "llama3"}) {
    Loaded model(kFixtures / name, {.kind = Use::Kind::generate, .cache_positions = 4}, {});
    fs::path out = fs::temp_directory_path() / fmt::format("sextant-round-trip-{}-{}", name, ::getpid());
    fs::create_directories(out);
    save_weights(*model.bound, model.spec, out);
    WeightsReader before(kFixtures / name), after(out);
    EXPECT_EQ(before.names(), after.names());
    for (const std::string& tensor : before.names()) {
      TensorView a = before.tensor(tensor), b = after.tensor(tensor);
      EXPECT_EQ(a.shape, b.shape);
      EXPECT_TRUE(std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end())) << tensor;
    }
    fs::remove_all(out);
  }
}

}  // namespace
}  // namespace sextant
