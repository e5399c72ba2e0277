#include "ckpt/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "ckpt/json_walk.h"

namespace sextant {

static_assert(std::endian::native == std::endian::little, "tensor bytes are used as they lie in the file");

namespace {

constexpr int64_t kLengthBytes = 8;
constexpr std::string_view kCutShort = "the file may be cut short or damaged: copy or download it again";

// The JSON part of the file, its length checked.
std::string_view header_text(std::string_view place, std::span<const std::byte> file) {
  auto refuse = [&](std::string got, std::string expected) {
    bool pointer = as_text(file).starts_with("version https://git-lfs");
    throw UserError({.place = std::string(place),
                     .got = std::move(got),
                     .expected = std::move(expected),
                     .hint = pointer
                                 ? "this is a Git LFS pointer, not the file it points to: fetch it with git lfs pull"
                                 : std::string(kCutShort)});
  };
  auto size = static_cast<int64_t>(file.size());
  if (size < kLengthBytes)
    refuse(fmt::format("{} bytes are too few for a safetensors file", size), fmt::format("at least {}", kLengthBytes));
  uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  if (length > static_cast<uint64_t>(kMaxSafetensorsHeader))
    refuse(fmt::format("the header claims {} bytes", length), fmt::format("at most {}", kMaxSafetensorsHeader));
  if (static_cast<int64_t>(length) > size - kLengthBytes)
    refuse(fmt::format("the header claims {} bytes, but {} follow", length, size - kLengthBytes),
           "a header that ends inside the file");
  std::string_view text = as_text(file.subspan(kLengthBytes, length));
  if (!text.starts_with('{')) refuse("the header does not begin with {", "a JSON object at byte 8");
  return text;
}

// Collects the entries of the header while the JSON goes by.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view place) : place_(place) {}

  void visit(const JsonValue& value) {
    switch (value.path.size()) {
      case 0:
        return;  // the outermost value: begins with {, so it is an object
      case 1:
        return visit_entry(value);
      case 2:
        return value.path[0] == kMetadataKey ? visit_metadata(value) : visit_field(value);
      default:
        refuse("values nested too deeply", "dtype, shape and data_offsets");
    }
  }

  SafetensorsHeader finish() {
    finish_entry();
    return std::move(header_);
  }

 private:
  void visit_entry(const JsonValue& value) {
    finish_entry();
    entry_name_ = value.path[0];
    require(value, JsonKind::object, 0, "a JSON object");
    if (value.path[0] == kMetadataKey) return;
    header_.tensors.push_back({.name = value.path[0]});
    dtype_seen_ = false;
    shape_.reset();
    offsets_.reset();
    entry_open_ = true;
  }

  void visit_metadata(const JsonValue& value) {
    require(value, JsonKind::string, 0, "text for every key");
    header_.metadata.emplace_back(value.path[1], value.text);
  }

  void visit_field(const JsonValue& value) {
    const std::string& field = value.path[1];
    if (field == "dtype")
      read_dtype(value);
    else if (field == "shape")
      read_list(value, shape_, kMaxTensorRank);
    else if (field == "data_offsets")
      read_list(value, offsets_, 2);
    else
      refuse(fmt::format("unknown field {}", shown(field)), "dtype, shape and data_offsets");
  }

  void read_dtype(const JsonValue& value) {
    require(value, JsonKind::string, 0, "a string");
    std::optional<FileDType> dtype = file_dtype_from_name(value.text);
    if (!dtype) refuse(fmt::format("unknown dtype {}", shown(value.text)), "a safetensors dtype such as F32 or BF16");
    header_.tensors.back().dtype = *dtype;
    dtype_seen_ = true;
  }

  void read_list(const JsonValue& value, std::optional<std::vector<int64_t>>& list, size_t max) {
    if (value.array_depth == 0) {
      require(value, JsonKind::array, 0, "a list of integers");
      list.emplace();
      return;
    }
    require(value, JsonKind::natural, 1, "a list of integers, none negative");
    if (value.number > static_cast<uint64_t>(INT64_MAX))
      refuse(fmt::format("{} has the number {}", value.path[1], value.number), "numbers below 2^63");
    if (list->size() == max)
      refuse(fmt::format("{} has more than {} numbers", value.path[1], max), fmt::format("at most {}", max));
    list->push_back(static_cast<int64_t>(value.number));
  }

  void finish_entry() {
    if (!entry_open_) return;
    entry_open_ = false;
    if (!dtype_seen_ || !shape_ || !offsets_) {
      std::string_view missing = !dtype_seen_ ? "dtype" : !shape_ ? "shape" : "data_offsets";
      refuse(fmt::format("{} is missing", missing), "dtype, shape and data_offsets");
    }
    if (offsets_->size() != 2)
      refuse(fmt::format("data_offsets has {} numbers", offsets_->size()), "two: begin and end");
    TensorEntry& entry = header_.tensors.back();
    entry.shape = GlobalShape(std::move(*shape_));
    entry.begin = (*offsets_)[0];
    entry.end = (*offsets_)[1];
  }

