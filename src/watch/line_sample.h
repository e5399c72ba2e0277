// A few whole lines of a file, evenly spread over it: what a large file says in short, before all of it is read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string_view>

namespace sextant {

// At most `count` lines, in order, each once; none of a file smaller than `smallest` bytes, of one that is a link, or
// of none. Reads about `count` times a few kilobytes.
void sample_lines(const std::filesystem::path& path, size_t count, size_t smallest,
                  const std::function<void(std::string_view)>& line);

}  // namespace sextant
