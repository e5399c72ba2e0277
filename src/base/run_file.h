// Files that a run writes into its directory, where others may write, too: a link there would lead the run to overwrite
// a file that is none of its own, and a pipe would let it wait.
#pragma once

#include <filesystem>
#include <string_view>

namespace sextant {

// open() of a regular file, made where it is not there (O_CREAT) and closed on exec. -1 with errno otherwise: ELOOP for
// a link, EINVAL for what is no regular file.
int open_run_file(const std::filesystem::path& path, int flags);

// Makes a folder for such files in a run's directory, where it is not there. False with errno otherwise: ENOTDIR for a
// link, which would lead all of them elsewhere.
bool make_run_folder(const std::filesystem::path& path);

// False with errno where not all could be written.
bool write_all(int fd, std::string_view text);

// Adds to the end with one write; false with errno where that fails.
bool append_to_run_file(const std::filesystem::path& path, std::string_view text);

}  // namespace sextant
