#include "watch/http_request.h"

#include <algorithm>
#include <optional>

namespace sextant {

namespace {

constexpr size_t kMostHeaders = 100, kMostParameters = 32;

const std::string* find_field(const HttpRequest::Fields& fields, std::string_view name) {
  auto found = std::ranges::find(fields, name, &std::pair<std::string, std::string>::first);
  return found == fields.end() ? nullptr : &found->second;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Percent signs decoded; nothing where one is wrong or stands for a control character.
std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return std::nullopt;
    out += c;
  }
  return out;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

bool read_target(std::string_view target, HttpRequest& request) {
  if (!target.starts_with('/') || target.find('#') != target.npos) return false;
  size_t mark = target.find('?');
  std::optional<std::string> path = decoded(target.substr(0, mark));
  if (!path) return false;
  request.path = std::move(*path);
  if (mark == target.npos) return true;
  for (std::string_view rest = target.substr(mark + 1); !rest.empty();) {
    std::string_view one = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    size_t equals = one.find('=');
    auto name = decoded(one.substr(0, equals)), value = decoded(equals == one.npos ? "" : one.substr(equals + 1));
    if (!name || !value || request.query.size() == kMostParameters) return false;
    request.query.emplace_back(std::move(*name), std::move(*value));
  }
  return true;
}

bool read_header(std::string_view line, HttpRequest& request) {
  size_t colon = line.find(':');
  if (colon == line.npos || !is_token(line.substr(0, colon)) || request.headers.size() == kMostHeaders) return false;
  std::string name(line.substr(0, colon));
  std::ranges::transform(name, name.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
  while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
  if (std::ranges::any_of(value, [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; })) return false;
  request.headers.emplace_back(std::move(name), std::string(value));
  return true;
}

}  // namespace

std::string_view reason_of(HttpStatus status) {
  switch (status) {
    case HttpStatus::ok:
      return "OK";
    case HttpStatus::bad_request:
      return "Bad Request";
    case HttpStatus::unauthorized:
      return "Unauthorized";
    case HttpStatus::forbidden:
      return "Forbidden";
    case HttpStatus::not_found:
      return "Not Found";
    case HttpStatus::method_not_allowed:
      return "Method Not Allowed";
    case HttpStatus::request_timeout:
      return "Request Timeout";
    case HttpStatus::head_too_large:
      return "Request Header Fields Too Large";
    case HttpStatus::unavailable:
      return "Service Unavailable";
  }
  return "";
}

const std::string* HttpRequest::parameter(std::string_view name) const {
  return find_field(query, name);
}

const std::string* HttpRequest::header(std::string_view name) const {
  return find_field(headers, name);
}

size_t HttpRequest::count_header(std::string_view name) const {
  return static_cast<size_t>(std::ranges::count(headers, name, &std::pair<std::string, std::string>::first));
}

std::variant<HttpRequest, HttpStatus> parse_request(std::string_view head) {
  HttpRequest request;
  bool first = true, ended = false;
  while (!ended) {
    size_t end = head.find("\r\n");
    if (end == head.npos) return HttpStatus::bad_request;
    std::string_view line = head.substr(0, end);
    head.remove_prefix(end + 2);
    if (line.empty()) {
      if (first || !head.empty()) return HttpStatus::bad_request;
      ended = true;
      continue;
    }
    if (!first) {
      if (!read_header(line, request)) return HttpStatus::bad_request;
      continue;
    }
    first = false;
    size_t one = line.find(' '), two = line.rfind(' ');
    if (one == line.npos || two == one || !is_token(line.substr(0, one))) return HttpStatus::bad_request;
    std::string_view version = line.substr(two + 1), target = line.substr(one + 1, two - one - 1);
    if (version != "HTTP/1.1" && version != "HTTP/1.0") return HttpStatus::bad_request;
    request.is_http_1_0 = version == "HTTP/1.0";
    if (line.substr(0, one) != "GET") return HttpStatus::method_not_allowed;
    if (target.find(' ') != target.npos || !read_target(target, request)) return HttpStatus::bad_request;
  }
  const std::string* length = request.header("content-length");
  if ((length && *length != "0") || request.header("transfer-encoding")) return HttpStatus::bad_request;
  return request;
}

}  // namespace sextant
