#include "data/formats/arrow/arrow_file.h"

#include <array>

#include "base/error.h"
#include "base/files.h"
#include "data/formats/block_codecs.h"
#include "data/formats/byte_reader.h"
#include "data/formats/mapped_document.h"
#include "data/formats/missing_column.h"
#include "data/formats/require_utf8.h"

namespace sextant {

namespace {

constexpr std::string_view kArrowMagic = "ARROW1", kFeather1Magic = "FEA1";

template <class Offset>
std::string_view between(std::string_view offsets, size_t row, std::string_view contents) {
  ByteReader in(offsets.substr(row * sizeof(Offset), 2 * sizeof(Offset)));
  auto begin = in.little_endian<Offset>(), end = in.little_endian<Offset>();
  if (begin < 0 || end < begin || static_cast<uint64_t>(end) > contents.size())
    throw StreamError(fmt::format("a value is said to have bytes {} to {} of {}", begin, end, contents.size()));
  return contents.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
}

size_t bytes_of_offsets(ArrowText text, size_t rows) {
  constexpr size_t kViewBytes = 16;
  if (rows == 0) return 0;
  if (text == ArrowText::views) return rows * kViewBytes;
  return (rows + 1) * (text == ArrowText::long_offsets ? sizeof(int64_t) : sizeof(int32_t));
}

}  // namespace

ArrowFile::ArrowFile(std::string name, std::string_view bytes, const TextOptions& options)
    : name_(std::move(name)), bytes_(bytes), max_document_bytes_(options.max_document_bytes) {
  try {
    open(options.text_key);
  } catch (const StreamError& error) {
    throw UserError({.place = name_, .got = error.what(), .expected = "an Arrow IPC file or stream"});
  }
}

void ArrowFile::open(const std::string& column) {
  constexpr size_t kMagicBytes = 8;  // with what fills it up
  if (bytes_.starts_with(kFeather1Magic))
    throw StreamError("the file is Feather version 1, which is not read; version 2 is");
  if (bytes_.starts_with(kArrowMagic)) {
    if (bytes_.size() < 2 * kMagicBytes || !bytes_.ends_with(kArrowMagic))
      throw StreamError("the file is cut short: it does not end with ARROW1");
    at_ = kMagicBytes;
  }
  auto message = read_arrow_message(bytes_.substr(at_));
  if (!message) throw StreamError("the stream ends before its schema");
  ArrowSchema schema = read_arrow_schema(*message, column);
  at_ += message->bytes;
  if (!schema.found) refuse_missing_column(name_, column, schema.names);
  if (!schema.column)
    throw UserError({.place = name_,
                     .got = fmt::format("column \"{}\" holds {}", column, schema.held),
                     .expected = "strings: Utf8, LargeUtf8 or Utf8View"});
  column_ = *schema.column;
}

std::optional<std::string_view> ArrowFile::next() {
  try {
    if (row_in_batch_ == rows_ && !open_batch()) return std::nullopt;
    ++row_;
    auto row = static_cast<size_t>(row_in_batch_++);
    if (!validity_.empty() && !(static_cast<uint8_t>(validity_[row / 8]) >> (row % 8) & 1)) return std::string_view();
    std::string_view document = text_of(row);
    if (std::ssize(document) > max_document_bytes_)
      throw UnreadableDocument(
          {.place = place(),
           .got = fmt::format("the text has {} bytes, over the limit of {}", document.size(), max_document_bytes_)});
    return require_utf8(document, [&] { return place(); });
  } catch (const StreamError& error) {
    throw UserError(
        {.place = fmt::format("{}: record batch {}", name_, batches_), .got = error.what(), .hint = error.hint()});
  }
}

bool ArrowFile::open_batch() {
  rows_ = row_in_batch_ = 0;
  while (rows_ == 0) {
    if (at_ == bytes_.size()) throw StreamError("the file is cut short: the mark that ends the stream is missing");
    auto message = read_arrow_message(bytes_.substr(at_));
    if (!message) {
      at_ = bytes_.size();
      return false;
    }
    at_ += message->bytes;
    if (message->kind == ArrowMessageKind::dictionary_batch) continue;  // of other columns
    if (message->kind != ArrowMessageKind::record_batch) throw StreamError("a message that is no record batch");
    ++batches_;
    ArrowBatch batch = read_arrow_batch(*message, column_);
    validity_ = plain(batch.validity, batch.compression, validity_bytes_);
    offsets_ = plain(batch.offsets, batch.compression, offset_bytes_);
    contents_.clear();
    content_bytes_.resize(batch.contents.size());
    for (size_t i = 0; i < batch.contents.size(); ++i)
      contents_.push_back(plain(batch.contents[i], batch.compression, content_bytes_[i]));
    constexpr int64_t kMostRows = int64_t{1} << 40;  // below it no size overflows
    if (batch.rows > kMostRows || offsets_.size() < bytes_of_offsets(column_.text, static_cast<size_t>(batch.rows)))
      throw StreamError(fmt::format("{} bytes of offsets for {} rows", offsets_.size(), batch.rows));
    if (!validity_.empty() && std::ssize(validity_) < (batch.rows + 7) / 8)
      throw StreamError(fmt::format("{} bytes say which of {} rows are null", validity_.size(), batch.rows));
    rows_ = batch.rows;
  }
  return true;
}

// A compressed buffer begins with its size; -1: this one is stored as it is.
std::string_view ArrowFile::plain(std::string_view stored, ArrowCompression compression, std::string& out) const {
  if (compression == ArrowCompression::none || stored.empty()) return stored;
  ByteReader in(stored);
  auto size = in.little_endian<int64_t>();
  if (size == -1) return in.rest();
  if (size < 0) throw StreamError(fmt::format("a buffer is said to have {} bytes", size));
  (compression == ArrowCompression::zstd ? decode_zstd : decode_lz4_frame)(in.rest(), static_cast<uint64_t>(size), out);
  return out;
}

std::string_view ArrowFile::text_of(size_t row) const {
  if (column_.text == ArrowText::short_offsets) return between<int32_t>(offsets_, row, contents_[0]);
  if (column_.text == ArrowText::long_offsets) return between<int64_t>(offsets_, row, contents_[0]);
  return text_of_view(row);
}

// Up to twelve bytes stand in the view itself; of longer ones the first four, then the buffer and the place in it.
std::string_view ArrowFile::text_of_view(size_t row) const {
  constexpr size_t kViewBytes = 16, kInline = 12, kPrefix = 4;
  ByteReader in(offsets_.substr(row * kViewBytes, kViewBytes));
  auto length = in.little_endian<int32_t>();
  if (length < 0) throw StreamError(fmt::format("a value is said to have {} bytes", length));
  if (static_cast<size_t>(length) <= kInline) return in.take(static_cast<uint64_t>(length));
  in.take(kPrefix);
  auto buffer = in.little_endian<int32_t>(), begin = in.little_endian<int32_t>();
  if (buffer < 0 || buffer >= std::ssize(contents_) || begin < 0 ||
      int64_t{begin} + length > std::ssize(contents_[static_cast<size_t>(buffer)]))
    throw StreamError(
        fmt::format("a value is said to have {} bytes from byte {} of buffer {} on", length, begin, buffer));
  return contents_[static_cast<size_t>(buffer)].substr(static_cast<size_t>(begin), static_cast<size_t>(length));
}

std::string ArrowFile::place() const {
  return document_place(name_, DocumentUnit::row, row_);
}

namespace {

constexpr std::array<std::string_view, 2> kArrowExtensions{".arrow", ".feather"};

}  // namespace

extern const DocumentFormat kArrow{.name = "Arrow",
                                   .extensions = kArrowExtensions,
                                   .unit = DocumentUnit::row,
                                   .compressed_by = CompressedBy::format,
                                   .open = open_mapped<ArrowFile>};

}  // namespace sextant
