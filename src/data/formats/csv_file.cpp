#include "data/formats/csv_file.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "data/formats/missing_column.h"
#include "data/formats/open_text.h"
#include "data/text_encoding.h"

namespace sextant {

namespace {

constexpr size_t kAllFields = static_cast<size_t>(-1), kMostColumns = 1 << 16;

constexpr auto kQuoteOnly = [] {
  std::array<bool, 256> stops{};
  stops['"'] = true;
  return stops;
}();

}  // namespace

CsvFile::CsvFile(std::unique_ptr<ByteStream> stream, CsvOptions options)
    : options_(std::move(options)), in_(std::move(stream)) {
  for (char c : {options_.separator, '\n', '\r'}) ends_field_[static_cast<unsigned char>(c)] = true;
}

std::optional<std::string_view> CsvFile::next() {
  if (!has_header_) read_header();
  if (!read_record(column_)) return std::nullopt;
  if (fields_ == 0) return std::string_view();  // a blank line
  if (fields_ != columns_.size())
    throw UnreadableDocument({.place = place(),
                              .got = fmt::format("the row has {} fields", fields_),
                              .expected = fmt::format("{}, as the header has", columns_.size()),
                              .hint = "a field that holds separators or line breaks stands in quotes."});
  if (auto broken = find_broken_utf8(text_))
    throw UnreadableDocument({.place = place(),
                              .got = not_utf8(*broken),
                              .expected = "text in UTF-8",
                              .hint = conversion_hint(options_.name, broken->encoding)});
  return text_;
}

void CsvFile::read_header() {
  has_header_ = true;
  if (!read_record(kAllFields)) return;  // an empty file has no documents
  auto found = std::find(columns_.begin(), columns_.end(), options_.column);
  if (found == columns_.end())
    refuse_missing_column(place(), options_.column, columns_, "a first row with the names of the columns");
  if (std::count(columns_.begin(), columns_.end(), options_.column) > 1)
    throw UserError({.place = place(), .got = fmt::format("column \"{}\" is there twice", options_.column)});
  column_ = static_cast<size_t>(found - columns_.begin());
}

bool CsvFile::read_record(size_t kept) {
  line_ = in_.line();
  fields_ = 0;
  text_.clear();
  if (in_.peek() == StreamCharacters::kEnd) return false;
  if (in_.peek() == '\n' || in_.peek() == '\r') return take_line_end();
  for (;;) {
    bool all = kept == kAllFields;
    read_field(all || fields_ == kept ? Field::kept : Field::skipped);
    ++fields_;
    if (all) {
      if (columns_.size() == kMostColumns) throw StreamError(fmt::format("more than {} columns", kMostColumns));
      columns_.push_back(text_);
      text_.clear();
    }
    if (in_.peek() != options_.separator) return take_line_end();
    in_.get();
  }
}

bool CsvFile::take_line_end() {
  if (in_.get() == '\r' && in_.peek() == '\n') in_.get();
  return true;
}

void CsvFile::read_field(Field field) {
  if (in_.peek() == '"') return read_quoted(field);
  in_.read_until(ends_field_, [&](std::string_view piece) { take_piece(field, piece); });
}

void CsvFile::read_quoted(Field field) {
  int64_t begin = in_.line();
  in_.get();
  for (;;) {
    in_.read_until(kQuoteOnly, [&](std::string_view piece) { take_piece(field, piece); });
    if (in_.get() == StreamCharacters::kEnd)
      throw UserError({.place = fmt::format("{}:{}", options_.name, begin),
                       .got = "a field's quote never ends",
                       .expected = "'\"' at its end, and every '\"' in it doubled"});
    if (in_.peek() != '"') break;
    in_.get();
    take_piece(field, "\"");
  }
  int c = in_.peek();
  if (c != StreamCharacters::kEnd && !ends_field_[static_cast<size_t>(c)])
    throw UserError({.place = fmt::format("{}:{}", options_.name, in_.line()),
                     .got = "text follows the quote that ends a field",
                     .expected = "every '\"' in a quoted field doubled"});
}

void CsvFile::take_piece(Field field, std::string_view piece) {
  if (field == Field::skipped) return;
  if (std::ssize(text_) + std::ssize(piece) > options_.max_document_bytes)
    throw StreamError(fmt::format("no field ends within {} bytes, the limit", options_.max_document_bytes));
  text_ += piece;
}

std::string CsvFile::place() const {
  return document_place(options_.name, DocumentUnit::line, line_);
}

namespace {

template <char separator>
std::unique_ptr<DocumentFile> open_csv(const std::filesystem::path& path, const TextOptions& options) {
  return std::make_unique<CsvFile>(open_text(path), CsvOptions{.name = path.string(),
                                                               .column = options.text_key,
                                                               .separator = separator,
                                                               .max_document_bytes = options.max_document_bytes});
}

constexpr std::array<std::string_view, 1> kCsvExtensions{".csv"}, kTsvExtensions{".tsv"};

}  // namespace

extern const DocumentFormat kCsv{
    .name = "comma-separated values", .extensions = kCsvExtensions, .unit = DocumentUnit::line, .open = open_csv<','>};
extern const DocumentFormat kTsv{
    .name = "tab-separated values", .extensions = kTsvExtensions, .unit = DocumentUnit::line, .open = open_csv<'\t'>};

}  // namespace sextant
