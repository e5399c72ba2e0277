// How much a command says beside its result.
#pragma once

#include <cstdint>

namespace sextant {

enum class Verbosity : uint8_t {
  quiet,    // the result alone
  usual,    // progress too
  verbose,  // every step of it
};

}  // namespace sextant
