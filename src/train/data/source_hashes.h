// sources.json of a cache directory: the hash of every text file that was tokenized there, by its path, size and time.
// The hash is part of a token cache's key. Not every format has checksums: where a file is read again, its content is
// held to the hash, so that a damaged one does not quietly become other text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>

namespace sextant {

class SourceHashes {
 public:
  explicit SourceHashes(const std::filesystem::path& cache);  // a sources.json that cannot be read holds none

  // Of what the file holds: as it is remembered, else the file is read.
  std::string of(const std::filesystem::path& file);

  // Reads the files whose hashes were remembered. UserError where one has other content, though its size and time are
  // the same.
  void require_unchanged(std::span<const std::filesystem::path> files) const;

  // Writes what was read since. Where that fails, the next start reads the files again: returns why.
  std::string remember() const;

 private:
  struct Known {
    int64_t bytes = 0, time = 0;
    std::string hash;
    bool remembered = false;  // from sources.json
  };
  static Known state_of(const std::filesystem::path& file);  // without a hash

  std::filesystem::path place_;
  std::map<std::string, Known> known_;  // by absolute path
  bool changed_ = false;
};

}  // namespace sextant
