// Files of other kinds that people have data in. Enters a name; leaves what to say about it: what the file is and how
// it becomes one that is read. A name tells enough here: what has a right name and wrong content is refused where it is
// parsed.
#pragma once

#include <filesystem>
#include <optional>

#include "base/error.h"

namespace sextant {

// nullopt: the name is not that of a kind known here.
std::optional<Complaint> complaint_about_kind(const std::filesystem::path& path);

}  // namespace sextant
