#include "data/data_facts.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/path_error.h"
#include "data/decompress.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

class LengthCount {
 public:
  void add(int64_t length) {
    shortest_ = count_ == 0 ? length : std::min(shortest_, length);
    longest_ = std::max(longest_, length);
    total_ += length;
    ++count_;
  }
  int64_t count() const { return count_; }
  int64_t total() const { return total_; }
  std::optional<LengthFacts> facts() const {
    if (count_ == 0) return std::nullopt;
    return LengthFacts{shortest_, longest_, static_cast<double>(total_) / static_cast<double>(count_)};
  }

 private:
  int64_t count_ = 0, total_ = 0, shortest_ = 0, longest_ = 0;
};

bool is_folder(const fs::path& path) {
  return fs::is_directory(look_at(path));
}

std::string kind_of_text(const fs::path& path, const DocumentFormat* format) {
  if (is_folder(path)) return "folder of text";
  constexpr std::string_view kCompressed[] = {"", ", gzip", ", zstd"};
  return fmt::format("{}{}", (format ? format : text_format_of(path))->name,
                     kCompressed[static_cast<size_t>(compression_of(path))]);
}

// At most so many bytes, ending with a whole character.
std::string beginning_of(std::string_view text) {
  constexpr size_t kMost = 200;
  if (text.size() > kMost) {
    size_t end = kMost;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    text = text.substr(0, end);
  }
  return std::string(text);
}

DataFacts inspect_text(const fs::path& path, const TextOptions& options) {
  std::array paths{path};
  DocumentReader reader(paths, options);
  LengthCount lengths;
  std::string first_text;
  while (auto document = reader.next()) {
    if (lengths.count() == 0) first_text = beginning_of(*document);
    lengths.add(std::ssize(*document));
  }
  return {.kind = kind_of_text(path, options.format),
          .bytes_on_disk = reader.bytes_total(),
          .hidden = list_text_files(paths, options.format).hidden_text(),
          .text_bytes = lengths.total(),
          .documents = lengths.count(),
          .lengths = lengths.facts(),
          .first_text = std::move(first_text)};
}

DataFacts inspect_tokens(const fs::path& path, const InspectOptions& options) {
  TokenFile file = open_token_file(path, options.tokens);
  LengthCount lengths;
  int32_t max_id = -1;
  int64_t document_begin = 0;
  const bool marked = options.end_of_text && !file.document_count();
  for_each_piece(file, 0, file.token_count(), [&](int64_t first, std::span<const int32_t> ids) {
    for (int32_t id : ids) max_id = std::max(max_id, id);
    if (!marked) return;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] != *options.end_of_text) continue;
      int64_t end = first + static_cast<int64_t>(i) + 1;
      lengths.add(end - document_begin);
      document_begin = end;
    }
  });
  if (marked && document_begin < file.token_count()) lengths.add(file.token_count() - document_begin);
  for (int64_t i = 0; i < file.document_count().value_or(0); ++i)
    lengths.add(file.document_begin(i + 1) - file.document_begin(i));

  DataFacts facts{.kind = fmt::format("{} tokens", name_of(file.kind())),
                  .bytes_on_disk = file.bytes_on_disk(),
                  .type = file.type(),
                  .tokens = file.token_count()};
  if (max_id >= 0) facts.max_id = max_id;
  if (marked || file.document_count()) facts.documents = lengths.count();
  facts.lengths = lengths.facts();
  facts.first_ids.resize(static_cast<size_t>(std::min<int64_t>(64, file.token_count())));
  file.read(0, facts.first_ids);
  return facts;
}

}  // namespace

DataFacts inspect_data(const fs::path& path, const InspectOptions& options) {
  bool is_text = is_folder(path) || text_format_of(path) || options.text.format;
  return is_text ? inspect_text(path, options.text) : inspect_tokens(path, options);
}

}  // namespace sextant
