#include "data/text_source.h"

#include <algorithm>

#include "base/error.h"
#include "data/foreign_file.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kTextNames = ".txt or .jsonl, also with .gz or .zst after it";

void add_folder(const fs::path& folder, std::vector<fs::path>& files) {
  size_t first = files.size();
  std::optional<Complaint> other;  // about a file of a kind that is not read
  try {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      if (text_format_of(entry.path()))
        files.push_back(entry.path());
      else if (!other)
        other = complaint_about_kind(entry.path());
    }
  } catch (const fs::filesystem_error& failure) {
    throw UserError({.place = failure.path1().empty() ? folder.string() : failure.path1().string(),
                     .got = fmt::format("cannot list the folder: {}", failure.code().message())});
  }
  if (files.size() == first)
    throw UserError({.place = folder.string(),
                     .got = fmt::format("the folder holds no text file{}",
                                        other ? fmt::format("; {}: {}", other->place, other->got) : ""),
                     .expected = fmt::format("files named {}", kTextNames),
                     .hint = other ? other->hint : ""});
  std::sort(files.begin() + static_cast<std::ptrdiff_t>(first), files.end());
}

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

// A file that was named and holds nothing is a mistake; in a folder of shards it may be no more than an empty shard.
void refuse_empty(const fs::path& path) {
  std::error_code failure;
  if (fs::is_regular_file(path, failure) && fs::file_size(path, failure) == 0)
    throw UserError({.place = path.string(), .got = "the file is empty", .expected = "text"});
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace

std::optional<TextFormat> text_format_of(const fs::path& path) {
  fs::path name = compression_of(path) == Compression::none ? path : path.stem();
  fs::path extension = name.extension();
  if (extension == ".txt") return TextFormat::plain;
  if (extension == ".jsonl") return TextFormat::jsonl;
  return std::nullopt;
}

std::vector<fs::path> list_text_files(std::span<const fs::path> paths, TextFormat format) {
  std::vector<fs::path> files;
  for (const fs::path& path : paths) {
    std::error_code failure;
    fs::file_status status = fs::status(path, failure);
    if (!fs::exists(status))
      throw UserError({.place = path.string(), .got = "file not found", .expected = "a text file or folder"});
    if (fs::is_directory(status)) {
      add_folder(path, files);
    } else if (format == TextFormat::by_extension && !text_format_of(path)) {
      if (auto complaint = complaint_about_kind(path)) throw UserError(*complaint);
      throw UserError({.place = path.string(),
                       .got = "the name does not say what kind of text this is",
                       .expected = fmt::format("a file named {}", kTextNames)});
    } else {
      files.push_back(path);
    }
  }
  if (files.empty()) throw UserError(Complaint{.got = "no text file is given", .expected = "one at least"});
  return files;
}

DocumentReader::DocumentReader(std::span<const fs::path> paths, TextOptions options)
    : options_(std::move(options)), files_(list_text_files(paths, options_.format)), json_(options_.json_key) {
  for (const fs::path& file : files_) {
    std::error_code failure;  // a pipe has no size; progress is then unknown, reading is not
    auto size = fs::file_size(file, failure);
    if (!failure) bytes_total_ += static_cast<int64_t>(size);
  }
}

std::optional<std::string_view> DocumentReader::next() {
  while (records_ || open_next_file()) {
    try {
      if (auto document = next_in_file()) return document;
    } catch (const StreamError& error) {
      throw UserError({.place = place(), .got = error.what()});
    }
    bytes_of_closed_ += records_->consumed();
    records_.reset();
  }
  return std::nullopt;
}

bool DocumentReader::open_next_file() {
  if (files_opened_ == files_.size()) return false;
  const fs::path& path = files_[files_opened_++];
  file_name_ = path.string();
  file_format_ = options_.format == TextFormat::by_extension ? *text_format_of(path) : options_.format;
  records_.emplace(open_stream(path, compression_of(path)),
                   file_format_ == TextFormat::jsonl ? "\n" : options_.separator, options_.max_document_bytes);
  return true;
}

std::optional<std::string_view> DocumentReader::next_in_file() {
  while (auto record = next_record()) {
    try {
      std::string_view document = text_of(*record);
      if (!document.empty()) return document;
    } catch (const UserError& error) {
      if (options_.on_error == OnError::stop) throw;
      Complaint complaint = error.complaints().front();
      complaint.hint.clear();  // three of them stand on one line
      skipped_.add(complaint.text());
    }
  }
  return std::nullopt;
}

// Damage of the stream goes on to the caller: what follows it cannot be trusted.
std::optional<std::string_view> DocumentReader::next_record() {
  for (;;) {
    try {
      return records_->next();
    } catch (const RecordTooLong& error) {
      if (options_.on_error == OnError::stop) throw;
      skipped_.add(fmt::format("{}: {}", place(), error.what()));
      records_->discard_record();
    }
  }
}

std::string_view DocumentReader::text_of(std::string_view record) {
  if (file_format_ == TextFormat::jsonl)
    return is_blank(record) ? "" : json_.parse(record, {.file = file_name_, .line = records_->number()});
  // Tokenizers mend broken UTF-8 of plain text; it is a reason to leave a document out, but none to stop.
  if (options_.on_error == OnError::skip && !is_valid_utf8(record))
    throw UserError({.place = place(), .got = "the document is not valid UTF-8", .expected = "UTF-8"});
  return without_separator_breaks(record);
}

std::string_view DocumentReader::without_separator_breaks(std::string_view record) const {
  if (records_->number() > 1) drop_break_at_front(record);
  if (records_->ended_by_separator()) drop_break_at_back(record);
  return record;
}

std::string DocumentReader::place() const {
  int64_t number = records_ ? records_->number() : 0;
  return file_format_ == TextFormat::jsonl ? fmt::format("{}:{}", file_name_, number)
                                           : fmt::format("{}: document {}", file_name_, number);
}

int64_t DocumentReader::bytes_done() const {
  return bytes_of_closed_ + (records_ ? records_->consumed() : 0);
}

SkippedRecords for_each_placed_document(std::span<const fs::path> paths, const TextOptions& options,
                                        const std::function<void(const PlacedDocument&)>& visit) {
  DocumentReader reader(paths, options);
  for (const fs::path& path : paths) refuse_empty(path);
  int64_t documents = 0;
  for (; auto document = reader.next(); ++documents) visit({*document, reader.file_name(), reader.record()});
  std::string place = paths.front().string() + (paths.size() > 1 ? fmt::format(" and {} more", paths.size() - 1) : "");
  require_few_skipped(reader.skipped(), documents, place);
  if (documents > 0) return reader.skipped();
  throw UserError({.place = place,
                   .got = reader.skipped().count == 0 ? "there is no text in it" : reader.skipped().text(),
                   .expected = "one document at least"});
}

SkippedRecords for_each_document(std::span<const fs::path> paths, const TextOptions& options,
                                 const std::function<void(std::string_view)>& visit) {
  return for_each_placed_document(paths, options, [&](const PlacedDocument& document) { visit(document.text); });
}

}  // namespace sextant
