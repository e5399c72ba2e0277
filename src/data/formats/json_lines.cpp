// One JSON object a line.
#include <fmt/format.h>

#include <array>

#include "data/formats/document_format.h"
#include "data/formats/open_text.h"
#include "data/jsonl.h"
#include "data/record_reader.h"
#include "data/text_encoding.h"

namespace sextant {

namespace {

class JsonLinesFile : public DocumentFile {
 public:
  JsonLinesFile(const std::filesystem::path& path, const TextOptions& options)
      : name_(path.string()), lines_(open_text(path), "\n", options.max_document_bytes), json_(options.text_key) {}

  std::optional<std::string_view> next() override {
    auto line = lines_.next();
    if (!line) return std::nullopt;
    if (lines_.number() == 1 && line->starts_with(kUtf8Mark)) line->remove_prefix(kUtf8Mark.size());
    if (line->find_first_not_of(" \t\r\n") == std::string_view::npos) return std::string_view();
    try {
      return json_.parse(*line, {.file = name_, .number = lines_.number()});
    } catch (const UserError& error) {
      throw UnreadableDocument(error.complaints().front());
    }
  }
  void discard_record() override { lines_.discard_record(); }

  std::string place() const override { return document_place(name_, DocumentUnit::line, lines_.number()); }
  int64_t number() const override { return lines_.number(); }

 private:
  std::string name_;
  RecordReader lines_;
  JsonText json_;
};

constexpr std::array<std::string_view, 2> kJsonLinesExtensions{".jsonl", ".ndjson"};

}  // namespace

extern const DocumentFormat kJsonLines{
    .name = "JSON lines",
    .extensions = kJsonLinesExtensions,
    .unit = DocumentUnit::line,
    .open = [](const auto& path, const TextOptions& options) {
      return std::unique_ptr<DocumentFile>(std::make_unique<JsonLinesFile>(path, options));
    }};

}  // namespace sextant
