// contents.json of a token cache: what each of its token files was made of. Which documents were left out, and where
// the others came from, is known only while text is read; it is kept for every later run on the same cache.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/skipped_records.h"

namespace sextant {

// Where documents of a token file come from. Numbers of records mostly rise by one, so only where they do not is kept.
class DocumentOrigins {
 public:
  struct Origin {
    std::string file;
    int64_t record = 0;  // its line, or its number in the file, from 1
    bool operator==(const Origin&) const = default;
  };
  // From this document on, until the next run begins: the file and the record that its first one is.
  struct Run {
    int64_t document = 0, file = 0, record = 0;
  };

  DocumentOrigins() = default;
  // UserError, with the place, for runs that cannot be.
  DocumentOrigins(std::vector<std::string> files, std::vector<Run> runs, std::string_view place);

  void add(std::string_view file, int64_t record);  // of the next document
  std::optional<Origin> of(int64_t document) const;
  const std::vector<std::string>& files() const { return files_; }
  const std::vector<Run>& runs() const { return runs_; }

 private:
  std::vector<std::string> files_;
  std::vector<Run> runs_;
  int64_t added_ = 0;
};

struct PartContents {
  int64_t documents = 0, tokens = 0;
  int64_t text_bytes = 0;
  SkippedRecords skipped;
  DocumentOrigins origins;
};

using CacheContents = std::map<std::string, PartContents, std::less<>>;  // by token file: "train.bin"

inline constexpr std::string_view kContentsFile = "contents.json";

void write_cache_contents(const std::filesystem::path& directory, const CacheContents& contents);
CacheContents read_cache_contents(const std::filesystem::path& directory);  // UserError when it is not as written

}  // namespace sextant
