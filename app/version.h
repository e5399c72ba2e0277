// What --version prints after the program's name: the number, and the commit where it is known.
#pragma once

namespace sextant {

const char* version();  // written by cmake/write_version.cmake

}  // namespace sextant
