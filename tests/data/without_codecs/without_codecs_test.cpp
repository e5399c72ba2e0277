// The codecs as a build without libsnappy and liblz4 compiles them.
#include <gtest/gtest.h>

#include "data/decompress.h"
#include "data/formats/block_codecs.h"
#include "data/scratch_folder.h"

#if defined(SEXTANT_SNAPPY) || defined(SEXTANT_LZ4)
#error "this test is of a build without the libraries"
#endif

namespace sextant {
namespace {

void expect_missing(BlockDecoder decode, const std::string& format, const std::string& library) {
  std::string out;
  try {
    decode("any", 3, out);
    ADD_FAILURE() << format << " was decoded without " << library;
  } catch (const StreamError& error) {
    EXPECT_TRUE(says(error.what(), {format, "this build has no " + library}));
    EXPECT_TRUE(says(error.hint(), {"install " + library + "-dev", "build again"}));
  }
}

TEST(WithoutCodecs, BlocksAreRefusedByName) {
  expect_missing(decode_snappy, "Snappy", "libsnappy");
  for (BlockDecoder decode : {decode_lz4_raw, decode_lz4_hadoop, decode_lz4_frame})
    expect_missing(decode, "LZ4", "liblz4");
}

}  // namespace
}  // namespace sextant
