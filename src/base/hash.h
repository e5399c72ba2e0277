// Hashes of content, for manifests: a file that was cut short, overwritten or damaged on disk has another one. XXH3
// with 64 bits, which is the same on every machine; it guards against accidents, not against somebody who wants two
// files to look alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace sextant {

// Of bytes that come in pieces: how they are cut does not matter.
class ContentHash {
 public:
  ContentHash();
  ~ContentHash();
  ContentHash(ContentHash&&) noexcept;
  ContentHash& operator=(ContentHash&&) noexcept;

  void add(std::span<const std::byte> bytes);
  uint64_t value() const;  // of all that was added so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Reads the whole file, in pieces. UserError when it cannot be opened, RunError when it cannot be read to its end.
uint64_t hash_file(const std::filesystem::path& path);

std::string hex(uint64_t hash);  // 16 digits, as manifests hold it

}  // namespace sextant
