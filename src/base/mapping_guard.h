// What happens when a file that is mapped gets shorter while it is in use: touching what is gone raises SIGBUS, which
// would end the process without a word. Every mapping is registered here; then it ends with a message that names the
// file, and exit code 3.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace sextant {

// Registers a mapping for as long as it lives.
class MappingGuard {
 public:
  MappingGuard() = default;
  MappingGuard(std::span<const std::byte> mapping, const std::filesystem::path& path);
  ~MappingGuard();
  MappingGuard(MappingGuard&& other) noexcept;
  MappingGuard& operator=(MappingGuard&& other) noexcept;

 private:
  struct Entry;
  class Registry;
  Entry* entry_ = nullptr;
};

}  // namespace sextant
