// Where the documents of a token file begin. The index of a Megatron pair says so; in other files the id that ends a
// document is looked for, which reads the file once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/packing.h"
#include "data/token_file.h"

namespace sextant {

class DocumentIndex {
 public:
  int64_t count() const;
  TokenRange range(int64_t document) const;  // with its end-of-text token
  int64_t document_at(int64_t token) const;  // the one that holds the token; O(log count)

 private:
  friend std::optional<DocumentIndex> index_documents(std::shared_ptr<const TokenFile> file,
                                                      std::optional<int32_t> end_of_text);
  explicit DocumentIndex(std::shared_ptr<const TokenFile> file) : file_(std::move(file)) {}
  int64_t begin(int64_t document) const;  // that of count() is the end of the file

  std::shared_ptr<const TokenFile> file_;
  std::vector<int64_t> begins_;  // where the file itself has no index
};

// nullopt: the file has no index, and no id is given that ends a document.
std::optional<DocumentIndex> index_documents(std::shared_ptr<const TokenFile> file, std::optional<int32_t> end_of_text);

}  // namespace sextant
