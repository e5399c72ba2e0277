// Bytes of a file as one stream, plain or compressed with gzip or zstd, in bounded memory.
// Enters a path or bytes in memory; leaves the uncompressed bytes, in order. A stream that breaks off or is damaged is
// a StreamError: only the reader above knows which line that is, and makes it a UserError.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace sextant {

// what() is a clause, as in Complaint::got; hint() a sentence, as in Complaint::hint, or empty.
class StreamError : public std::runtime_error {
 public:
  explicit StreamError(const std::string& what, std::string hint = "")
      : std::runtime_error(what), hint_(std::move(hint)) {}
  const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  virtual size_t read(std::span<char> out) = 0;  // how many bytes came; 0 only at the end (or when out is empty)
  virtual int64_t consumed() const = 0;          // bytes taken from the file so far, compressed ones where it is
};

enum class Compression : uint8_t { none, gzip, zstd };

Compression compression_of(const std::filesystem::path& path);  // by ".gz" or ".zst"

// UserError when the file cannot be opened.
std::unique_ptr<ByteStream> open_stream(const std::filesystem::path& path, Compression compression);

// `bytes` must outlive the stream.
std::unique_ptr<ByteStream> open_stream(std::string_view bytes, Compression compression);

}  // namespace sextant
