#include "app/json_output.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/printable.h"

namespace sextant {

void print_json(const nlohmann::ordered_json& json) {
  fmt::print("{}\n", escaped_json(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace)));
}

}  // namespace sextant
