// The page of `watch`: one text with its style and script inside. It asks this server for data, or holds it.
#pragma once

#include <string>
#include <string_view>

namespace sextant {

struct LivePage {
  std::string html;
  std::string policy;  // the Content-Security-Policy header's value that lets this text's script run, and no other
};
// `token` is put on every request of the page; empty: none.
LivePage live_page(std::string_view token);

// A file that needs no server: `data` is what export_json gives.
std::string exported_page(std::string_view data);

// The sources in src/watch/page, as they are.
struct PageFile {
  std::string_view name, text;
};
extern const PageFile kPageHtml, kWatchStyle, kPageScripts[];
extern const size_t kPageScriptCount;

}  // namespace sextant
