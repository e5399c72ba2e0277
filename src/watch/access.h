// Who may ask. On loopback, requests must name a loopback host: a page of another site that lets its own name lead to
// 127.0.0.1 (DNS rebinding) names that. Elsewhere a token is required. Where the browser says that a page of another
// site or of another port asks (Origin, Sec-Fetch-Site), the request is refused, but for a link that a person follows.
#pragma once

#include <optional>
#include <string>

#include "watch/http_server.h"

namespace sextant {

class Access {
 public:
  static Access loopback() { return Access({}); }
  static Access with_token(std::string token) { return Access(std::move(token)); }

  // The answer to a request that is refused; nothing where it may be served.
  std::optional<HttpResponse> refusal(const HttpRequest& request) const;
  const std::string& token() const { return token_; }  // empty: none is needed

 private:
  explicit Access(std::string token) : token_(std::move(token)) {}
  std::string token_;
};

// 128 random bits of the system, as 32 digits.
std::string random_token();

// In a time that does not depend on where they differ.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace sextant
