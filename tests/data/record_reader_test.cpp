#include "data/record_reader.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <vector>

namespace sextant {
namespace {

// Gives few bytes at a time, so that every edge falls everywhere.
class Trickle : public ByteStream {
 public:
  Trickle(std::string_view bytes, size_t at_once) : bytes_(bytes), at_once_(at_once) {}
  size_t read(std::span<char> out) override {
    size_t n = bytes_.copy(out.data(), std::min(out.size(), at_once_));
    bytes_.remove_prefix(n);
    return n;
  }
  int64_t consumed() const override { return 0; }

 private:
  std::string_view bytes_;
  size_t at_once_;
};

TEST(RecordReader, SeparatorsAcrossReads) {
  const std::string text = "a--b---c-d--\n----e-";
  const std::vector<std::string> expected{"a", "b", "-c-d", "\n", "", "e-"};
  for (size_t at_once = 1; at_once <= text.size(); ++at_once) {
    RecordReader reader(std::make_unique<Trickle>(text, at_once), "--", 100);
    std::vector<std::string> records;
    while (auto record = reader.next()) {
      records.emplace_back(*record);
      EXPECT_EQ(reader.number(), std::ssize(records));
      EXPECT_EQ(text.substr(static_cast<size_t>(reader.offset()), record->size()), *record);
      if (records.size() == 3) {
        EXPECT_EQ(reader.offset(), 6);
      }
    }
    EXPECT_EQ(records, expected) << at_once;
  }
}

TEST(RecordReader, LimitHoldsForEveryRecord) {
  for (size_t at_once : {1, 3, 100}) {
    RecordReader reader(std::make_unique<Trickle>("1234\n12345\n6", at_once), "\n", 4);
    EXPECT_EQ(reader.next(), "1234");
    EXPECT_THROW(reader.next(), StreamError);
    EXPECT_EQ(reader.number(), 2);
    reader.discard_record();
    EXPECT_EQ(reader.next(), "6");
    EXPECT_EQ(reader.offset(), 11);
  }
}

// A short stream of a long text: decoders hold much output when their input is already spent.
TEST(Decompress, SmallReadsOfWhatIsWellCompressed) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "the same line again, number " + std::to_string(i % 7) + "\n";
  std::string gzipped(compressBound(text.size()) + 32, '\0'), zipped(ZSTD_compressBound(text.size()), '\0');
  zipped.resize(ZSTD_compress(zipped.data(), zipped.size(), text.data(), text.size(), 3));
  z_stream state{};
  deflateInit2(&state, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
  state.next_in = reinterpret_cast<Bytef*>(text.data());
  state.avail_in = static_cast<uInt>(text.size());
  state.next_out = reinterpret_cast<Bytef*>(gzipped.data());
  state.avail_out = static_cast<uInt>(gzipped.size());
  deflate(&state, Z_FINISH);
  gzipped.resize(state.total_out);
  deflateEnd(&state);

  for (size_t at_once : {7, 1000, 65536, 1000000}) {
    for (auto& [bytes, compression] :
         {std::pair{&text, Compression::none}, {&gzipped, Compression::gzip}, {&zipped, Compression::zstd}}) {
      auto stream = open_stream(std::string_view(*bytes), compression);
      std::string read, piece(at_once, '\0');
      while (size_t n = stream->read(piece)) read.append(piece, 0, n);
      EXPECT_EQ(read, text) << at_once;
      EXPECT_EQ(stream->consumed(), std::ssize(*bytes));
    }
  }
}

}  // namespace
}  // namespace sextant
