#include "base/hash.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/files.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

uint64_t hash_of(std::string_view text) {
  ContentHash hash;
  hash.add(std::as_bytes(std::span(text)));
  return hash.value();
}

// XXH3's published values, so that manifests written elsewhere can be read here: of nothing, and of "abc".
TEST(ContentHash, IsXxh3With64Bits) {
  EXPECT_EQ(hex(ContentHash().value()), "2d06800538d394c2");
  EXPECT_EQ(hex(hash_of("abc")), "78af5f94892f3950");
}

TEST(ContentHash, DoesNotDependOnHowTheBytesWereCut) {
  std::string text(100'000, 'x');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7);
  ContentHash pieces;
  for (size_t at = 0, n = 1; at < text.size(); at += n, n = n * 3 % 4099)
    pieces.add(std::as_bytes(std::span(text).subspan(at, std::min(n, text.size() - at))));
  EXPECT_EQ(pieces.value(), hash_of(text));
}

TEST(ContentHash, OfAFileIsThatOfItsBytesAndChangesWithEachOfThem) {
  fs::path path = fs::temp_directory_path() / ("sextant_hash_" + std::to_string(::getpid()));
  std::string text(3 << 20, '\0');  // several pieces
  write_file_atomically(path, text);
  EXPECT_EQ(hash_file(path), hash_of(text));
  text[2 << 20] = 1;
  write_file_atomically(path, text);
  EXPECT_EQ(hash_file(path), hash_of(text));
  EXPECT_NE(hash_of(text), hash_of(std::string(3 << 20, '\0')));
  EXPECT_NE(hash_of(std::string(3, '\0')), hash_of(std::string(4, '\0')));
  fs::remove(path);
  EXPECT_THROW(hash_file(path), UserError);
}

}  // namespace
}  // namespace sextant
