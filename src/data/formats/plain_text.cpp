// Plain text, cut at a separator.
#include <fmt/format.h>

#include <array>

#include "data/formats/document_format.h"
#include "data/formats/open_text.h"
#include "data/record_reader.h"
#include "data/text_encoding.h"

namespace sextant {

namespace {

// An empty line is no document, and neither is the end of the line of a separator that ends a file.
bool is_blank(std::string_view text) {
  return text.find_first_not_of("\r\n") == std::string_view::npos;
}

class PlainTextFile : public DocumentFile {
 public:
  PlainTextFile(const std::filesystem::path& path, const TextOptions& options)
      : name_(path.string()), records_(open_text(path), options.separator, options.max_document_bytes) {}

  std::optional<std::string_view> next() override {
    auto record = records_.next();
    if (!record) return std::nullopt;
    if (auto broken = find_broken_utf8(*record))
      throw UnreadableDocument(complaint_about_encoding(
          name_, place(), records_.offset() + static_cast<int64_t>(broken->at), broken->encoding));
    if (records_.offset() == 0 && record->starts_with(kUtf8Mark)) record->remove_prefix(kUtf8Mark.size());
    if (is_blank(*record)) return std::string_view();
    return record;
  }

  std::string place() const override { return document_place(name_, DocumentUnit::document, records_.number()); }
  int64_t number() const override { return records_.number(); }
  void discard_record() override { records_.discard_record(); }

 private:
  std::string name_;
  RecordReader records_;
};

constexpr std::array<std::string_view, 1> kPlainTextExtensions{".txt"};

}  // namespace

extern const DocumentFormat kPlainText{
    .name = "plain text", .extensions = kPlainTextExtensions, .open = [](const auto& path, const TextOptions& options) {
      return std::unique_ptr<DocumentFile>(std::make_unique<PlainTextFile>(path, options));
    }};

}  // namespace sextant
