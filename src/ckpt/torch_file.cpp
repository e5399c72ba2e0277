#include "ckpt/torch_file.h"

#include <cstring>
#include <optional>

#include "base/error.h"
#include "ckpt/json_walk.h"
#include "ckpt/torch_pickle.h"
#include "ckpt/zip_archive.h"

namespace sextant {

namespace {

using Span = std::span<const std::byte>;
using Entries = std::map<std::string_view, Span>;

// UserError for a file that is not a zip archive. The first bytes of the file determine the message.
void require_zip(std::string_view place, Span file) {
  std::string_view text = as_text(file);
  if (text.starts_with("PK")) return;
  // torch.save before 1.6 wrote one pickle behind another; the first is a number that marks the format.
  constexpr std::string_view kLegacy("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14);
  std::string got = "not a zip archive", hint(how_to_convert());
  if (text.starts_with(kLegacy))
    got = "a file in the format of PyTorch before 1.6, which is not supported";
  else if (text.starts_with("\x80"))
    got = "a pickle, but not one of torch.save";
  else if (text.starts_with("version https://git-lfs"))
    got = "a Git LFS pointer", hint = "this is not the file it points to: fetch it with git lfs pull";
  throw UserError({.place = std::string(place),
                   .got = std::move(got),
                   .expected = "a file of torch.save (PyTorch 1.6 or newer)",
                   .hint = std::move(hint)});
}

// Entries below the folder that holds data.pkl, by their names there.
Entries entries_of(std::string_view place, const std::vector<ZipEntry>& zip) {
  constexpr std::string_view kPickle = "/data.pkl";
  std::optional<std::string_view> folder;
  auto refuse = [&](std::string got, std::string expected) {
    throw UserError({.place = std::string(place),
                     .got = std::move(got),
                     .expected = std::move(expected),
                     .hint = std::string(how_to_convert())});
  };
  for (const ZipEntry& entry : zip) {
    if (!entry.name.ends_with(kPickle)) continue;
    if (folder) refuse("more than one data.pkl", "one, as torch.save writes it");
    folder = std::string_view(entry.name).substr(0, entry.name.size() - kPickle.size() + 1);
  }
  if (!folder) refuse("a zip archive without data.pkl", "a file of torch.save");
  Entries entries;
  for (const ZipEntry& entry : zip) {
    if (!entry.name.starts_with(*folder)) continue;
    std::string_view name = std::string_view(entry.name).substr(folder->size());
    if (!entries.emplace(name, entry.bytes).second) refuse(fmt::format("two entries {}", shown(name)), "one of a name");
  }
  if (auto order = entries.find("byteorder"); order != entries.end() && as_text(order->second) != "little")
    refuse(fmt::format("byte order {}", shown(as_text(order->second))), "little");
  return entries;
}

// Elements from the first to behind the last; empty where that overflows, or a number is negative.
std::optional<int64_t> extent_of(const PickledTensor& tensor) {
  int64_t last = 0;
  bool empty = false;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    int64_t dim = tensor.shape[i], stride = tensor.strides[i], length = 0;
    if (dim < 0 || stride < 0) return std::nullopt;
    if (dim == 0) empty = true;
    if (dim > 1 && (__builtin_mul_overflow(dim - 1, stride, &length) || __builtin_add_overflow(last, length, &last)))
      return std::nullopt;
  }
  if (empty) return 0;
  return last == INT64_MAX ? std::nullopt : std::optional(last + 1);
}

TorchTensor checked(std::string_view place, const PickledTensor& pickled, const Entries& entries) {
  auto refuse = [&](std::string got, std::string expected) {
    throw UserError(
        {.place = tensor_place(place, pickled.name), .got = std::move(got), .expected = std::move(expected)});
  };
  TorchTensor tensor{pickled.name, pickled.dtype, GlobalShape(pickled.shape), pickled.strides, {}};
  std::string entry = fmt::format("data/{}", pickled.storage);
  auto found = entries.find(entry);
  if (found == entries.end())
    refuse(fmt::format("its data, {}, is not in the archive", shown(entry)), "it to be there");
  Span storage = found->second;
  if (std::ssize(storage) != pickled.storage_bytes)
    refuse(fmt::format("{} has {} bytes", shown(entry), storage.size()),
           fmt::format("{}, by data.pkl", pickled.storage_bytes));
  std::optional<int64_t> bytes = bytes_of(tensor.dtype, tensor.shape), extent = extent_of(pickled);
  if (!bytes || !extent)
    refuse(fmt::format("{} of shape {} has no size", name_of(tensor.dtype), tensor.shape.text()),
           "fewer than 2^60 bytes, and no negative numbers");
  int64_t size = bits_of(tensor.dtype) / 8, elements = std::ssize(storage) / size;
  if (pickled.offset < 0 || pickled.offset > elements || *extent > elements - pickled.offset)
    refuse(fmt::format("{} elements from element {} of a storage of {}", *extent, pickled.offset, elements),
           "a tensor inside its storage");
  // Without this, a few bytes could claim to be as many as there are.
  if (*bytes > *extent * size)
    refuse(fmt::format("{} elements in {} places: an expanded tensor", *bytes / size, *extent),
           "every element in a place of its own");
  for (size_t i = 0; i < tensor.strides.size(); ++i)
    if (pickled.shape[i] <= 1) tensor.strides[i] = 0;  // it means nothing, and may be any number
  tensor.storage = storage.subspan(static_cast<size_t>(pickled.offset * size), static_cast<size_t>(*extent * size));
  return tensor;
}

}  // namespace

bool TorchTensor::is_contiguous() const {
  int64_t expected = 1;
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    if (shape[dim] == 0) return true;
    if (shape[dim] != 1 && strides[static_cast<size_t>(dim)] != expected) return false;
    expected *= shape[dim];
  }
  return true;
}

