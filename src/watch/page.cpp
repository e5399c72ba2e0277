#include "watch/page.h"

#include <fmt/format.h>

#include "base/error.h"
#include "watch/access.h"

namespace sextant {

namespace {

void put_in_place_of(std::string& text, std::string_view mark, std::string_view what) {
  size_t at = text.find(mark);
  BUG_IF(at == text.npos, "page.html has no {}", mark);
  text.replace(at, mark.size(), what);
}

// Inside <script>, "</script>" and "<!--" would end or change it.
std::string script_safe(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (char c : json) c == '<' ? out += "\\u003c" : out += c;
  return out;
}

std::string page_with(std::string_view nonce, std::string_view data) {
  std::string script;
  for (size_t i = 0; i < kPageScriptCount; ++i) script += kPageScripts[i].text;
  std::string html(kPageHtml.text);
  put_in_place_of(html, "/* STYLE */", kWatchStyle.text);
  put_in_place_of(html, "/* DATA */", script_safe(data));
  put_in_place_of(html, "/* SCRIPT */", script);
  for (size_t at = 0; (at = html.find("NONCE", at)) != html.npos;) html.replace(at, 5, nonce);
  return html;
}

}  // namespace

LivePage live_page(std::string_view token) {
  std::string nonce = random_token();
  return {
      .html = page_with(nonce, fmt::format("{{\"token\":\"{}\"}}", token)),
      .policy = fmt::format("default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; connect-src 'self'; "
                            "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
                            nonce)};
}

std::string exported_page(std::string_view data) {
  return page_with("export", data);
}

}  // namespace sextant
