#include "train/data/cache_contents.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"

namespace sextant {

namespace {

[[noreturn]] void refuse_contents(std::string_view place, std::string_view got) {
  throw UserError({.place = std::string(place),
                   .got = std::string(got),
                   .expected = "the file as Sextant writes it",
                   .hint = "remove the directory it is in; the text is then tokenized again"});
}

}  // namespace

DocumentOrigins::DocumentOrigins(std::vector<std::string> files, std::vector<Run> runs, std::string_view place)
    : files_(std::move(files)), runs_(std::move(runs)) {
  for (size_t i = 0; i < runs_.size(); ++i) {
    const Run& run = runs_[i];
    bool rises = i == 0 ? run.document == 0 : run.document > runs_[i - 1].document;
    if (!rises || run.file < 0 || run.file >= std::ssize(files_)) refuse_contents(place, "runs that do not follow");
  }
}

void DocumentOrigins::add(std::string_view file, int64_t record) {
  bool new_file = files_.empty() || files_.back() != file;
  if (new_file) files_.emplace_back(file);
  bool follows = !new_file && runs_.back().record + (added_ - runs_.back().document) == record;
  if (!follows) runs_.push_back({added_, std::ssize(files_) - 1, record});
  ++added_;
}

std::optional<DocumentOrigins::Origin> DocumentOrigins::of(int64_t document) const {
  auto after = std::upper_bound(runs_.begin(), runs_.end(), document,
                                [](int64_t wanted, const Run& run) { return wanted < run.document; });
  if (after == runs_.begin()) return std::nullopt;
  const Run& run = *std::prev(after);
  return Origin{files_[static_cast<size_t>(run.file)], run.record + (document - run.document)};
}

void write_cache_contents(const std::filesystem::path& directory, const CacheContents& contents) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [name, part] : contents) {
    auto runs = nlohmann::ordered_json::array();
    for (const DocumentOrigins::Run& run : part.origins.runs()) runs.push_back({run.document, run.file, run.record});
    json[name] = {
        {"documents", part.documents},   {"tokens", part.tokens},
        {"text_bytes", part.text_bytes}, {"skipped", {{"count", part.skipped.count}, {"first", part.skipped.first}}},
        {"files", part.origins.files()}, {"runs", std::move(runs)}};
  }
  // Names and places may hold any bytes.
  write_file_atomically(directory / kContentsFile,
                        json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

CacheContents read_cache_contents(const std::filesystem::path& directory) {
  std::filesystem::path file = directory / kContentsFile;
  CacheContents contents;
  try {
    nlohmann::json json = nlohmann::json::parse(read_file(file));
    for (const auto& [name, part] : json.items()) {
      std::vector<DocumentOrigins::Run> runs;
      for (const auto& run : part.at("runs"))
        runs.push_back({run.at(0).get<int64_t>(), run.at(1).get<int64_t>(), run.at(2).get<int64_t>()});
      contents.emplace(name, PartContents{.documents = part.at("documents").get<int64_t>(),
                                          .tokens = part.at("tokens").get<int64_t>(),
                                          .text_bytes = part.at("text_bytes").get<int64_t>(),
                                          .skipped = {part.at("skipped").at("count").get<int64_t>(),
                                                      part.at("skipped").at("first").get<std::vector<std::string>>()},
                                          .origins = DocumentOrigins(part.at("files").get<std::vector<std::string>>(),
                                                                     std::move(runs), file.string())});
    }
  } catch (const nlohmann::json::exception&) {
    refuse_contents(file.string(), "cannot be read");
  }
  return contents;
}

}  // namespace sextant
