#include "data/formats/arrow/arrow_messages.h"

#include <fmt/format.h>

#include <array>

#include "data/formats/byte_reader.h"

namespace sextant {

namespace {

struct ArrowType {
  std::string_view name;
  int buffers;  // of a column of this type, without those of its children
  std::optional<ArrowText> text;
};

constexpr int kByMode = -1;  // a union's buffers

// In the order of their numbers.
constexpr std::array kArrowTypes{
    ArrowType{"no type", 0, {}},
    ArrowType{"Null", 0, {}},
    ArrowType{"Int", 2, {}},
    ArrowType{"FloatingPoint", 2, {}},
    ArrowType{"Binary", 3, ArrowText::short_offsets},
    ArrowType{"Utf8", 3, ArrowText::short_offsets},
    ArrowType{"Bool", 2, {}},
    ArrowType{"Decimal", 2, {}},
    ArrowType{"Date", 2, {}},
    ArrowType{"Time", 2, {}},
    ArrowType{"Timestamp", 2, {}},
    ArrowType{"Interval", 2, {}},
    ArrowType{"List", 2, {}},
    ArrowType{"Struct", 1, {}},
    ArrowType{"Union", kByMode, {}},
    ArrowType{"FixedSizeBinary", 2, {}},
    ArrowType{"FixedSizeList", 1, {}},
    ArrowType{"Map", 2, {}},
    ArrowType{"Duration", 2, {}},
    ArrowType{"LargeBinary", 3, ArrowText::long_offsets},
    ArrowType{"LargeUtf8", 3, ArrowText::long_offsets},
    ArrowType{"LargeList", 2, {}},
    ArrowType{"RunEndEncoded", 0, {}},
    ArrowType{"BinaryView", 2, ArrowText::views},
    ArrowType{"Utf8View", 2, ArrowText::views},
    ArrowType{"ListView", 3, {}},
    ArrowType{"LargeListView", 3, {}},
};

constexpr int kVersion4 = 3, kVersion5 = 4;  // older ones are from before Arrow 0.8
constexpr size_t kPairBytes = 16;            // of a FieldNode or Buffer: two 64-bit integers

constexpr int kFieldName = 0, kFieldTypeKind = 2, kFieldType = 3, kFieldDictionary = 4, kFieldChildren = 5;

// Steps over a field and its children, counting what they have in a record batch.
struct ArrowCount {
  int version;
  size_t nodes = 0, buffers = 0, views = 0;

  void add(const FlatTable& field, int depth) {
    constexpr int kDeepest = 64;
    if (depth > kDeepest) throw StreamError(fmt::format("columns are nested deeper than {}", kDeepest));
    constexpr size_t kMostNodes = 1 << 20;
    if (++nodes > kMostNodes) throw StreamError(fmt::format("the schema has more than {} columns", kMostNodes));
    constexpr size_t kIndexBuffers = 2;
    if (field.table(kFieldDictionary)) {  // in the batch it is integers
      buffers += kIndexBuffers;
      return;
    }
    const ArrowType& type = type_of(field);
    buffers += type.buffers == kByMode ? union_buffers(field) : static_cast<size_t>(type.buffers);
    views += type.text == ArrowText::views ? 1 : 0;
    FlatVector children = field.vector(kFieldChildren, sizeof(uint32_t));
    for (uint32_t i = 0; i < children.count; ++i) add(field.table_in(children, i), depth + 1);
  }

  static const ArrowType& type_of(const FlatTable& field) {
    auto code = field.scalar<uint8_t>(kFieldTypeKind, 0);
    if (code == 0 || code >= kArrowTypes.size())
      throw StreamError(fmt::format("column \"{}\" is of unknown type {}", field.string(kFieldName), code));
    return kArrowTypes[code];
  }

