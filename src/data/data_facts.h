// Facts about a data file as numbers, for `sextant data inspect`. The input is the path of a text or token file; the
// output comes from one pass over it. Data that cannot be read is a UserError.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/text_source.h"
#include "data/token_file.h"

namespace sextant {

struct LengthFacts {
  int64_t shortest = 0, longest = 0;
  double mean = 0;
};

struct DataFacts {
  // A format's name ("plain text", "JSON lines, gzip"), "folder of text", "flat tokens", "llm.c tokens", "Megatron
  // tokens"
  std::string kind;
  int64_t bytes_on_disk = 0;
  std::string hidden;                  // the hidden files of a folder, which are left out; else empty
  std::optional<int64_t> text_bytes;   // of all documents, decompressed; of text
  std::optional<TokenType> type;       // of tokens
  std::optional<int64_t> tokens;       // of a token file
  std::optional<int64_t> max_id;       // of a token file that is not empty
  std::optional<int64_t> documents;    // unknown in a flat file without end_of_text
  std::optional<LengthFacts> lengths;  // of documents: in tokens with their end-of-text, in bytes for text
  std::string first_text;              // how the first document begins; of text
  std::vector<int32_t> first_ids;      // how the file begins; of a token file
};

struct InspectOptions {
  TextOptions text;
  TokenFileOptions tokens;
  std::optional<int32_t> end_of_text;  // ends a document where the file itself does not say
};

DataFacts inspect_data(const std::filesystem::path& path, const InspectOptions& options = {});

}  // namespace sextant
