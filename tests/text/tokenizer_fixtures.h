// The files of tests/fixtures/tokenizer, made by HF `tokenizers` (make_fixtures.py there).
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>
#include <cstdint>

#include <cstring>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "checkout.h"
#include "text/tokenizer.h"

namespace sextant {

inline std::filesystem::path tokenizer_fixture(std::string_view name) {
  return std::filesystem::path(checkout::kSources) / "tests/fixtures/tokenizer" / name;
}

// The documents of sample.gz: each a little-endian u32 length and that many bytes.
inline std::vector<std::string> sample_documents() {
  gzFile file = gzopen(tokenizer_fixture("sample.gz").c_str(), "rb");
  if (!file) throw std::runtime_error("cannot open sample.gz");
  std::vector<std::string> documents;
  uint8_t length[4];
  while (gzread(file, length, 4) == 4) {
    std::string document(length[0] | length[1] << 8 | length[2] << 16 | length[3] << 24, '\0');
    EXPECT_EQ(gzread(file, document.data(), static_cast<unsigned>(document.size())), static_cast<int>(document.size()));
    documents.push_back(std::move(document));
  }
  gzclose(file);
  return documents;
}

struct ExpectedIds {
  size_t count = 0;
  uint32_t crc = 0;
  std::vector<uint32_t> ids;  // of the first documents only
};

inline std::vector<ExpectedIds> expected_ids(std::string_view name) {
  std::istringstream lines(read_file(tokenizer_fixture(name)));
  std::vector<ExpectedIds> out;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    ExpectedIds expected;
    words >> expected.count >> expected.crc;
    for (uint32_t id; words >> id;) expected.ids.push_back(id);
    out.push_back(std::move(expected));
  }
  return out;
}

inline uint32_t crc_of(const std::vector<uint32_t>& ids) {
  std::string bytes;
  for (uint32_t id : ids)
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(id >> shift);
  return static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

// The ids of all documents of the sample: of the first ones one by one, in the last line of all together.
inline void expect_ids_of_sample(const Tokenizer& tokenizer, const std::vector<ExpectedIds>& expected) {
  std::vector<std::string> documents = sample_documents();
  ASSERT_EQ(documents.size(), expected.back().count);
  std::vector<uint32_t> all;
  for (size_t i = 0; i < documents.size(); ++i) {
    std::vector<uint32_t> ids = tokenizer.encode(documents[i]);
    all.insert(all.end(), ids.begin(), ids.end());
    if (i + 1 >= expected.size()) continue;
    ASSERT_EQ(ids.size(), expected[i].count) << i << " " << testing::PrintToString(documents[i]);
    ASSERT_EQ(crc_of(ids), expected[i].crc) << i << " " << testing::PrintToString(documents[i]);
  }
  EXPECT_EQ(crc_of(all), expected.back().crc);
}

}  // namespace sextant
