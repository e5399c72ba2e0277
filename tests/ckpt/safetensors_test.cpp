// Reading safetensors: a file of the format's own writer, and every way a file can be wrong.
#include "ckpt/safetensors.h"

#include <cstring>

#include "base/rng.h"
#include "checkout.h"
#include "ckpt/json_walk.h"
#include "scratch.h"

namespace sextant {
namespace {

using SafetensorsOnDisk = Scratch;

const std::filesystem::path kOfficial =
    std::string(checkout::kSources) + "/tests/fixtures/safetensors/official.safetensors";

std::string file_of(std::string_view header, std::string_view data = "") {
  uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file.append(header).append(data);
}

SafetensorsHeader parse(std::string_view file) {
  return parse_safetensors("f.safetensors", std::as_bytes(std::span(file)));
}

// The message about a file; "" when it is accepted.
std::string complaint(std::string_view file) {
  return message_of<UserError>([&] { parse(file); });
}

std::string complaint_about(std::string_view header, std::string_view data = "") {
  return complaint(file_of(header, data));
}

TEST(Safetensors, ReadsTheOfficialWritersFile) {
  SafetensorsFile file(kOfficial);
  EXPECT_EQ(file.tensors().size(), 23u);
  TensorView matrix = file.tensor("matrix");
  EXPECT_EQ(matrix.dtype, FileDType::f32);
  EXPECT_EQ(matrix.shape, (GlobalShape{3, 4}));
  ASSERT_EQ(matrix.bytes.size(), 48u);
  for (int i = 0; i < 12; ++i) {
    float value = 0;
    std::memcpy(&value, matrix.bytes.data() + i * 4, 4);
    EXPECT_EQ(value, static_cast<float>(i));
  }
  EXPECT_EQ(file.tensor("scalar").shape.rank(), 0);
  EXPECT_EQ(file.tensor("empty").bytes.size(), 0u);
  EXPECT_EQ(file.tensor("fp8.e4m3").dtype, FileDType::f8_e4m3);
  EXPECT_EQ(file.tensor("flags").bytes[2], std::byte{1});
  EXPECT_EQ(file.tensor("name \"quoted\" \\ größe\n\t\x01").bytes[0], std::byte{9});
  bool noted = false;
  for (const auto& [key, value] : file.metadata()) noted |= key == "note" && value == "größe \"x\"\n";
  EXPECT_TRUE(noted);
  EXPECT_FALSE(file.contains("none"));
  EXPECT_IN("there is no tensor \"none\"", message_of<UserError>([&] { file.tensor("none"); }));
}

TEST(Safetensors, AcceptsWhatTheFormatAllows) {
  EXPECT_EQ(complaint_about("{}"), "");
  EXPECT_EQ(complaint_about("{}      "), "");
  EXPECT_EQ(complaint_about(R"({"__metadata__":{"a":"b"}})"), "");
  // Fields in any order, data in another order than the header, empty tensors between others, types below a byte.
  SafetensorsHeader header = parse(file_of(R"({"b":{"data_offsets":[1,3],"shape":[1,2],"dtype":"U8"},
      "a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}, "z":{"dtype":"F32","shape":[0,7],"data_offsets":[1,1]},
      "s":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[3,6]}})",
                                           "123456"));
  ASSERT_EQ(header.tensors.size(), 4u);
  EXPECT_EQ(header.tensors[0].name, "a");
  EXPECT_EQ(header.tensors[1].name, "z");
  EXPECT_EQ(header.tensors[2].name, "b");
  EXPECT_EQ(header.tensors[3].name, "s");
}

TEST(Safetensors, RefusesBrokenFraming) {
  EXPECT_IN("f.safetensors: 0 bytes are too few", complaint(""));
  EXPECT_IN("7 bytes are too few", complaint("1234567"));
  EXPECT_IN("claims 1 bytes, but 0 follow", complaint(std::string("\1\0\0\0\0\0\0\0", 8)));
  EXPECT_IN("claims 18446744073709551615 bytes; expected at most 100000000", complaint(std::string(8, '\xff') + "{}"));
  EXPECT_IN("claims 100000001 bytes", complaint(std::string("\x01\xe1\xf5\x05\0\0\0\0", 8) + "{}"));
  EXPECT_IN("claims 100000000 bytes, but 2 follow", complaint(std::string("\x00\xe1\xf5\x05\0\0\0\0", 8) + "{}"));
  EXPECT_IN("does not begin with {", complaint_about("[]"));
  EXPECT_IN("does not begin with {", complaint_about(" {}"));
  EXPECT_IN("does not begin with {", complaint_about("\xEF\xBB\xBF{}"));
  EXPECT_IN("git lfs pull", complaint("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"));
}

