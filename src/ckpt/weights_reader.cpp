#include "ckpt/weights_reader.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/path_error.h"
#include "ckpt/json_walk.h"
#include "ckpt/safetensors.h"
#include "ckpt/torch_file.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

// Files that hold the weights of a model, in the order in which transformers looks for them.
constexpr std::string_view kModelFiles[] = {kWeightsFile, kWeightsIndexFile, kTorchWeightsFile, kTorchWeightsIndexFile};

[[noreturn]] void no_weights(const fs::path& directory) {
  throw UserError({.place = directory.string(),
                   .got = "no weights here",
                   .expected = fmt::format("one of {}", fmt::join(kModelFiles, ", ")),
                   .hint = "give the directory that holds the model's files"});
}

std::unique_ptr<TensorFile> open_tensor_file(const fs::path& file) {
  if (file.extension() == ".bin") return std::make_unique<TorchFile>(file);
  return std::make_unique<SafetensorsFile>(file);
}

// transformers would load the adapter on top of the weights; we would leave it out without a word.
void refuse_adapter(const fs::path& directory) {
  for (const char* name : {"adapter_config.json", "adapter_model.safetensors", "adapter_model.bin"})
    if (is_there(directory / name))
      throw UserError(
          {.place = (directory / name).string(),
           .got = "PEFT adapters are not supported",
           .expected = "a directory with the weights of the whole model only",
           .hint = "merge the adapter into the model first (merge_and_unload of peft), or move its files away"});
}

}  // namespace

std::map<std::string, std::string, std::less<>> parse_weights_index(std::string_view place, std::string_view text) {
  std::map<std::string, std::string, std::less<>> files;
  bool seen = false;
  auto refuse = [&](std::string got, std::string expected) {
    throw UserError({.place = std::string(place), .got = std::move(got), .expected = std::move(expected)});
  };
  walk_json(place, text, [&](const JsonValue& value) {
    if (value.path.empty() && value.array_depth == 0 && value.kind != JsonKind::object)
      refuse("the index is not a JSON object", "an object with a weight_map");
    if (value.path.empty() || value.path[0] != "weight_map") return;
    seen = true;
    if (value.path.size() == 1) {
      if (value.kind != JsonKind::object) refuse("weight_map is not a JSON object", "tensor names with their files");
      return;
    }
    if (value.kind != JsonKind::string || value.array_depth != 0 || !is_plain_file_name(value.text))
      refuse(fmt::format("the file of tensor {} is {}", shown(value.path[1]),
                         value.kind == JsonKind::string ? shown(value.text) : "no string"),
             "the name of a file beside the index");
    files.emplace(value.path[1], value.text);
  });
  if (!seen) refuse("weight_map is missing", "an object with a weight_map");
  return files;
}

WeightsReader::WeightsReader(const fs::path& path) : place_(path.string()) {
  fs::path file = path;
  if (fs::is_directory(look_at(path))) {
    refuse_adapter(path);
    auto found = std::ranges::find_if(kModelFiles, [&](auto name) { return is_there(path / name); });
    if (found == std::end(kModelFiles)) no_weights(path);
    file = path / *found;
  }
  file.extension() == ".json" ? open_sharded(file) : open_single(file);
  for (const auto& [name, at] : file_of_) names_.push_back(name);
}

void WeightsReader::open_single(const fs::path& file) {
  files_.push_back(open_tensor_file(file));
  for (const std::string& name : files_.back()->names()) file_of_.emplace(name, 0);
}

void WeightsReader::open_sharded(const fs::path& index) {
  std::map<std::string, std::string, std::less<>> files = parse_weights_index(index.string(), read_file(index));
  std::map<std::string, size_t> opened;
  for (const auto& [name, file] : files) {
    auto [at, is_new] = opened.try_emplace(file, files_.size());
    if (is_new) files_.push_back(open_tensor_file(index.parent_path() / file));
    // A shard may hold more than the index names; what is named must be there.
    if (!files_[at->second]->contains(name))
      throw UserError({.place = index.string(),
                       .got = fmt::format("tensor {} is not in {}", shown(name), shown(file)),
                       .expected = "each tensor in the file that weight_map gives",
                       .hint = "index and shards may come from different versions of the model"});
    file_of_.emplace(name, at->second);
  }
}

TensorView WeightsReader::tensor(std::string_view name) const {
  auto found = file_of_.find(name);
  if (found == file_of_.end())
    throw UserError({.place = place_,
                     .got = fmt::format("there is no tensor {}", shown(name)),
                     .expected = fmt::format("it among the {} tensors of the model", names_.size())});
  return files_[found->second]->tensor(name);
}

int64_t WeightsReader::total_bytes() const {
  int64_t total = 0;
  for (const std::string& name : names_) total += static_cast<int64_t>(tensor(name).bytes.size());
  return total;
}

}  // namespace sextant
