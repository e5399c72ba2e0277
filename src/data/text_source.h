// Documents of text files. Enter paths of files in any format of formats/document_format.h, or of folders holding them;
// leave the documents that are not empty, in the order of the paths, folders sorted by name. Memory is bounded by the
// longest document, and in tables by what is compressed as one. What is wrong with a file is a UserError with its
// place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/formats/document_format.h"

namespace sextant {

// Files as they are, folders replaced by the text files in and below them, sorted. UserError when there are none.
std::vector<std::filesystem::path> list_text_files(std::span<const std::filesystem::path> paths,
                                                   const DocumentFormat* format);

class DocumentReader {
 public:
  DocumentReader(std::span<const std::filesystem::path> paths, TextOptions options = {});

  // The next document, until the next call; nullopt after the last.
  std::optional<std::string_view> next();

  std::string place() const;  // of the document that next() returned: "stories.jsonl:17", "a.parquet: row 3"
  int64_t bytes_total() const { return bytes_total_; }  // on disk, for progress
  int64_t bytes_done() const;

 private:
  bool open_next_file();

  TextOptions options_;
  std::vector<std::filesystem::path> files_;
  size_t files_opened_ = 0;
  std::unique_ptr<DocumentFile> file_;  // the open one
  int64_t bytes_total_ = 0;
  int64_t bytes_of_closed_ = 0;
};

// UserError where there is none: a file that was named is empty, or all of them hold nothing but blanks.
void for_each_document(std::span<const std::filesystem::path> paths, const TextOptions& options,
                       const std::function<void(std::string_view)>& visit);

}  // namespace sextant
