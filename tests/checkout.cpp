#include "checkout.h"

namespace sextant::checkout {

const char* const kSources = SEXTANT_SOURCE_DIR;
const char* const kBinary = SEXTANT_BINARY;
const char* const kDiskShim = SEXTANT_DISK_SHIM;
const char* const kModuleList = SEXTANT_MODULE_LIST;

}  // namespace sextant::checkout
