// Writing safetensors: byte for byte what the format's own writer gives, in pieces, in any order.
#include "ckpt/safetensors_writer.h"

#include <thread>

#include "base/rng.h"
#include "checkout.h"
#include "scratch.h"

namespace sextant {
namespace {

using SafetensorsWriterTest = Scratch;

const std::filesystem::path kOfficial =
    std::string(checkout::kSources) + "/tests/fixtures/safetensors/official.safetensors";

std::vector<TensorSpec> specs_of(const SafetensorsFile& file) {
  std::vector<TensorSpec> specs;
  for (const TensorEntry& tensor : file.tensors())
    specs.insert(specs.begin(), {tensor.name, tensor.dtype, tensor.shape});
  return specs;
}

TEST_F(SafetensorsWriterTest, ResavesTheOfficialFileByteForByte) {
  SafetensorsFile official(kOfficial);
  SafetensorsWriter writer(root / "copy.safetensors", plan_safetensors(specs_of(official), official.metadata()));
  for (const TensorEntry& tensor : official.tensors()) writer.write(tensor.name, official.tensor(tensor.name).bytes);
  writer.finish();
  EXPECT_TRUE(read_file(root / "copy.safetensors") == read_file(kOfficial));
}

TEST_F(SafetensorsWriterTest, StreamingGivesTheSameFile) {
  SafetensorsFile official(kOfficial);
  SafetensorsWriter writer(root / "copy.safetensors", plan_safetensors(specs_of(official), official.metadata()));
  for (const TensorEntry& tensor : official.tensors())
    writer.stream(tensor.name, [&](RowRange rows, std::span<std::byte> block) {
      int64_t row_bytes = (tensor.end - tensor.begin) / row_count(tensor.shape);
      auto from = official.tensor(tensor.name).bytes.subspan(static_cast<size_t>(rows.begin * row_bytes), block.size());
      std::copy(from.begin(), from.end(), block.begin());
    });
  writer.finish();
  EXPECT_TRUE(read_file(root / "copy.safetensors") == read_file(kOfficial));
}

// Known from the format's own tests of an empty file: eight bytes of length, "{}" padded to eight.
TEST(SafetensorsLayout, PadsTheHeaderToEight) {
  EXPECT_EQ(plan_safetensors({}).header, std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
  for (std::string name = "n"; name.size() < 20; name += "n")
    EXPECT_EQ(plan_safetensors({{name, FileDType::u8, {3}}}).header.size() % 8, 0u);
}

TEST(SafetensorsLayout, OrdersByTypeThenName) {
  SafetensorsLayout layout = plan_safetensors({{"b", FileDType::u8, {3}},
                                               {"z", FileDType::f32, {1}},
                                               {"a", FileDType::f32, {2, 2}},
                                               {"c", FileDType::i64, {1}},
                                               {"d", FileDType::bf16, {1}}});
  std::string order;
  int64_t offset = 0;
  for (const TensorEntry& tensor : layout.tensors) {
    order += tensor.name;
    EXPECT_EQ(tensor.begin, offset);
    offset = tensor.end;
  }
  EXPECT_EQ(order, "cazdb");
  EXPECT_EQ(layout.data_bytes(), 8 + 16 + 4 + 2 + 3);
}

TEST(SafetensorsLayout, RefusesWhatCannotBeWritten) {
  EXPECT_THROW(plan_safetensors({{"a", FileDType::u8, {1}}, {"a", FileDType::f32, {1}}}), Bug);
  EXPECT_THROW(plan_safetensors({{"__metadata__", FileDType::u8, {1}}}), Bug);
  EXPECT_THROW(plan_safetensors({{"a", FileDType::u8, {INT64_MAX, 2}}}), Bug);
  EXPECT_THROW(plan_safetensors({{"a", FileDType::f4, {3}}}), Bug);
  EXPECT_THROW(plan_safetensors({{"\xff", FileDType::u8, {1}}}), UserError);
}

TEST_F(SafetensorsWriterTest, BlocksOfAStreamCoverEveryRowOnce) {
  int64_t rows = 5000, columns = 1000;  // 20 MB: several blocks
  std::filesystem::path path = root / "big.safetensors";
  SafetensorsWriter writer(path, plan_safetensors({{"w", FileDType::f32, {rows, columns}}}));
  int64_t next = 0, blocks = 0;
  writer.stream("w", [&](RowRange range, std::span<std::byte> block) {
    EXPECT_EQ(range.begin, next);
    next = range.end;
    ++blocks;
    auto* values = reinterpret_cast<float*>(block.data());
    for (int64_t i = 0; i < range.count() * columns; ++i) values[i] = static_cast<float>(range.begin * columns + i);
  });
  writer.finish();
  EXPECT_EQ(next, rows);
  EXPECT_GT(blocks, 1);
  SafetensorsFile file(path);
  const auto* values = reinterpret_cast<const float*>(file.tensor("w").bytes.data());
  for (int64_t i = 0; i < rows * columns; i += 997) ASSERT_EQ(values[i], static_cast<float>(i));
}

TEST_F(SafetensorsWriterTest, ManyWritersFillOneFile) {
  SafetensorsLayout layout = plan_safetensors({{"w", FileDType::u16, {64, 32}}, {"b", FileDType::u16, {64}}});
  std::filesystem::path path = root / "shared.safetensors";
  std::vector<std::thread> ranks;
  for (int64_t rank = 0; rank < 4; ++rank)
    ranks.emplace_back([&, rank] {
      SafetensorsWriter writer(path, layout, Share::part);
      RowRange rows{rank * 16, rank * 16 + 16};
      std::vector<uint16_t> matrix(16 * 32), bias(16);
      for (size_t i = 0; i < matrix.size(); ++i)
        matrix[i] = static_cast<uint16_t>(rows.begin * 32 + static_cast<int64_t>(i));
      for (size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<uint16_t>(rows.begin + static_cast<int64_t>(i));
      writer.write_rows("w", rows, std::as_bytes(std::span(matrix)));
      writer.write_rows("b", rows, std::as_bytes(std::span(bias)));
      writer.finish();
    });
  for (std::thread& rank : ranks) rank.join();
  SafetensorsFile file(path);
  const auto* matrix = reinterpret_cast<const uint16_t*>(file.tensor("w").bytes.data());
  const auto* bias = reinterpret_cast<const uint16_t*>(file.tensor("b").bytes.data());
  for (int i = 0; i < 64 * 32; ++i) ASSERT_EQ(matrix[i], i);
  for (int i = 0; i < 64; ++i) ASSERT_EQ(bias[i], i);
}

TEST_F(SafetensorsWriterTest, FinishNoticesMissingData) {
  std::vector<std::byte> row(8);
  SafetensorsWriter writer(root / "f.safetensors", plan_safetensors({{"w", FileDType::f32, {2, 2}}}));
  writer.write_rows("w", {0, 1}, row);
  EXPECT_THROW(writer.finish(), Bug);
  EXPECT_THROW(writer.write_rows("w", {1, 3}, row), Bug);
  EXPECT_THROW(writer.write_rows("w", {1, 2}, std::span(row).first(7)), Bug);
  EXPECT_THROW(writer.write("none", row), Bug);
  EXPECT_THROW(writer.write("w", row), Bug);
  writer.write_rows("w", {1, 2}, row);
  writer.finish();
}

TEST_F(SafetensorsWriterTest, RandomLayoutsSurviveTheRoundTrip) {
  for (uint64_t round = 0; round < 40; ++round) {
    Random draw(round, "layout");
    uint64_t at = 0;
    std::vector<TensorSpec> specs;
    for (uint64_t i = 0, n = draw.below(at++, 12); i < n; ++i) {
      std::vector<int64_t> dims(draw.below(at++, 4));
      for (int64_t& dim : dims) dim = static_cast<int64_t>(draw.below(at++, 5)) * 4;  // whole bytes for small types
      if (dims.empty()) dims = {4};
      specs.push_back({fmt::format("t{}", i), static_cast<FileDType>(draw.below(at++, 22)), GlobalShape(dims)});
    }
    std::filesystem::path path = root / "random.safetensors";
    Metadata metadata{{"z", "1"}, {"a", "2"}};
    SafetensorsWriter writer(path, plan_safetensors(specs, metadata));
    auto content = [&](const TensorSpec& spec) {
      std::string bytes(static_cast<size_t>(*bytes_of(spec.dtype, spec.shape)), '\0');
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(Random(9, spec.name).bits(i));
      return bytes;
    };
    for (const TensorSpec& spec : specs) {
      std::string bytes = content(spec);
      writer.write(spec.name, std::as_bytes(std::span(bytes)));
    }
    writer.finish();
    SafetensorsFile file(path);
    ASSERT_EQ(file.tensors().size(), specs.size());
    EXPECT_EQ(file.metadata(), metadata);
    for (const TensorSpec& spec : specs) {
      TensorView view = file.tensor(spec.name);
      EXPECT_EQ(view.dtype, spec.dtype);
      EXPECT_EQ(view.shape, spec.shape);
      std::string expected = content(spec);
      EXPECT_TRUE(std::ranges::equal(view.bytes, std::as_bytes(std::span(expected))));
    }
  }
}

}  // namespace
}  // namespace sextant
