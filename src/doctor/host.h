// Host: everything a check may ask about its machine. this_host() asks the real one; tests supply their own answers.
// A value that cannot be read is nullopt, never an error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/gpu_facts.h"

namespace sextant {

// Of a file system.
struct Space {
  uint64_t bytes = 0, free_bytes = 0;
  uint64_t inodes = 0, free_inodes = 0;  // 0 inodes: the file system does not count them
};

struct Limit {
  uint64_t soft = 0, hard = 0;
};
inline constexpr uint64_t kUnlimited = UINT64_MAX;

enum class LimitKind : uint8_t { open_files, locked_memory, processes };

struct Host {
  std::string name;
  std::function<std::optional<std::string>(const std::string& path)> file;  // its text, of files below proc and sys
  std::function<bool(const std::string& path)> holds_any;  // whether a directory is there and not empty
  std::vector<std::filesystem::path> directories;          // whose free space is checked: where runs will write, /tmp
  std::function<std::optional<Space>(const std::filesystem::path&)> space;
  std::function<std::optional<Limit>(LimitKind)> limit;
  std::function<std::optional<std::string>(std::string_view library)> version_of;  // of cuda, cublas, cudnn, nccl, mpi
  std::function<std::optional<std::string>()> kernel_log;
  std::function<GpuReport()> gpus;
  std::function<double()> now;                         // seconds of the wall clock
  std::function<std::optional<bool>()> clock_is_kept;  // whether something holds that clock to the right time
};

// `directory` is where runs will write.
Host this_host(const std::filesystem::path& directory);

// "key: 123 kB" lines, as in proc/meminfo: the number of a key.
std::optional<uint64_t> number_after(std::string_view text, std::string_view key);

}  // namespace sextant
