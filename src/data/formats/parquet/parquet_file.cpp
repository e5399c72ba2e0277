#include "data/formats/parquet/parquet_file.h"

#include <zlib.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/files.h"
#include "data/formats/block_codecs.h"
#include "data/formats/mapped_document.h"
#include "data/formats/missing_column.h"
#include "data/formats/require_utf8.h"

namespace sextant {

namespace {

struct ParquetCodec {
  std::string_view name;
  BlockDecoder decode;  // nullptr: not read
};

void copy_block(std::string_view block, uint64_t size, std::string& out) {
  if (block.size() != size) throw StreamError(fmt::format("{} bytes where {} are stated", block.size(), size));
  out.assign(block);
}

// In the order of their numbers.
constexpr std::array kParquetCodecs{ParquetCodec{"UNCOMPRESSED", copy_block}, ParquetCodec{"SNAPPY", decode_snappy},
                                    ParquetCodec{"GZIP", decode_gzip},        ParquetCodec{"LZO", nullptr},
                                    ParquetCodec{"BROTLI", nullptr},          ParquetCodec{"LZ4", decode_lz4_hadoop},
                                    ParquetCodec{"ZSTD", decode_zstd},        ParquetCodec{"LZ4_RAW", decode_lz4_raw}};

constexpr std::array<std::string_view, 8> kParquetTypes{"BOOLEAN", "INT32",  "INT64",      "INT96",
                                                        "FLOAT",   "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"};

BlockDecoder decoder_of(int32_t codec) {
  if (codec < 0 || codec >= std::ssize(kParquetCodecs))
    throw StreamError(fmt::format("the column is compressed with codec {}, which is not known", codec));
  const ParquetCodec& known = kParquetCodecs[static_cast<size_t>(codec)];
  if (!known.decode)
    throw StreamError(fmt::format(
        "the column is compressed with {}, which is not read (SNAPPY, GZIP, ZSTD, LZ4 and LZ4_RAW are)", known.name));
  return known.decode;
}

}  // namespace

ParquetFile::ParquetFile(std::string name, std::string_view bytes, const TextOptions& options)
    : name_(std::move(name)), bytes_(bytes), max_document_bytes_(options.max_document_bytes) {
  try {
    open(options.text_key);
  } catch (const StreamError& error) {
    throw UserError({.place = name_, .got = error.what(), .expected = "a Parquet file"});
  }
}

void ParquetFile::open(const std::string& column) {
  ParquetFooter footer = find_parquet_footer(bytes_);
  std::vector<ParquetColumn> columns = read_parquet_columns(footer.metadata);
  const ParquetColumn& chosen = choose(columns, column);
  optional_ = chosen.repetition == ParquetRepetition::optional;
  groups_ = read_parquet_row_groups(footer, chosen.leaf);
}

const ParquetColumn& ParquetFile::choose(const std::vector<ParquetColumn>& columns, const std::string& wanted) const {
  auto found = std::find_if(columns.begin(), columns.end(), [&](const ParquetColumn& c) { return c.name == wanted; });
  if (found == columns.end()) {
    std::vector<std::string> names;
    for (const ParquetColumn& column : columns) names.push_back(column.name);
    refuse_missing_column(name_, wanted, names);
  }
  std::string held;
  if (!found->type)
    held = "a group of columns";
  else if (found->repetition == ParquetRepetition::repeated)
    held = "a list in every row";
  else if (found->type != ParquetType::byte_array)
    held = kParquetTypes[static_cast<size_t>(*found->type)];
  if (!held.empty())
    throw UserError({.place = name_,
                     .got = fmt::format("column \"{}\" holds {}", wanted, held),
                     .expected = "a string (BYTE_ARRAY) in every row"});
  return *found;
}

std::optional<std::string_view> ParquetFile::next() {
  try {
    if (rows_in_page_ == 0 && !open_page()) return std::nullopt;
    ++row_;
    --rows_in_page_;
    if (levels_ && levels_->next() == 0) return std::string_view();  // a null
    std::string_view document = values_->next();
    if (std::ssize(document) > max_document_bytes_)
      throw UnreadableDocument(
          {.place = place(),
           .got = fmt::format("the text has {} bytes, over the limit of {}", document.size(), max_document_bytes_)});
    return require_utf8(document, [&] { return place(); });
  } catch (const StreamError& error) {
    throw UserError({.place = page_place(), .got = error.what(), .hint = error.hint()});
  }
}

bool ParquetFile::open_row_group() {
  if (groups_opened_ == groups_.size()) return false;
  const ParquetRowGroup& group = groups_[groups_opened_++];
  chunk_ = group.chunk->bytes;
  rows_in_chunk_ = group.rows;
  pages_opened_ = 0;
  dictionary_.reset();
  return true;
}

bool ParquetFile::open_page() {
  while (rows_in_page_ == 0) {
    while (rows_in_chunk_ == 0)
      if (!open_row_group()) return false;
    ++pages_opened_;
    ParquetPage page = read_parquet_page(chunk_);
    ByteReader in(chunk_);
    in.take(page.header_bytes);
    std::string_view stored = in.take(static_cast<uint64_t>(page.stored_size));
    chunk_ = in.rest();
    if (page.checksum && *page.checksum != crc32_z(0, reinterpret_cast<const Bytef*>(stored.data()), stored.size()))
      throw StreamError("the page is damaged: its checksum does not match");
    if (page.kind == ParquetPage::Kind::dictionary) {
      std::string_view entries = uncompressed(stored, page.size, dictionary_bytes_);
      dictionary_ = read_dictionary(page.encoding, entries, page.values);
    } else if (page.kind != ParquetPage::Kind::index) {
      open_data(page, stored);
    }
  }
  return true;
}

void ParquetFile::open_data(const ParquetPage& page, std::string_view stored) {
  constexpr int32_t kRle = 3;
  if (page.values > rows_in_chunk_)
    throw StreamError(fmt::format("the page has {} values where {} rows are left", page.values, rows_in_chunk_));
  const bool second = page.kind == ParquetPage::Kind::data_v2;
  std::string_view levels, values;
  if (second) {
    ByteReader in(stored);
    in.take(static_cast<uint64_t>(page.repetition_bytes));
    levels = in.take(static_cast<uint64_t>(page.definition_bytes));
    int64_t size = int64_t{page.size} - page.repetition_bytes - page.definition_bytes;
    values = in.rest();
    if (page.compressed && !values.empty()) values = uncompressed(values, size, page_bytes_);
  } else {
    ByteReader in(uncompressed(stored, page.size, page_bytes_));
    if (optional_) {
      if (page.level_encoding != kRle)
        throw StreamError(
            fmt::format("definition levels in encoding {}, which is not read (RLE is)", page.level_encoding));
      levels = in.take(in.little_endian<uint32_t>());
    }
    values = in.rest();
  }
  levels_.reset();
  if (optional_) levels_.emplace(levels, 1);
  constexpr int32_t kPlain = 0;  // where all are null there may be no bytes at all, not even of an encoding's header
  values_ = open_byte_arrays(values.empty() ? kPlain : page.encoding, values, dictionary_ ? &*dictionary_ : nullptr);
  rows_in_page_ = page.values;
  rows_in_chunk_ -= page.values;
}

std::string_view ParquetFile::uncompressed(std::string_view stored, int64_t size, std::string& out) const {
  if (size < 0) throw StreamError(fmt::format("{} bytes of values are stated", size));
  decoder_of(groups_[groups_opened_ - 1].chunk->codec)(stored, static_cast<uint64_t>(size), out);
  return out;
}

std::string ParquetFile::place() const {
  return document_place(name_, DocumentUnit::row, row_);
}

std::string ParquetFile::page_place() const {
  return fmt::format("{}: row group {}, page {}", name_, groups_opened_, pages_opened_);
}

namespace {

constexpr std::array<std::string_view, 1> kParquetExtensions{".parquet"};

}  // namespace

extern const DocumentFormat kParquet{.name = "Parquet",
                                     .extensions = kParquetExtensions,
                                     .unit = DocumentUnit::row,
                                     .compressed_by = CompressedBy::format,
                                     .open = open_mapped<ParquetFile>};

}  // namespace sextant
