// The formats that documents are read from, one table. A new format is one file here that defines a DocumentFormat, and
// one line in document_format.cpp. Enters a file's name; leaves its format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "data/formats/document_file.h"
#include "data/skipped_records.h"

namespace sextant {

struct DocumentFormat;

struct TextOptions {
  const DocumentFormat* format = nullptr;  // nullptr: as the file's name says
  // Plain text is cut wherever this stands; every byte between belongs to a document. Empty: a file is a document. A
  // blank line between documents is "\n\n".
  std::string separator = "<|endoftext|>";
  std::string text_key = "text";  // of an object, or the column of a table
  int64_t max_document_bytes = int64_t{1} << 30;
  OnError on_error = OnError::stop;  // at a document that cannot be read
};

enum class CompressedBy : uint8_t { format, wrapper };  // wrapper: .gz or .zst may follow the name
enum class InFolders : uint8_t { taken, left };

struct DocumentFormat {
  std::string_view name;  // "JSON lines"
  std::span<const std::string_view> extensions;
  DocumentUnit unit = DocumentUnit::document;
  CompressedBy compressed_by = CompressedBy::wrapper;
  InFolders in_folders = InFolders::taken;  // left: only a file that is named itself is read
  std::unique_ptr<DocumentFile> (*open)(const std::filesystem::path& path, const TextOptions& options) = nullptr;
};

extern const DocumentFormat kPlainText;
extern const DocumentFormat kJsonLines;

// The lower-case extension, without .gz or .zst where one follows.
std::string data_extension_of(const std::filesystem::path& path);

// nullptr: the name is that of no text file.
const DocumentFormat* text_format_of(const std::filesystem::path& path);

// As text_format_of, of "a.parquet.gz" too, which is compressed in a way that its format does not allow.
const DocumentFormat* text_format_inside(const std::filesystem::path& path);

std::string text_file_names();  // ".txt, .jsonl, … (also with .gz or .zst after it), .parquet or .arrow"

}  // namespace sextant
