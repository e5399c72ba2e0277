// Plain text, cut at a separator.
#include <fmt/format.h>

#include <array>

#include "data/formats/document_format.h"
#include "data/formats/require_utf8.h"
#include "data/record_reader.h"

namespace sextant {

namespace {

void drop_break_at_front(std::string_view& text) {
  if (text.starts_with("\r\n")) {
    text.remove_prefix(2);
  } else if (text.starts_with('\n')) {
    text.remove_prefix(1);
  }
}

void drop_break_at_back(std::string_view& text) {
  if (text.ends_with("\r\n")) {
    text.remove_suffix(2);
  } else if (text.ends_with('\n')) {
    text.remove_suffix(1);
  }
}

class PlainTextFile : public DocumentFile {
 public:
  PlainTextFile(const std::filesystem::path& path, const TextOptions& options)
      : name_(path.string()),
        records_(open_stream(path, compression_of(path)), options.separator, options.max_document_bytes),
        on_error_(options.on_error) {}

  std::optional<std::string_view> next() override {
    auto record = records_.next();
    if (!record) return std::nullopt;
    // Tokenizers mend broken UTF-8 of plain text; it is a reason to leave a document out, but none to stop.
    if (on_error_ == OnError::skip) require_utf8(*record, [&] { return place(); });
    if (records_.number() > 1) drop_break_at_front(*record);
    if (records_.ended_by_separator()) drop_break_at_back(*record);
    return record;
  }

  std::string place() const override { return document_place(name_, DocumentUnit::document, records_.number()); }
  int64_t number() const override { return records_.number(); }
  int64_t consumed() const override { return records_.consumed(); }
  void discard_record() override { records_.discard_record(); }

 private:
  std::string name_;
  RecordReader records_;
  OnError on_error_;
};

constexpr std::array<std::string_view, 1> kPlainTextExtensions{".txt"};

}  // namespace

extern const DocumentFormat kPlainText{
    .name = "plain text", .extensions = kPlainTextExtensions, .open = [](const auto& path, const TextOptions& options) {
      return std::unique_ptr<DocumentFile>(std::make_unique<PlainTextFile>(path, options));
    }};

}  // namespace sextant
