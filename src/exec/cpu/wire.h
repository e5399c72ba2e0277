// Wire: what the ops of one rank talk to other ranks through, and a count of what they send.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "comm/collectives.h"
#include "comm/payload_check.h"
#include "comm/tags.h"

namespace sextant {

struct Wire {
  Channel channel;
  PayloadCheck payload_check;
  std::map<std::string, int64_t, std::less<>> bytes_sent;  // by axes: "dp", "dp,cp", "pp"

  void count(std::string_view axes, int64_t bytes) {
    auto at = bytes_sent.find(axes);
    if (at == bytes_sent.end()) at = bytes_sent.emplace(std::string(axes), 0).first;
    at->second += bytes;
  }
};

}  // namespace sextant
