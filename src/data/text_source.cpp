#include "data/text_source.h"

#include <algorithm>

#include "base/error.h"
#include "base/hub_hint.h"
#include "base/path_error.h"
#include "data/decompress.h"
#include "data/foreign_file.h"
#include "data/record_reader.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

// About a file that a folder holds and that is not read from there.
std::optional<Complaint> complaint_in_folder(const fs::path& path) {
  if (const DocumentFormat* format = text_format_of(path))
    return Complaint{.place = path.string(),
                     .got = fmt::format("files of {} in a folder often describe data and are left out", format->name),
                     .hint = "name the file itself to read it"};
  return complaint_about_kind(path);
}

bool is_hidden(const fs::path& path) {
  return path.filename().string().starts_with('.');
}

// Files of a folder and of the folders below it.
struct FolderContents {
  std::vector<fs::path> text, hidden;
  std::optional<Complaint> other;  // about a file of a kind that is not read
};

void add_entry(const fs::path& path, bool hidden, FolderContents& contents) {
  const DocumentFormat* format = text_format_of(path);
  const bool taken = format && format->in_folders == InFolders::taken;
  if (taken)
    (hidden ? contents.hidden : contents.text).push_back(path);
  else if (!contents.other && !hidden)
    contents.other = complaint_in_folder(path);
}

FolderContents contents_of(const fs::path& folder) {
  FolderContents contents;
  int hidden_below = -1;  // depth of the hidden folder that the entry is in
  try {
    for (auto entry = fs::recursive_directory_iterator(folder); entry != fs::end(entry); ++entry) {
      if (entry.depth() <= hidden_below) hidden_below = -1;
      const bool hidden = hidden_below >= 0 || is_hidden(entry->path());
      if (hidden && hidden_below < 0 && entry->is_directory()) hidden_below = entry.depth();
      if (entry->is_regular_file()) add_entry(entry->path(), hidden, contents);
    }
  } catch (const fs::filesystem_error& failure) {
    require_looked_at(failure.path1().empty() ? folder : failure.path1(), failure.code());
    throw UserError({.place = failure.path1().empty() ? folder.string() : failure.path1().string(),
                     .got = fmt::format("cannot list the folder: {}", failure.code().message())});
  }
  std::sort(contents.text.begin(), contents.text.end());
  std::sort(contents.hidden.begin(), contents.hidden.end());
  return contents;
}

void add_folder(const fs::path& folder, TextFiles& files) {
  FolderContents contents = contents_of(folder);
  if (contents.text.empty() && !contents.hidden.empty())
    contents.other = Complaint{.place = contents.hidden.front().string(),
                               .got = "hidden files are left out",
                               .hint = "name the file itself to read it"};
  if (contents.text.empty())
    throw UserError(
        {.place = folder.string(),
         .got = fmt::format("the folder holds no text file{}",
                            contents.other ? fmt::format("; {}: {}", contents.other->place, contents.other->got) : ""),
         .expected = fmt::format("files named {}", text_file_names()),
         .hint = contents.other ? contents.other->hint : ""});
  files.files.insert(files.files.end(), contents.text.begin(), contents.text.end());
  files.hidden.insert(files.hidden.end(), contents.hidden.begin(), contents.hidden.end());
}

// A file that was named and holds nothing is a mistake; in a folder of shards it may be no more than an empty shard.
void refuse_empty(const fs::path& path) {
  std::error_code failure;
  if (fs::is_regular_file(path, failure) && fs::file_size(path, failure) == 0)
    throw UserError({.place = path.string(), .got = "the file is empty", .expected = "text"});
}

}  // namespace

std::string TextFiles::hidden_text() const {
  constexpr size_t kNamed = 3;
  if (hidden.empty()) return "";
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(hidden.size(), kNamed); ++i) names.push_back(hidden[i].string());
  return fmt::format("{} hidden file{} left out: {}{}", hidden.size(), hidden.size() == 1 ? " is" : "s are",
                     fmt::join(names, "; "),
                     hidden.size() > kNamed ? fmt::format("; and {} more", hidden.size() - kNamed) : "");
}

TextFiles list_text_files(std::span<const fs::path> paths, const DocumentFormat* format) {
  TextFiles files;
  for (const fs::path& path : paths) {
    std::error_code failure;
    fs::file_status status = fs::status(path, failure);
    require_looked_at(path, failure);
    if (!fs::exists(status))
      throw UserError({.place = path.string(),
                       .got = "file not found",
                       .expected = "a text file or folder",
                       .hint = dataset_download_hint(path.string())});
    if (fs::is_directory(status)) {
      add_folder(path, files);
    } else if (!format && !text_format_of(path)) {
      if (auto complaint = complaint_about_kind(path)) throw UserError(*complaint);
      throw UserError({.place = path.string(),
                       .got = "the name does not say what kind of text this is",
                       .expected = fmt::format("a file named {}", text_file_names())});
    } else {
      files.files.push_back(path);
    }
  }
  if (files.files.empty()) throw UserError(Complaint{.got = "no text file is given", .expected = "one at least"});
  return files;
}

DocumentReader::DocumentReader(std::span<const fs::path> paths, TextOptions options)
    : options_(std::move(options)), files_(list_text_files(paths, options_.format).files) {
  for (const fs::path& file : files_) {
    std::error_code failure;  // a pipe has no size
    auto size = fs::file_size(file, failure);
    if (!failure) bytes_total_ += static_cast<int64_t>(size);
  }
}

std::optional<std::string_view> DocumentReader::next() {
  while (file_ || open_next_file()) {
    try {
      if (auto document = next_in_file()) return document;
    } catch (const StreamError& error) {
      throw UserError({.place = place(), .got = error.what()});
    }
    file_.reset();
  }
  return std::nullopt;
}

bool DocumentReader::open_next_file() {
  if (files_opened_ == files_.size()) return false;
  const fs::path& path = files_[files_opened_++];
  const DocumentFormat* format = options_.format ? options_.format : text_format_of(path);
  file_name_ = path.string();
  file_ = format->open(path, options_);
  return true;
}

std::optional<std::string_view> DocumentReader::next_in_file() {
  for (;;) {
    try {
      auto document = file_->next();
      if (!document || !document->empty()) return document;
    } catch (const UnreadableDocument& error) {
      if (options_.on_error == OnError::stop) throw;
      Complaint complaint = error.complaints().front();
      complaint.hint.clear();  // three of them stand on one line
      skipped_.add(complaint.text());
    } catch (const RecordTooLong& error) {
      if (options_.on_error == OnError::stop) throw;
      skipped_.add(fmt::format("{}: {}", place(), error.what()));
      file_->discard_record();
    }
  }
}

std::string DocumentReader::place() const {
  if (file_) return file_->place();
  return files_opened_ > 0 ? files_[files_opened_ - 1].string() : "";
}

SkippedRecords for_each_placed_document(std::span<const fs::path> paths, const TextOptions& options,
                                        const std::function<void(const PlacedDocument&)>& visit) {
  DocumentReader reader(paths, options);
  for (const fs::path& path : paths) refuse_empty(path);
  int64_t documents = 0;
  for (; auto document = reader.next(); ++documents) visit({*document, reader.file_name(), reader.number()});
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
