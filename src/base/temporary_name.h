// Names of files and directories that are being written: NAME.tmp-PROCESS-RANDOM beside the final NAME. The random part
// keeps anyone from putting a link in its place beforehand; the process number tells a person who wrote it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace sextant {

struct TemporaryName {
  std::string final_name;
  pid_t process = 0;
};

std::string temporary_name(std::string_view final_name);  // a new one at every call

// Nothing when `name` is no such name. The random part may be absent, as earlier versions wrote it.
std::optional<TemporaryName> parse_temporary_name(std::string_view name);

}  // namespace sextant
