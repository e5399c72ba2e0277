#include "watch/access.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/error.h"

namespace sextant {

namespace {

// "localhost" and "localhost:6789": a tunnel may give the port another number.
bool is_loopback_name(std::string_view host) {
  for (std::string_view name : {"localhost", "127.0.0.1", "[::1]"}) {
    if (!host.starts_with(name)) continue;
    std::string_view rest = host.substr(name.size());
    if (rest.empty()) return true;
    return rest.front() == ':' && rest.find_first_not_of("0123456789", 1) == rest.npos;
  }
  return false;
}

std::string_view bearer_token(const HttpRequest& request) {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string* header = request.header("authorization");
  return header && header->starts_with(kBearer) ? std::string_view(*header).substr(kBearer.size()) : "";
}

bool is_of_other_origin(const HttpRequest& request, std::string_view host) {
  const std::string* origin = request.header("origin");
  if (!origin) return false;
  size_t scheme = origin->find("://");
  return scheme == origin->npos || std::string_view(*origin).substr(scheme + 3) != host;
}

// A page opened by a link on another: that page can neither read this one nor put it into a frame.
bool is_followed_link(const HttpRequest& request) {
  auto says = [&](std::string_view name, std::string_view value) {
    const std::string* header = request.header(name);
    return header && request.count_header(name) == 1 && *header == value;
  };
  return request.path == "/" && says("sec-fetch-mode", "navigate") && says("sec-fetch-dest", "document");
}

// As the browser says it (https://www.w3.org/TR/fetch-metadata/). Other programs send no such header.
bool is_of_other_site(const HttpRequest& request) {
  return std::ranges::any_of(request.headers, [](const auto& header) {
    return header.first == "sec-fetch-site" && header.second != "same-origin" && header.second != "none";
  });
}

}  // namespace

std::optional<HttpResponse> Access::refusal(const HttpRequest& request) const {
  const std::string* host = request.header("host");
  if (!host || host->empty() || request.count_header("host") != 1)
    return plain_response(HttpStatus::bad_request, "one Host header is required");
  if (token_.empty() && !is_loopback_name(*host))
    return plain_response(HttpStatus::forbidden,
                          "this server answers to localhost only; start it with --host to reach it by another name");
  if (is_of_other_origin(request, *host) || (is_of_other_site(request) && !is_followed_link(request)))
    return plain_response(HttpStatus::forbidden, "requests of other sites are refused");
  if (token_.empty()) return std::nullopt;
  const std::string* given = request.parameter("token");
  if (!equal_in_constant_time(given ? std::string_view(*given) : bearer_token(request), token_))
    return plain_response(HttpStatus::unauthorized,
                          "the token is missing or wrong; sextant watch printed the address with it");
  return std::nullopt;
}

std::string random_token() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw RunError("getrandom", "the system gave no random bytes");
  std::string text;
  for (unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  // The length of the token is no secret.
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
  return difference == 0;
}

}  // namespace sextant
