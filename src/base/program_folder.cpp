#include "base/program_folder.h"

#include <system_error>

namespace sextant {

std::filesystem::path program_folder(std::string_view name) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  fs::path installed = program.parent_path().parent_path() / "share" / "sextant" / name;
  if (!program.empty() && fs::is_directory(installed, ignored)) return installed;
  return fs::path(SEXTANT_SOURCES) / name;
}

}  // namespace sextant
