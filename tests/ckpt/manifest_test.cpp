// The manifest of a checkpoint: what it finds, in files of more than one block too, and what it refuses to read.
#include "ckpt/manifest.h"

#include <fstream>

#include "base/files.h"
#include "scratch.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

using ManifestTest = Scratch;

Manifest hashed(const fs::path& directory) {
  Manifest manifest = list_files(directory);
  add_hashes(directory, manifest, hash_alone);
  return manifest;
}

std::vector<std::string> damage(const fs::path& directory, Manifest manifest) {
  std::vector<std::string> found = wrong_sizes(directory, manifest);
  for (std::string& wrong : wrong_content(directory, manifest, hash_alone)) found.push_back(wrong);
  return found;
}

void change_byte(const fs::path& file, int64_t at) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(at);
  stream.put('x');
}

TEST_F(ManifestTest, FindsEveryChange) {
  write_text(root / "a.json", "{}");
  write_text(root / "b.bin", "0123456789");
  write_text(root / "empty", "");
  Manifest manifest = hashed(root);
  ASSERT_EQ(manifest.files.size(), 3u);
  manifest = parse_manifest(manifest_json(manifest), "manifest.json");
  EXPECT_TRUE(damage(root, manifest).empty());
  change_byte(root / "b.bin", 9);
  EXPECT_EQ(damage(root, manifest), (std::vector<std::string>{"b.bin has other content than was written"}));
  write_text(root / "a.json", "{ }");
  fs::remove(root / "empty");
  EXPECT_EQ(damage(root, manifest), (std::vector<std::string>{"a.json has 3 bytes, expected 2", "empty is missing",
                                                              "b.bin has other content than was written"}));
}

// Three blocks and a remainder, by a file with holes.
TEST_F(ManifestTest, FindsAChangeInEveryBlock) {
  fs::path file = root / "large";
  write_text(file, "");
  int64_t bytes = 3 * kHashBlockBytes + 17;
  fs::resize_file(file, static_cast<uintmax_t>(bytes));
  Manifest manifest = hashed(root);
  for (int64_t at : {int64_t{5}, kHashBlockBytes, 3 * kHashBlockBytes - 1, bytes - 1}) {
    write_text(file, "");
    fs::resize_file(file, static_cast<uintmax_t>(bytes));
    change_byte(file, at);
    EXPECT_EQ(damage(root, manifest).size(), 1u) << at;
  }
}

// After sizes have been looked at, files may still go, or be replaced by what cannot be read.
TEST_F(ManifestTest, WhatCannotBeReadIsDamage) {
  for (const char* name : {"a", "b", "c"}) write_text(root / name, "0123456789");
  Manifest manifest = hashed(root);
  fs::remove(root / "a");
  fs::remove(root / "c");
  fs::create_directory(root / "c");
  EXPECT_EQ(wrong_content(root, manifest, hash_alone),
            (std::vector<std::string>{"a cannot be read", "c cannot be read"}));
}

// Who hashes which block does not matter.
TEST_F(ManifestTest, SharesGiveTheSameHash) {
  write_text(root / "a", std::string(1000, 'a'));
  write_text(root / "b", std::string(2000, 'b'));
  Manifest backwards = list_files(root);
  add_hashes(root, backwards, [](size_t count, const std::function<uint64_t(size_t)>& hash_of) {
    std::vector<uint64_t> values(count);
    for (size_t i = count; i-- > 0;) values[i] = hash_of(i);
    return values;
  });
  EXPECT_EQ(manifest_json(backwards), manifest_json(hashed(root)));
}

TEST_F(ManifestTest, RefusesWhatIsNone) {
  for (const char* text : {"", "[]", "{}", R"({"format":1})", R"({"format":2,"files":{}})",
                           R"({"format":1,"files":{"a":1}})", R"({"format":1,"files":{"../a":{"bytes":1,"xxh3":"0"}}})",
                           R"({"format":1,"files":{"a":{"bytes":-1,"xxh3":"0"}}})",
                           R"({"format":1,"files":{"a":{"bytes":18446744073709551615,"xxh3":"0"}}})",
                           R"({"format":1,"files":{"a":{"bytes":1,"xxh3":3}}})"})
    EXPECT_THROW(parse_manifest(text, "manifest.json"), UserError) << text;
}

}  // namespace
}  // namespace sextant
