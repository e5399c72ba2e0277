// A model directory with a NaN or an infinity in any of its tensors is refused, by the tensor's name and the element's
// index.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>

#include "architecture_data.h"
#include "base/error.h"
#include "ckpt/safetensors.h"
#include "model_results.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

// A copy of a fixture whose files can be changed, gone afterwards.
class ChangedModel {
 public:
  explicit ChangedModel(std::string_view model) {
    fs::remove_all(root);
    fs::copy(model_fixtures() / model, root);
    whole_ = read_file(file());
    header_ = parse_safetensors("model.safetensors", std::as_bytes(std::span(whole_)));
  }
  ~ChangedModel() { fs::remove_all(root); }

  const std::vector<TensorEntry>& tensors() const { return header_.tensors; }

  // The file as it was, but for this element.
  void replace(const TensorEntry& tensor, int64_t element, float value) const {
    std::string text = whole_;
    int64_t bytes = bits_of(tensor.dtype) / 8;
    uint32_t bits = std::bit_cast<uint32_t>(value);
    uint16_t half = static_cast<uint16_t>(
        tensor.dtype == FileDType::f16 ? (bits >> 16 & 0x8000) | (std::isnan(value) ? 0x7E00 : 0x7C00) : bits >> 16);
    std::memcpy(text.data() + header_.data_begin + tensor.begin + element * bytes,
                bytes == 2 ? static_cast<const void*>(&half) : &bits, static_cast<size_t>(bytes));
    std::ofstream(file(), std::ios::binary) << text;
  }

  // The message of loading it; empty where it loads.
  std::string complaint() const {
    try {
      Loaded(root, {.kind = Use::Kind::generate, .cache_positions = 4}, {});
      return "";
    } catch (const UserError& error) {
      return error.what();
    }
  }

  const fs::path root = fs::temp_directory_path() / fmt::format("sextant-non-finite-{}", ::getpid());

 private:
  fs::path file() const { return root / "model.safetensors"; }
  std::string whole_;
  SafetensorsHeader header_;
};

std::string index_text(const GlobalShape& shape, int64_t element) {
  std::string text;
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    text = fmt::format("{}{}{}", element % shape[dim], text.empty() ? "" : ", ", text);
    element /= shape[dim];
  }
  return "[" + text + "]";
}

class NonFiniteWeights : public testing::TestWithParam<std::string> {};

// Three drawn tensors of each model; a last element, so that what is read in parts is looked at to its end.
TEST_P(NonFiniteWeights, AreRefusedByNameAndIndex) {
  ChangedModel model(GetParam());
  ASSERT_EQ(model.complaint(), "");
  std::mt19937 random(7);
  int refused = 0;
  for (int turn = 0; turn < 3; ++turn) {
    const TensorEntry& tensor = model.tensors()[random() % model.tensors().size()];
    if (tensor.dtype != FileDType::f32 && tensor.dtype != FileDType::bf16 && tensor.dtype != FileDType::f16) continue;
    int64_t element = turn == 0 ? tensor.shape.count() - 1 : static_cast<int64_t>(random() % tensor.shape.count());
    float value = std::array{kNan, kInfinity, -kInfinity}[static_cast<size_t>(turn)];
    model.replace(tensor, element, value);
    std::string complaint = model.complaint(), shown = std::isnan(value) ? "nan" : fmt::format("{}", value);
    if (complaint.empty()) continue;  // a tensor that this model does not read
    ++refused;
    EXPECT_NE(complaint.find(tensor.name), std::string::npos) << complaint;
    EXPECT_NE(complaint.find(fmt::format("element {} is {}", index_text(tensor.shape, element), shown)),
              std::string::npos)
        << tensor.name << ": " << complaint;
  }
  EXPECT_GE(refused, 2);
}

INSTANTIATE_TEST_SUITE_P(Models, NonFiniteWeights, testing::ValuesIn(model_fixture_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace sextant