TEST(Safetensors, RefusesBrokenJson) {
  EXPECT_IN("f.safetensors: JSON byte", complaint_about("{"));
  EXPECT_IN("broken JSON", complaint_about("{}x"));
  EXPECT_IN("a zero byte", complaint_about(std::string_view("{}\0\0", 4)));
  EXPECT_IN("broken JSON", complaint_about("{\"\xff\":{}}"));
  EXPECT_IN("broken JSON", complaint_about(R"({"a":{"dtype":"U8","shape":[01],"data_offsets":[0,1]}})", "x"));
  std::string deep = R"({"a":{"shape":)" + std::string(1'000'000, '[');
  EXPECT_IN("tensor \"a\": \"shape\" is the wrong kind", complaint_about(deep));
  std::string deep_objects = R"({"__metadata__":)";
  for (int i = 0; i < 100'000; ++i) deep_objects += R"({"a":)";
  EXPECT_IN("wrong kind of JSON value; expected text for every key", complaint_about(deep_objects));
}

TEST(Safetensors, RefusesTheWrongKindOfValue) {
  EXPECT_IN("tensor \"a\": wrong kind", complaint_about(R"({"a":1})"));
  EXPECT_IN("tensor \"a\": wrong kind", complaint_about(R"({"a":[{}]})"));
  EXPECT_IN("__metadata__: wrong kind", complaint_about(R"({"__metadata__":null})"));
  EXPECT_IN("__metadata__: \"k\" is the wrong kind", complaint_about(R"({"__metadata__":{"k":1}})"));
  EXPECT_IN("__metadata__: \"k\" is the wrong kind", complaint_about(R"({"__metadata__":{"k":{"x":"y"}}})"));
  EXPECT_IN("unknown dtype \"F31\"",
            complaint_about(R"({"a":{"dtype":"F31","shape":[],"data_offsets":[0,4]}})", "1234"));
  EXPECT_IN("\"dtype\" is the wrong kind", complaint_about(R"({"a":{"dtype":["F32"]}})"));
  EXPECT_IN("unknown field \"strides\"", complaint_about(R"({"a":{"strides":[1]}})"));
  EXPECT_IN("\"shape\" is the wrong kind", complaint_about(R"({"a":{"shape":{"x":1}}})"));
  EXPECT_IN("\"shape\" is the wrong kind", complaint_about(R"({"a":{"shape":[1.0]}})"));
  EXPECT_IN("\"shape\" is the wrong kind", complaint_about(R"({"a":{"shape":[-1]}})"));
  EXPECT_IN("\"shape\" is the wrong kind", complaint_about(R"({"a":{"shape":[[1]]}})"));
  EXPECT_IN("shape has the number 9223372036854775808", complaint_about(R"({"a":{"shape":[9223372036854775808]}})"));
  EXPECT_IN("\"shape\" is the wrong kind", complaint_about(R"({"a":{"shape":[18446744073709551616]}})"));
  std::string long_shape = R"({"a":{"shape":[1)";
  for (int i = 0; i < 100; ++i) long_shape += ",1";
  EXPECT_IN("shape has more than 64 numbers", complaint_about(long_shape + "]}}"));
  EXPECT_IN("data_offsets has more than 2", complaint_about(R"({"a":{"data_offsets":[0,1,2]}})"));
}

TEST(Safetensors, RefusesIncompleteAndDoubledEntries) {
  EXPECT_IN("tensor \"a\": dtype is missing", complaint_about(R"({"a":{}})"));
  EXPECT_IN("shape is missing", complaint_about(R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", "x"));
  EXPECT_IN("data_offsets is missing", complaint_about(R"({"a":{"dtype":"U8","shape":[1]}})", "x"));
  EXPECT_IN("tensor \"a\": dtype is missing", complaint_about(R"({"a":{},"__metadata__":{}})"));
  EXPECT_IN("data_offsets has 1 numbers",
            complaint_about(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", "x"));
  EXPECT_IN("key \"a\" is given twice", complaint_about(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
                                                          "a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                                                        "x"));
  EXPECT_IN("key \"shape\" is given twice",
            complaint_about(R"({"a":{"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]}})", "x"));
  EXPECT_IN("key \"k\" is given twice", complaint_about(R"({"__metadata__":{"k":"1","k":"2"}})"));
  EXPECT_IN("key \"__metadata__\" is given twice", complaint_about(R"({"__metadata__":{},"__metadata__":{}})"));
}

std::string u8(std::string_view name, int64_t begin, int64_t end) {
  return fmt::format(R"("{}":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}})", name, end - begin, begin, end);
}

TEST(Safetensors, RefusesDataThatDoesNotCoverTheFile) {
  EXPECT_EQ(complaint_about("{" + u8("a", 0, 2) + "," + u8("b", 2, 4) + "}", "1234"), "");
  EXPECT_IN("tensor \"b\": its data begins at 3, after a hole; expected it to begin at 2",
            complaint_about("{" + u8("a", 0, 2) + "," + u8("b", 3, 4) + "}", "1234"));
  EXPECT_IN("tensor \"a\": its data begins at 1, after a hole", complaint_about("{" + u8("a", 1, 4) + "}", "1234"));
  EXPECT_IN("tensor \"b\": its data begins at 1, inside another tensor",
            complaint_about("{" + u8("a", 0, 2) + "," + u8("b", 1, 4) + "}", "1234"));
  EXPECT_IN("inside another tensor", complaint_about("{" + u8("a", 0, 4) + "," + u8("b", 0, 4) + "}", "1234"));
  EXPECT_IN("inside another tensor", complaint_about("{" + u8("a", 0, 4) + "," + u8("b", 2, 2) + "}", "1234"));
  EXPECT_IN("ends at 5, behind the end of the file; expected at most 4 bytes",
            complaint_about("{" + u8("a", 0, 5) + "}", "1234"));
  EXPECT_IN("1 bytes of data belong to no tensor", complaint_about("{" + u8("a", 0, 3) + "}", "1234"));
  EXPECT_IN("4 bytes of data belong to no tensor", complaint_about("{}", "1234"));
}

TEST(Safetensors, RefusesSizesThatDoNotFitTheShape) {
  EXPECT_IN("hold 4 bytes; expected 8 bytes for F32 of shape [2]",
            complaint_about(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234"));
  EXPECT_IN("run backwards", complaint_about(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})", "1"));
  for (std::string_view shape : {"4611686018427387904,4", "9223372036854775807,9223372036854775807",
                                 "4294967296,4294967296,0", "0,4294967296,4294967296", "9223372036854775807"})
    EXPECT_IN("has no size",
              complaint_about(fmt::format(R"({{"a":{{"dtype":"F64","shape":[{}],"data_offsets":[0,0]}}}})", shape)));
  EXPECT_IN("has no size", complaint_about(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}})", "1"));
  EXPECT_IN("hold 9223372036854775807 bytes",
            complaint_about(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,9223372036854775807]}})", "1"));
}

TEST(Safetensors, ShowsHostileNamesSafely) {
  std::string name(5000, 'n');
  std::string said = complaint_about(R"({"\u001b[31m)" + name + R"(":1})");
  EXPECT_LT(said.size(), 400u);
  EXPECT_EQ(said.find('\x1b'), std::string::npos);
  EXPECT_EQ(shown("a\x1b"), "\"a\\u001b\"");
}

TEST(Safetensors, SurvivesRandomDamage) {
  std::string good;
  {
    MappedFile file(kOfficial);
    good = file.text();
  }
  Random random(7, "damage");
  int refused = 0;
  for (uint64_t round = 0; round < 3000; ++round) {
    std::string bad = good;
    uint64_t header = 8 + 1664;
    for (uint64_t hit = 0; hit < 1 + round % 3; ++hit)
      bad[random.below(round * 8 + hit * 2, header)] = static_cast<char>(random.bits(round * 8 + hit * 2 + 1));
    if (round % 5 == 0) bad.resize(random.below(round * 8 + 7, bad.size()));
    refused += complaint(bad).empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 2000);  // the rest changed a name, a value or padding
}

TEST_F(SafetensorsOnDisk, OpeningAFileThatIsNotThere) {
  EXPECT_IN("file not found", message_of<UserError>([&] { SafetensorsFile file(root / "none.safetensors"); }));
  EXPECT_IN("is a directory; expected a file", message_of<UserError>([&] { SafetensorsFile file(root); }));
}

}  // namespace
}  // namespace sextant
