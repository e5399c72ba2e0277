// Paths of the checkout and the build that is tested. Defined in one source: objects of all others are the same in
// every checkout, and ccache has them.
#pragma once

namespace sextant::checkout {

extern const char* const kSources;     // the folder with CMakeLists.txt
extern const char* const kBinary;      // the program `sextant`
extern const char* const kDiskShim;    // durability/disk_shim.cpp, to be preloaded
extern const char* const kModuleList;  // what each module may include, written by CMake

}  // namespace sextant::checkout
