// Reading zip archives whose entries are stored, not compressed: the container of PyTorch's files. What enters may be
// hostile; what leaves is checked: every entry lies inside the file, beside all others. Checksums are not: PyTorch can
// be told to leave them out, and does not look at them when it maps a file. All else is a UserError.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

struct ZipEntry {
  std::string name;
  std::span<const std::byte> bytes;  // of the file
};

// `file` is the whole file; `place` names it in messages. Entries are in the order of their data.
std::vector<ZipEntry> parse_zip(std::string_view place, std::span<const std::byte> file);

}  // namespace sextant
