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

std::filesystem::file_status look_at(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::file_status status = std::filesystem::status(path, error);
  require_looked_at(path, error);
  return status;
}

std::filesystem::file_status look_at_link(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::file_status status = std::filesystem::symlink_status(path, error);
  require_looked_at(path, error);
  return status;
}

bool is_there(const std::filesystem::path& path) {
  return std::filesystem::exists(look_at(path));
}

}  // namespace sextant
