// Effect of a config key: on the result of a run, or only on its execution.
#pragma once

#include <cstdint>

namespace sextant {

// Effect of changing a key between two starts of one run.
enum class Affects : uint8_t {
  result,     // what is trained, or on what: the weights would be others
  execution,  // where and how it runs, what is kept and shown
};

}  // namespace sextant
