#include "app/page_origin.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "app/version.h"
#include "events/run_event.h"

namespace sextant {

std::string command_text(std::span<const std::string> words) {
  auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::string_view("-_=./,:+@%").find(c) != std::string::npos;
  };
  std::string text = "sextant";
  for (const std::string& word : words) {
    text += ' ';
    if (!word.empty() && std::ranges::all_of(word, plain)) {
      text += word;
      continue;
    }
    text += '\'';
    for (char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += '\'';
  }
  return text;
}

PageOrigin page_origin(std::string model, std::string config, std::string command) {
  constexpr size_t kDateLength = std::string_view("2026-11-18").size();
  return {.model = std::move(model),
          .config = std::move(config),
          .command = std::move(command),
          .version = version_number(),
          .date = utc_now().substr(0, kDateLength)};
}

}  // namespace sextant
