// Any text as the head of a request: it is refused, or its path and parameters hold no control characters.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "watch/access.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sextant;
  auto parsed = parse_request({reinterpret_cast<const char*>(data), size});
  const auto* request = std::get_if<HttpRequest>(&parsed);
  if (!request) return 0;
  auto check = [](const std::string& text) {
    for (unsigned char c : text)
      if (c < 0x20 && c != '\t') std::abort();
  };
  if (!request->path.starts_with('/')) std::abort();
  check(request->path);
  for (const auto& fields : {request->query, request->headers})
    for (const auto& [name, value] : fields) {
      check(name);
      check(value);
    }
  // Without a loopback name, or without the token, nothing is served.
  const std::string* host = request->header("host");
  if (!Access::loopback().refusal(*request) &&
      !(host && (host->find("localhost") != host->npos || host->find("127.0.0.1") != host->npos ||
                 host->find("[::1]") != host->npos)))
    std::abort();
  if (!Access::with_token("token that is not there").refusal(*request)) std::abort();
  return 0;
}
