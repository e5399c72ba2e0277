#include "data/formats/parquet/byte_arrays.h"

#include <array>
#include <optional>
#include <string>

#include "data/formats/block_codecs.h"
#include "data/formats/parquet/packed_integers.h"

namespace sextant {

namespace {

using Dictionary = std::vector<std::string_view>;

uint64_t length_of(int64_t stated) {
  if (stated < 0) throw StreamError(fmt::format("a value is said to have {} bytes", stated));
  return static_cast<uint64_t>(stated);
}

class PlainArrays : public ByteArrays {
 public:
  explicit PlainArrays(std::string_view bytes) : in_(bytes) {}
  std::string_view next() override { return in_.take(in_.little_endian<uint32_t>()); }

 private:
  ByteReader in_;
};

class DictionaryArrays : public ByteArrays {
 public:
  DictionaryArrays(std::string_view bytes, const Dictionary* dictionary)
      : indices_(bytes.substr(bytes.empty() ? 0 : 1), bytes.empty() ? 0 : static_cast<uint8_t>(bytes[0])),
        dictionary_(*dictionary) {}

  std::string_view next() override {
    uint32_t index = indices_.next();
    if (index >= dictionary_.size())
      throw StreamError(fmt::format("entry {} of a dictionary that has {}", index, dictionary_.size()));
    return dictionary_[index];
  }

 private:
  RunReader indices_;
  const Dictionary& dictionary_;
};

// All lengths, then all bytes.
class DeltaLengthArrays : public ByteArrays {
 public:
  explicit DeltaLengthArrays(std::string_view bytes) : lengths_(bytes), in_(bytes) {
    in_.take(lengths_.bytes_in_all());
  }
  std::string_view next() override { return in_.take(length_of(lengths_.next())); }

 private:
  DeltaReader lengths_;
  ByteReader in_;
};

// How many bytes each shares with the one before it, then what follows those.
class DeltaArrays : public ByteArrays {
 public:
  explicit DeltaArrays(std::string_view bytes) : shared_(bytes), suffixes_(bytes.substr(shared_.bytes_in_all())) {}

  std::string_view next() override {
    uint64_t shared = length_of(shared_.next());
    if (shared > value_.size())
      throw StreamError(fmt::format("a value shares {} bytes with one that has {}", shared, value_.size()));
    value_.resize(static_cast<size_t>(shared));
    value_ += suffixes_.next();
    if (value_.size() > kMaxBlockBytes) throw StreamError("a value is longer than 2 GiB");
    return value_;
  }

 private:
  DeltaReader shared_;
  DeltaLengthArrays suffixes_;
  std::string value_;
};

template <class Arrays>
std::unique_ptr<ByteArrays> open_arrays(std::string_view bytes, const Dictionary*) {
  return std::make_unique<Arrays>(bytes);
}

std::unique_ptr<ByteArrays> open_dictionary_arrays(std::string_view bytes, const Dictionary* dictionary) {
  if (!dictionary) throw StreamError("the page needs a dictionary, and none comes before it");
  return std::make_unique<DictionaryArrays>(bytes, dictionary);
}

struct ByteArrayEncoding {
  int32_t code;
  std::string_view name;
  std::unique_ptr<ByteArrays> (*open)(std::string_view bytes, const Dictionary* dictionary);  // nullptr: not read
};

constexpr int32_t kPlainEncoding = 0, kPlainDictionaryEncoding = 2;

constexpr std::array kByteArrayEncodings{
    ByteArrayEncoding{kPlainEncoding, "PLAIN", open_arrays<PlainArrays>},
    ByteArrayEncoding{kPlainDictionaryEncoding, "PLAIN_DICTIONARY", open_dictionary_arrays},
    ByteArrayEncoding{3, "RLE", nullptr},
    ByteArrayEncoding{4, "BIT_PACKED", nullptr},
    ByteArrayEncoding{5, "DELTA_BINARY_PACKED", nullptr},
    ByteArrayEncoding{6, "DELTA_LENGTH_BYTE_ARRAY", open_arrays<DeltaLengthArrays>},
    ByteArrayEncoding{7, "DELTA_BYTE_ARRAY", open_arrays<DeltaArrays>},
    ByteArrayEncoding{8, "RLE_DICTIONARY", open_dictionary_arrays},
    ByteArrayEncoding{9, "BYTE_STREAM_SPLIT", nullptr},
};

}  // namespace

std::unique_ptr<ByteArrays> open_byte_arrays(int32_t encoding, std::string_view bytes, const Dictionary* dictionary) {
  for (const ByteArrayEncoding& known : kByteArrayEncodings) {
    if (known.code != encoding) continue;
    if (!known.open) throw StreamError(fmt::format("strings in encoding {}, which is not read", known.name));
    return known.open(bytes, dictionary);
  }
  throw StreamError(fmt::format("strings in encoding {}, which is not known", encoding));
}

Dictionary read_dictionary(int32_t encoding, std::string_view bytes, int32_t count) {
  if (encoding != kPlainEncoding && encoding != kPlainDictionaryEncoding)
    throw StreamError(fmt::format("a dictionary in encoding {}, where PLAIN belongs", encoding));
  constexpr size_t kLengthBytes = 4;  // before every entry
  if (static_cast<size_t>(count) > bytes.size() / kLengthBytes)
    throw StreamError(fmt::format("a dictionary of {} entries in {} bytes", count, bytes.size()));
  Dictionary entries;
  entries.reserve(static_cast<size_t>(count));
  PlainArrays values(bytes);
  for (int32_t i = 0; i < count; ++i) entries.push_back(values.next());
  return entries;
}

}  // namespace sextant
