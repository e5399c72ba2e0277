// The head of an HTTP request: what a server of GET requests needs of it, and nothing more.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sextant {

// Status codes of answers: ok, and the reasons to refuse a request.
enum class HttpStatus : uint16_t {
  ok = 200,
  bad_request = 400,
  unauthorized = 401,
  forbidden = 403,
  not_found = 404,
  method_not_allowed = 405,
  request_timeout = 408,
  head_too_large = 431,
  unavailable = 503,
};
std::string_view reason_of(HttpStatus status);

struct HttpRequest {
  using Fields = std::vector<std::pair<std::string, std::string>>;
  std::string path;  // decoded: "/api/runs"
  Fields query;      // decoded
  Fields headers;    // names in lower case
  bool is_http_1_0 = false;

  // The value, or nullptr. Of headers that stand twice, the first.
  const std::string* parameter(std::string_view name) const;
  const std::string* header(std::string_view name) const;
  size_t count_header(std::string_view name) const;
};

// `head` ends with the empty line. The request, or the status to refuse it with: only GET, only HTTP/1.0 and 1.1, no
// body, no control characters.
std::variant<HttpRequest, HttpStatus> parse_request(std::string_view head);

}  // namespace sextant
