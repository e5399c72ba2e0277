// Files of other kinds that people have data in. Enters a name; leaves what to say about it: what the file is and how
// it becomes one that is read. A name is enough here: what has a right name and wrong content is refused where it is
// parsed. Only where the name says nothing are the first bytes looked at.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>

#include "base/error.h"

namespace sextant {

// nullopt: the name is not that of a kind known here.
std::optional<Complaint> complaint_about_kind(const std::filesystem::path& path);

// About a file whose name says nothing, by how it begins.
Complaint complaint_about_unknown(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace sextant
