// What a config key is about: the result of a run, or only how it gets there.
#pragma once

#include <cstdint>

namespace sextant {

// What a change of a key between two starts of one run changes.
enum class Affects : uint8_t {
  result,     // what is trained, or on what: the weights would be others
  execution,  // where and how it runs, what is kept and shown
};

}  // namespace sextant
