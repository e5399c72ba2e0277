// Plain text, cut at a separator.
#include <fmt/format.h>

#include <array>

#include "data/formats/document_format.h"
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
        records_(open_stream(path, compression_of(path)), options.separator, options.max_document_bytes) {}

  std::optional<std::string_view> next() override {
    auto record = records_.next();
    if (!record) return std::nullopt;
    if (records_.number() > 1) drop_break_at_front(*record);
    if (records_.ended_by_separator()) drop_break_at_back(*record);
    return record;
  }

  std::string place() const override { return fmt::format("{}: document {}", name_, records_.number()); }
  int64_t consumed() const override { return records_.consumed(); }

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
