#include "data/formats/document_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"
#include "data/decompress.h"

namespace sextant {

namespace fs = std::filesystem;

extern const DocumentFormat kJsonArray, kCsv, kTsv, kParquet, kArrow;

namespace {

constexpr std::array kDocumentFormats{&kPlainText, &kJsonLines, &kJsonArray, &kCsv, &kTsv, &kParquet, &kArrow};

std::vector<std::string_view> extensions_packed(CompressedBy by) {
  std::vector<std::string_view> all;
  for (const DocumentFormat* format : kDocumentFormats)
    if (format->compressed_by == by) all.insert(all.end(), format->extensions.begin(), format->extensions.end());
  return all;
}

}  // namespace

std::string document_place(std::string_view file, DocumentUnit unit, int64_t number) {
  constexpr std::array<std::string_view, 4> kBefore{":", ": document ", ": row ", ": element "};
  return fmt::format("{}{}{}", file, kBefore[static_cast<size_t>(unit)], number);
}

void DocumentFile::discard_record() {
  BUG("{}: this format has no records that may be too long", place());
}

std::string data_extension_of(const fs::path& path) {
  fs::path name = compression_of(path) == Compression::none ? path : path.stem();
  std::string extension = name.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

const DocumentFormat* text_format_inside(const fs::path& path) {
  const std::string extension = data_extension_of(path);
  for (const DocumentFormat* format : kDocumentFormats)
    if (std::find(format->extensions.begin(), format->extensions.end(), extension) != format->extensions.end())
      return format;
  return nullptr;
}

const DocumentFormat* text_format_of(const fs::path& path) {
  const DocumentFormat* format = text_format_inside(path);
  bool packed = compression_of(path) != Compression::none;
  return format && packed && format->compressed_by == CompressedBy::format ? nullptr : format;
}

std::string text_file_names() {
  return fmt::format("{} (also with .gz or .zst after it), {}",
                     fmt::join(extensions_packed(CompressedBy::wrapper), ", "),
                     fmt::join(extensions_packed(CompressedBy::format), ", "));
}

}  // namespace sextant
