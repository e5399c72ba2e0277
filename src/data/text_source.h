// Documents of text files. Enter paths of .txt and .jsonl files (each also as .gz or .zst) or of folders holding them;
// leave the documents that are not empty, in the order of the paths, folders sorted by name. Memory is bounded by the
// longest document. What is wrong with a file is a UserError with file and line; documents that cannot be read are left
// out instead where the options say so, but never a damaged file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/jsonl.h"
#include "data/record_reader.h"
#include "data/skipped_records.h"

namespace sextant {

enum class TextFormat : uint8_t { by_extension, plain, jsonl };

struct TextOptions {
  TextFormat format = TextFormat::by_extension;
  // Plain text is cut wherever this stands, together with one line break on either side of it. Empty: a file is a
  // document. A blank line between documents is "\n\n".
  std::string separator = "<|endoftext|>";
  std::string json_key = "text";
  int64_t max_document_bytes = int64_t{1} << 30;
  OnError on_error = OnError::stop;  // at a document that cannot be read
};

// nullopt: the name is that of no text file.
std::optional<TextFormat> text_format_of(const std::filesystem::path& path);

// Files as they are, folders replaced by the text files in and below them, sorted. UserError when there are none.
std::vector<std::filesystem::path> list_text_files(std::span<const std::filesystem::path> paths, TextFormat format);

class DocumentReader {
 public:
  DocumentReader(std::span<const std::filesystem::path> paths, TextOptions options = {});

  // The next document, until the next call; nullopt after the last.
  std::optional<std::string_view> next();

  std::string place() const;  // of the document that next() returned: "stories.jsonl:17", "a.txt: document 3"
  const std::string& file_name() const { return file_name_; }           // of the same document
  int64_t record() const { return records_ ? records_->number() : 0; }  // its line or number in that file
  const SkippedRecords& skipped() const { return skipped_; }            // so far
  int64_t bytes_total() const { return bytes_total_; }                  // on disk, for progress
  int64_t bytes_done() const;

 private:
  bool open_next_file();
  std::optional<std::string_view> next_in_file();  // nullopt at the end of the file
  std::optional<std::string_view> next_record();
  std::string_view text_of(std::string_view record);  // UserError where it cannot be read
  std::string_view without_separator_breaks(std::string_view record) const;

  TextOptions options_;
  std::vector<std::filesystem::path> files_;
  size_t files_opened_ = 0;
  std::string file_name_;
  TextFormat file_format_ = TextFormat::plain;
  std::optional<RecordReader> records_;  // of the open file
  JsonLineText json_;
  SkippedRecords skipped_;
  int64_t bytes_total_ = 0;
  int64_t bytes_of_closed_ = 0;
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
