// HostPages: zeroed memory of this process for an arena, in huge pages where the system has them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/threads.h"

namespace sextant {

// Page-aligned; costs nothing until touched.
class HostPages {
 public:
  HostPages() = default;
  // RunError when the system refuses so many.
  explicit HostPages(int64_t bytes);
  ~HostPages();
  HostPages(HostPages&& other) noexcept;
  HostPages& operator=(HostPages&& other) noexcept;

  std::byte* data() const { return data_; }  // null where there are no bytes
  int64_t bytes() const { return bytes_; }

  // Has the system hand out every page now, to all threads at once: it clears each page, which one thread does at a
  // gigabyte or two a second.
  void touch(ThreadTeam& team) const;

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace sextant
