// The paths of one depth of multi-token prediction: its feeds, its loss, and the gradient of that.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace sextant {

struct MtpPaths {
  std::string tokens, targets, loss, scale;
};

// Depths count from 1.
inline MtpPaths mtp_paths(int64_t depth) {
  return {.tokens = fmt::format("tokens.{}", depth),
          .targets = fmt::format("targets.{}", depth),
          .loss = fmt::format("mtp_loss.{}", depth),
          .scale = fmt::format("mtp_scale.{}", depth)};
}

}  // namespace sextant
