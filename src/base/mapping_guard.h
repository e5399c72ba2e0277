// Handles a mapped file that becomes shorter while it is in use: access to the removed part raises SIGBUS, which would
// end the process without a message. Every mapping is registered here, so that the process ends with a message that
// names the file, and exit code 3.
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
