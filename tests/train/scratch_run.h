// A tiny run in a directory of its own, for tests that train for real.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"
#include "checkout.h"
#include "config/load.h"
#include "exec/cpu/cpu_executor.h"
#include "train/train.h"

namespace sextant {

inline MakeExecutor cpu_ranks() {
  return [](const RankContext& context, int threads) { return make_cpu_executor(threads, context); };
}

class ScratchRun {
 public:
  explicit ScratchRun(std::string_view name)
      : root_(std::filesystem::temp_directory_path() / fmt::format("sextant-{}-{}", name, ::getpid())) {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  ~ScratchRun() { std::filesystem::remove_all(root_); }

  const std::filesystem::path& root() const { return root_; }

  // The tiny config with overrides; data is cached inside the scratch directory.
  RunConfig config(std::string_view file, std::vector<std::string> overrides) const {
    overrides.push_back(fmt::format("data.cache={}", (root_ / "cache").string()));
    overrides.push_back("data.stories_bytes=60000");
    overrides.push_back("train.threads=2");
    return load_config(std::filesystem::path(checkout::kSources) / "configs" / file, overrides);
  }

  TrainResult run(std::string_view out, std::vector<std::string> overrides,
                  std::string_view file = "tiny-llama.toml") const {
    RunConfig run = config(file, std::move(overrides));
    return train(run, root_ / out, cpu_ranks());
  }

  // The losses of metrics.jsonl as text, so that equality means bit for bit.
  std::vector<std::string> losses(std::string_view out) const { return metric(out, "loss"); }

  // A number of every line that has it.
  std::vector<std::string> metric(std::string_view out, std::string_view name) const {
    std::vector<std::string> found;
    std::string text = read_file(root_ / out / "metrics.jsonl");
    const std::string key = fmt::format("\"{}\":", name);
    for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1))
      found.push_back(text.substr(at + key.size(), text.find_first_of(",}", at) - at - key.size()));
    return found;
  }

 private:
  std::filesystem::path root_;
};

}  // namespace sextant
