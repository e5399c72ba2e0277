#include "base/path_error.h"

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace sextant {

bool is_mistake_in_path(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EACCES:
    case EPERM:
    case ELOOP:
    case ENAMETOOLONG:
    case EINVAL:
    case ENXIO:
    case ENODEV:
      return true;
    default:
      return false;
  }
}

void throw_unreadable(const std::filesystem::path& path, int error, std::string_view expected) {
  std::string got = fmt::format("cannot be read: {}", std::strerror(error));
  if (is_mistake_in_path(error))
    throw UserError({.place = path.string(), .got = std::move(got), .expected = std::string(expected)});
  throw RunError(path.string(), got, "it may be gone the next time; nothing was changed");
}

void require_looked_at(const std::filesystem::path& path, const std::error_code& error) {
  if (error && !is_mistake_in_path(error.value())) throw_unreadable(path, error.value(), "");
}

}  // namespace sextant
