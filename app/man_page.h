// Manual pages in roff, from the table of verbs and options: sextant.1, and sextant-VERB.1 for every verb.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "app/command_tree.h"

namespace sextant {

std::string man_page_name(const Command& command);  // "sextant-bench-gemm"
std::string man_page(const Command& command, const Command& root);

// The command of those words; UserError when there is none.
const Command& command_named(const Command& root, std::span<const std::string> words);

// NAME.1 for every command, into a folder that is made where it is not there.
void write_man_pages(const Command& root, const std::filesystem::path& folder);

}  // namespace sextant
