// Opens the files of the formats that are text.
#pragma once

#include <filesystem>
#include <memory>

#include "data/decompress.h"

namespace sextant {

// The bytes of a text file, decompressed where its name says that it is compressed. UserError when it cannot be opened,
// and at the first read when it is in UTF-16 or UTF-32.
std::unique_ptr<ByteStream> open_text(const std::filesystem::path& path);

}  // namespace sextant
