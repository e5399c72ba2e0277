#include "app/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace sextant {

namespace fs = std::filesystem;

void require_output_file(const std::string& option, const std::string& file) {
  if (file.empty()) return;  // refused, or not, where the option is read
  std::string place = fmt::format("{} {}", option, file);
  std::error_code none;
  if (fs::is_directory(file, none))
    throw UserError({.place = place, .got = "is a directory", .expected = "the name of a file to write"});
  fs::path folder = fs::path(file).parent_path();
  if (folder.empty()) folder = ".";
  if (!fs::is_directory(folder, none))
    throw UserError({.place = place,
                     .got = fmt::format("there is no directory {}", folder.string()),
                     .expected = "a file in a directory that exists",
                     .hint = "make it first, or name another"});
  // A new file is put in place of an old one, so the folder decides.
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    throw UserError({.place = place,
                     .got = fmt::format("cannot write in {}: {}", folder.string(), std::strerror(errno)),
                     .expected = "a file in a directory that may be written to",
                     .hint = "name another, or change who may write there"});
}

CLI::Validator output_file(const std::string& option) {
  return CLI::Validator(
      [option](std::string& file) {
        require_output_file(option, file);
        return std::string();
      },
      "");
}

}  // namespace sextant
