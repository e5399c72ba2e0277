#include "app/watch_options.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace sextant {

namespace {

constexpr std::array<VerbMode, 6> kWatchModes{{
    {"serve", "the live page"},
    {"text", "curves in the terminal (--text)"},
    {"export_page", "a page in a file (--html)"},
    {"csv", "a table of values (--csv)"},
    {"tensorboard", "event files of TensorBoard (--tensorboard)"},
    {"forward", "following into a service (--forward)"},
}};

template <class... Modes>
constexpr ModeSet in_watch(Modes... modes) {
  return (0u | ... | (1u << static_cast<unsigned>(modes)));
}

using enum WatchMode;
constexpr ModeSet kEveryWatch = in_watch(serve, text, export_page, csv, tensorboard);

constexpr std::array<OptionUse, 13> kWatchOptions{{
    {"directories", kEveryWatch | in_watch(forward)},
    {"--port", in_watch(serve)},
    {"--host", in_watch(serve)},
    {"--stop-after", in_watch(serve)},
    {"--text", in_watch(text)},
    {"--field", in_watch(text, csv)},
    {"--x", in_watch(text)},
    {"--width", in_watch(text)},
    {"--html", in_watch(export_page)},
    {"--csv", in_watch(csv)},
    {"--tensorboard", in_watch(tensorboard)},
    {"--forward", in_watch(forward)},
    {"--json", kEveryWatch},
}};

}  // namespace

const OptionTable& watch_options() {
  static const OptionTable table{kWatchModes, kWatchOptions};
  return table;
}

WatchMode watch_mode(const std::vector<std::string>& given) {
  std::vector<std::pair<std::string_view, WatchMode>> chosen;
  for (auto [option, mode] : {std::pair<std::string_view, WatchMode>{"--text", text},
                              {"--html", export_page},
                              {"--csv", csv},
                              {"--tensorboard", tensorboard},
                              {"--forward", forward}})
    if (std::ranges::count(given, option) > 0) chosen.emplace_back(option, mode);
  if (chosen.size() > 1)
    throw UserError(
        {.place = std::string(chosen[1].first),
         .got = "is given beside " + std::string(chosen[0].first),
         .expected = "one of --text, --html, --csv, --tensorboard and --forward, or none for the live page"});
  return chosen.empty() ? serve : chosen[0].second;
}

}  // namespace sextant
