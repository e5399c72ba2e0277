// A config that is being written: keys with their values and why they were chosen. Later values of a key take the place
// of earlier ones.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.h"
#include "config/schema.h"

namespace sextant {

class Draft {
 public:
  // `why` becomes a comment above the key; empty: none.
  void set(std::string_view key, const ConfigValue& value, std::string why = {});

  std::string toml(std::string_view heading) const;  // the sections in the schema's order
  RunConfig run() const;  // as loading reads it: UserError when something does not go together

 private:
  struct Line {
    std::string key;  // "batch.seq"
    std::string value, why;
  };
  std::vector<Line> lines_;
};

}  // namespace sextant
