// Classifies the error of a path that cannot be read: a mistake of the user who gave it, or a failure of the system
// that may be gone the next time (a disk that did not answer, too many open files).
#pragma once

#include <filesystem>
#include <string_view>
#include <system_error>

namespace sextant {

// `error` is an errno. There is no such file, it is of another kind, or it may not be read.
bool is_mistake_in_path(int error);

// UserError for a mistake, RunError for a failure. `expected`: "a readable file".
[[noreturn]] void throw_unreadable(const std::filesystem::path& path, int error, std::string_view expected);

// RunError where looking at a path failed and it may well be there; nothing for a mistake and for no error.
void require_looked_at(const std::filesystem::path& path, const std::error_code& error);

// The status of a path, that of a link itself in the second; for a mistake, one of a file that is not there. RunError
// for a failure.
std::filesystem::file_status look_at(const std::filesystem::path& path);
std::filesystem::file_status look_at_link(const std::filesystem::path& path);

bool is_there(const std::filesystem::path& path);

}  // namespace sextant
