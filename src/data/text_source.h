// Documents of text files. Enter paths of files in any format of formats/document_format.h, or of folders holding them;
// leave the documents that are not empty, in the order of the paths, folders sorted by name. Memory is bounded by the
// longest document, and in tables by what is compressed as one. What is wrong with a file is a UserError with its
// place; documents that cannot be read are left out instead where the options say so, but never a damaged file.
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
#include "data/skipped_records.h"

namespace sextant {

struct TextFiles {
  std::vector<std::filesystem::path> files;
  // Text files of folders that are left out, because their name or that of a folder around them begins with a dot: what
  // editors, notebooks and downloads leave.
  std::vector<std::filesystem::path> hidden;

  std::string hidden_text() const;  // "2 hidden files are left out: data/.a.txt; data/.git/b.txt"; empty: none are
};

// Files as they are, folders replaced by the text files in and below them, sorted. UserError when there are none.
TextFiles list_text_files(std::span<const std::filesystem::path> paths, const DocumentFormat* format);

class DocumentReader {
 public:
  DocumentReader(std::span<const std::filesystem::path> paths, TextOptions options = {});

  // The next document, until the next call; nullopt after the last.
  std::optional<std::string_view> next();

  std::string place() const;  // of the document that next() returned: "stories.jsonl:17", "a.parquet: row 3"
  const std::string& file_name() const { return file_name_; }     // of the same document
  int64_t number() const { return file_ ? file_->number() : 0; }  // its line, row or number in that file
  const SkippedRecords& skipped() const { return skipped_; }      // so far
  int64_t bytes_total() const { return bytes_total_; }            // on disk

 private:
  bool open_next_file();
  std::optional<std::string_view> next_in_file();  // nullopt at the end of the file

  TextOptions options_;
  std::vector<std::filesystem::path> files_;
  size_t files_opened_ = 0;
  std::unique_ptr<DocumentFile> file_;  // the open one
  std::string file_name_;               // of the same
  SkippedRecords skipped_;
  int64_t bytes_total_ = 0;
};

// A document and where it stands.
struct PlacedDocument {
  std::string_view text;
  std::string_view file;
  int64_t record = 0;  // its line, or its number in the file, from 1
};

// UserError where there is none: a file that was named is empty, or all of them hold nothing but blanks; and where too
// many were skipped. Returns those that were.
SkippedRecords for_each_placed_document(std::span<const std::filesystem::path> paths, const TextOptions& options,
                                        const std::function<void(const PlacedDocument&)>& visit);
SkippedRecords for_each_document(std::span<const std::filesystem::path> paths, const TextOptions& options,
                                 const std::function<void(std::string_view)>& visit);

}  // namespace sextant
