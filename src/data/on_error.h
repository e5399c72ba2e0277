// OnError: data.on_error, and what readers of text do at a document that cannot be read.
#pragma once

#include <cstdint>

#include "describe/choice.h"

namespace sextant {

enum class OnError : uint8_t { stop, skip };

inline constexpr Choice<OnError> kOnErrors[] = {
    {OnError::stop, "stop"},
    {OnError::skip, "skip"},
};
constexpr const auto& choices_of(OnError) {
  return kOnErrors;
}

}  // namespace sextant