  void require(const JsonValue& value, JsonKind kind, int array_depth, std::string_view expected) {
    if (value.kind == kind && value.array_depth == array_depth) return;
    refuse(value.path.size() == 1 ? std::string("wrong kind of JSON value")
                                  : fmt::format("{} is the wrong kind of JSON value", shown(value.path[1])),
           expected);
  }

  [[noreturn]] void refuse(std::string got, std::string_view expected) {
    throw UserError({.place = entry_name_ == kMetadataKey ? fmt::format("{}: {}", place_, kMetadataKey)
                                                          : tensor_place(place_, entry_name_),
                     .got = std::move(got),
                     .expected = std::string(expected)});
  }

  std::string_view place_;
  SafetensorsHeader header_;
  // The entry being read; a tensor is already header_.tensors.back().
  std::string entry_name_;
  bool entry_open_ = false;
  bool dtype_seen_ = false;
  std::optional<std::vector<int64_t>> shape_;
  std::optional<std::vector<int64_t>> offsets_;
};

void check_size(std::string_view place, const TensorEntry& tensor) {
  auto refuse = [&](std::string got, std::string expected) {
    throw UserError(
        {.place = tensor_place(place, tensor.name), .got = std::move(got), .expected = std::move(expected)});
  };
  if (tensor.begin > tensor.end)
    refuse(fmt::format("data_offsets [{}, {}] run backwards", tensor.begin, tensor.end), "begin <= end");
  std::optional<int64_t> bytes = bytes_of(tensor.dtype, tensor.shape);
  if (!bytes)
    refuse(fmt::format("{} of shape {} has no size", name_of(tensor.dtype), tensor.shape.text()),
           "fewer than 2^60 bytes, and whole ones");
  if (*bytes != tensor.end - tensor.begin)
    refuse(fmt::format("data_offsets [{}, {}] hold {} bytes", tensor.begin, tensor.end, tensor.end - tensor.begin),
           fmt::format("{} bytes for {} of shape {}", *bytes, name_of(tensor.dtype), tensor.shape.text()));
}

// Sorted by offset, each tensor must begin where the one before ended, and the last must end with the file.
void check_cover(std::string_view place, std::vector<TensorEntry>& tensors, int64_t data_bytes) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  int64_t covered = 0;
  for (const TensorEntry& tensor : tensors) {
    if (tensor.begin != covered)
      throw UserError({.place = tensor_place(place, tensor.name),
                       .got = tensor.begin < covered
                                  ? fmt::format("its data begins at {}, inside another tensor", tensor.begin)
                                  : fmt::format("its data begins at {}, after a hole", tensor.begin),
                       .expected = fmt::format("it to begin at {}, where the tensor before it ends", covered)});
    covered = tensor.end;
    if (covered > data_bytes)
      throw UserError({.place = tensor_place(place, tensor.name),
                       .got = fmt::format("its data ends at {}, behind the end of the file", tensor.end),
                       .expected = fmt::format("at most {} bytes of data", data_bytes),
                       .hint = std::string(kCutShort)});
  }
  if (covered != data_bytes)
    throw UserError({.place = std::string(place),
                     .got = fmt::format("{} bytes of data belong to no tensor", data_bytes - covered),
                     .expected = fmt::format("the file to end after {} bytes of data", covered)});
}

}  // namespace

SafetensorsHeader parse_safetensors(std::string_view place, std::span<const std::byte> file) {
  std::string_view text = header_text(place, file);
  HeaderReader reader(place);
  walk_json(place, text, [&](const JsonValue& value) { reader.visit(value); });
  SafetensorsHeader header = reader.finish();
  header.data_begin = kLengthBytes + static_cast<int64_t>(text.size());
  for (const TensorEntry& tensor : header.tensors) check_size(place, tensor);
  check_cover(place, header.tensors, static_cast<int64_t>(file.size()) - header.data_begin);
  return header;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : place_(path.string()), file_(path), header_(parse_safetensors(place_, file_.bytes())) {
  for (size_t i = 0; i < header_.tensors.size(); ++i) index_.emplace(header_.tensors[i].name, i);
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  for (const TensorEntry& tensor : header_.tensors) names.push_back(tensor.name);
  return names;
}

TensorView SafetensorsFile::tensor(std::string_view name) const {
  auto found = index_.find(name);
  if (found == index_.end()) refuse_unknown_tensor(place_, name, index_.size());
  const TensorEntry& entry = header_.tensors[found->second];
  return {.place = tensor_place(place_, name),
          .dtype = entry.dtype,
          .shape = entry.shape,
          .bytes = file_.bytes().subspan(static_cast<size_t>(header_.data_begin + entry.begin),
                                         static_cast<size_t>(entry.end - entry.begin))};
}

}  // namespace sextant