std::vector<TorchTensor> parse_torch_file(std::string_view place, std::span<const std::byte> file) {
  require_zip(place, file);
  std::vector<ZipEntry> zip = parse_zip(place, file);
  Entries entries = entries_of(place, zip);
  std::vector<TorchTensor> tensors;
  for (const PickledTensor& pickled : parse_torch_pickle(fmt::format("{}: data.pkl", place), entries.at("data.pkl")))
    tensors.push_back(checked(place, pickled, entries));
  return tensors;
}

std::vector<std::byte> gathered(const TorchTensor& tensor) {
  auto size = static_cast<size_t>(bits_of(tensor.dtype) / 8);
  int rank = tensor.shape.rank();
  std::vector<std::byte> out(static_cast<size_t>(tensor.shape.count()) * size);
  std::vector<int64_t> at(static_cast<size_t>(rank), 0);
  int64_t from = 0;
  for (size_t to = 0; to < out.size(); to += size) {
    std::memcpy(out.data() + to, tensor.storage.data() + static_cast<size_t>(from) * size, size);
    for (int dim = rank - 1; dim >= 0; --dim) {
      auto d = static_cast<size_t>(dim);
      from += tensor.strides[d];
      if (++at[d] < tensor.shape[dim]) break;
      from -= tensor.strides[d] * tensor.shape[dim];
      at[d] = 0;
    }
  }
  return out;
}

TorchFile::TorchFile(const std::filesystem::path& path)
    : place_(path.string()), file_(path), tensors_(parse_torch_file(place_, file_.bytes())) {
  for (size_t i = 0; i < tensors_.size(); ++i) index_.emplace(tensors_[i].name, i);
}

std::vector<std::string> TorchFile::names() const {
  std::vector<std::string> names;
  for (const TorchTensor& tensor : tensors_) names.push_back(tensor.name);
  return names;
}

TensorView TorchFile::tensor(std::string_view name) const {
  auto found = index_.find(name);
  if (found == index_.end()) refuse_unknown_tensor(place_, name, index_.size());
  const TorchTensor& tensor = tensors_[found->second];
  TensorView view{tensor_place(place_, name), tensor.dtype, tensor.shape, tensor.storage};
  if (tensor.is_contiguous()) return view;
  std::lock_guard lock(copies_->mutex);
  auto [copy, is_new] = copies_->of.try_emplace(found->second);
  if (is_new) copy->second = gathered(tensor);
  view.bytes = copy->second;
  return view;
}

}  // namespace sextant