  size_t union_buffers(const FlatTable& field) const {
    if (version != kVersion5) throw StreamError("a union column from before Arrow 1.0, which is not read");
    constexpr int16_t kDense = 1;
    auto type = field.table(kFieldType);
    return type && type->scalar<int16_t>(0, 0) == kDense ? 2 : 1;
  }
};

std::string_view part_of(std::string_view body, const FlatVector& buffers, size_t index) {
  if (index >= buffers.count)
    throw StreamError(fmt::format("the batch has {} buffers, where the schema has more", buffers.count));
  ByteReader in(buffers.bytes.substr(index * kPairBytes, kPairBytes));
  auto begin = in.little_endian<int64_t>(), length = in.little_endian<int64_t>();
  if (begin < 0 || length < 0 || begin > std::ssize(body) || length > std::ssize(body) - begin)
    throw StreamError(
        fmt::format("a buffer is said to have {} bytes from byte {} on of {}", length, begin, body.size()));
  return body.substr(static_cast<size_t>(begin), static_cast<size_t>(length));
}

// How many buffers follow the own ones of each column with views.
size_t count_of_views(const FlatVector& counts, size_t index) {
  if (index >= counts.count) throw StreamError("the batch does not say how many buffers its views have");
  auto count = ByteReader(counts.bytes.substr(index * sizeof(int64_t))).little_endian<int64_t>();
  constexpr int64_t kMost = 1 << 24;
  if (count < 0 || count > kMost) throw StreamError(fmt::format("views with {} buffers", count));
  return static_cast<size_t>(count);
}

}  // namespace

std::optional<ArrowMessage> read_arrow_message(std::string_view bytes) {
  constexpr uint32_t kBegins = 0xFFFFFFFF;
  ByteReader in(bytes);
  if (in.little_endian<uint32_t>() != kBegins)
    throw StreamError("no message begins here (files from before Arrow 0.15 are not read)");
  auto size = in.little_endian<int32_t>();
  if (size == 0) return std::nullopt;
  if (size < 0) throw StreamError(fmt::format("a message with {} bytes of metadata", size));
  FlatTable message = FlatTable::root(in.take(static_cast<uint64_t>(size)));
  auto version = message.scalar<int16_t>(0, 0);
  if (version != kVersion4 && version != kVersion5)
    throw StreamError(fmt::format("metadata of version V{}, which is not read (V4 and V5 are)", version + 1));
  auto kind = message.scalar<uint8_t>(1, 0);
  auto header = message.table(2);
  auto length = message.scalar<int64_t>(3, 0);
  if (!header || kind == 0 || kind > static_cast<uint8_t>(ArrowMessageKind::sparse_tensor))
    throw StreamError(fmt::format("a message of unknown kind {}", kind));
  if (length < 0) throw StreamError(fmt::format("a message with {} bytes of data", length));
  std::string_view body = in.take(static_cast<uint64_t>(length));
  return ArrowMessage{static_cast<ArrowMessageKind>(kind), *header, version, body, in.at()};
}

ArrowSchema read_arrow_schema(const ArrowMessage& message, std::string_view wanted) {
  if (message.kind != ArrowMessageKind::schema) throw StreamError("the first message is no schema");
  if (message.header.scalar<int16_t>(0, 0) != 0) throw StreamError("numbers are big-endian, which is not read");
  FlatVector fields = message.header.vector(1, sizeof(uint32_t));
  ArrowSchema schema;
  ArrowCount count{.version = message.version};
  for (uint32_t i = 0; i < fields.count; ++i) {
    FlatTable field = message.header.table_in(fields, i);
    schema.names.emplace_back(field.string(kFieldName));
    if (schema.names.back() == wanted && !schema.found) {
      schema.found = i;
      const ArrowType& type = ArrowCount::type_of(field);
      if (field.table(kFieldDictionary))
        schema.held = "entries of a dictionary, which are not read";
      else if (type.text)
        schema.column = {*type.text, count.nodes, count.buffers, count.views};
      else
        schema.held = type.name;
    }
    count.add(field, 1);
  }
  return schema;
}

ArrowBatch read_arrow_batch(const ArrowMessage& message, const ArrowColumn& column) {
  const FlatTable& header = message.header;
  FlatVector nodes = header.vector(1, kPairBytes), buffers = header.vector(2, kPairBytes);
  ArrowBatch batch{.rows = header.scalar<int64_t>(0, 0)};
  if (column.node >= nodes.count)
    throw StreamError(fmt::format("the batch has {} columns, where the schema has more", nodes.count));
  ByteReader node(nodes.bytes.substr(column.node * kPairBytes, kPairBytes));
  if (node.little_endian<int64_t>() != batch.rows || batch.rows < 0)
    throw StreamError(fmt::format("the text column has another length than the batch of {} rows", batch.rows));
  const bool has_nulls = node.little_endian<int64_t>() != 0;

  if (auto compression = header.table(3)) {
    auto codec = compression->scalar<int8_t>(0, 0);
    if (codec != static_cast<int8_t>(ArrowCompression::lz4_frame) &&
        codec != static_cast<int8_t>(ArrowCompression::zstd))
      throw StreamError(fmt::format("the batch is compressed with codec {}, which is not known", codec));
    if (compression->scalar<int8_t>(1, 0) != 0)
      throw StreamError("the batch is compressed as a whole, which is not read");
    batch.compression = static_cast<ArrowCompression>(codec);
  }
  FlatVector counts = header.vector(4, sizeof(int64_t));
  size_t first = column.buffer;
  for (size_t i = 0; i < column.views_before; ++i) first += count_of_views(counts, i);
  if (has_nulls) batch.validity = part_of(message.body, buffers, first);
  batch.offsets = part_of(message.body, buffers, first + 1);
  size_t contents = column.text == ArrowText::views ? count_of_views(counts, column.views_before) : 1;
  for (size_t i = 0; i < contents; ++i) batch.contents.push_back(part_of(message.body, buffers, first + 2 + i));
  return batch;
}

}  // namespace sextant
