// Where the files lie that come with the program: machines, configs. Beside an installed program that is
// PREFIX/share/sextant for a PREFIX/bin, wherever the tree was moved; of a program in its build folder, the source
// tree.
#pragma once

#include <filesystem>
#include <string_view>

namespace sextant {

std::filesystem::path program_folder(std::string_view name);  // "machines": the folder, whether it is there or not

}  // namespace sextant
