#include "schedule/from_csv.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "schedule/check.h"

namespace sextant {

namespace {

constexpr int kMostIndex = 999'999;  // of a chunk or microbatch; the counts then stay far within int

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// Cuts what stands before the first `end` off the front of `text`.
std::string_view take_until(std::string_view& text, char end) {
  size_t at = std::min(text.find(end), text.size());
  std::string_view front = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return front;
}

std::optional<int> parse_index(std::string_view text) {
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > kMostIndex) return std::nullopt;
  return value;
}

std::optional<RegionKind> parse_kind(char letter) {
  switch (letter) {
    case 'F':
      return RegionKind::forward;
    case 'B':
      return RegionKind::backward;
    case 'W':
      return RegionKind::weight;
    default:
      return std::nullopt;
  }
}

// "F1.3", or "F3" for chunk 0.
std::optional<Action> parse_action(std::string_view cell) {
  std::optional<RegionKind> kind = parse_kind(cell.front());
  std::string_view chunk = "0", microbatch = cell.substr(1);
  if (microbatch.find('.') != std::string_view::npos) chunk = take_until(microbatch, '.');
  std::optional<int> c = parse_index(chunk), m = parse_index(microbatch);
  if (!kind || !c || !m) return std::nullopt;
  return Action{*kind, *c, *m};
}

[[noreturn]] void fail(std::string_view place, int line, std::string got, std::string expected) {
  throw UserError(
      Complaint{.place = fmt::format("{}:{}", place, line), .got = std::move(got), .expected = std::move(expected)});
}

// A cell as a message shows it: at most 24 bytes, with ? for unprintable ones. Hostile cells can be long or not text at
// all.
std::string shown(std::string_view cell) {
  std::string text;
  for (char c : cell.substr(0, 24)) text += c >= ' ' && c <= '~' ? c : '?';
  return cell.size() > 24 ? text + "…" : text;
}

StagePlacement parse_placement(std::string_view rest, std::string_view place, int line) {
  std::string_view name = trim(take_until(rest, ','));
  if (name == "loop") return StagePlacement::loop;
  if (name == "v") return StagePlacement::v;
  if (name == "both-ways") return StagePlacement::both_ways;
  fail(place, line, fmt::format("placement \"{}\"", shown(name)), "loop, v or both-ways");
}

std::vector<Action> parse_row(std::string_view row, std::string_view place, int line) {
  std::vector<Action> actions;
  while (!row.empty()) {
    std::string_view cell = trim(take_until(row, ','));
    if (cell.empty()) continue;
    bool more = true;
    for (std::string_view rest = cell; more;) {
      more = rest.find('+') != std::string_view::npos;
      std::string_view part = trim(take_until(rest, '+'));
      std::optional<Action> action = part.empty() ? std::nullopt : parse_action(part);
      if (!action)
        fail(place, line, fmt::format("cell \"{}\" is not an action", shown(cell)),
             fmt::format("F, B or W and CHUNK.MICROBATCH, such as F0.3, with numbers up to {}; or several joined by +",
                         kMostIndex));
      action->with_next = more;
      actions.push_back(*action);
    }
  }
  return actions;
}

}  // namespace

PipelineSchedule schedule_from_csv(std::string_view text, std::string_view place) {
  PipelineSchedule schedule{.name = "csv", .shape = {.ranks = 0, .chunks = 0, .microbatches = 0}};
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // spreadsheets write a byte order mark
  for (int line = 1; !text.empty(); ++line) {
    std::string_view row = trim(take_until(text, '\n'));
    if (row.empty() || row.starts_with('#')) continue;
    if (row.starts_with("placement")) {
      if (!schedule.ranks.empty()) fail(place, line, "the placement comes after actions", "it in the first row");
      take_until(row, ',');
      schedule.placement = parse_placement(row, place, line);
      continue;
    }
    schedule.ranks.push_back(parse_row(row, place, line));
    for (const Action& action : schedule.ranks.back()) {
      schedule.shape.chunks = std::max(schedule.shape.chunks, action.chunk + 1);
      schedule.shape.microbatches = std::max(schedule.shape.microbatches, action.microbatch + 1);
    }
  }
  schedule.shape.ranks = static_cast<int>(schedule.ranks.size());
  if (schedule.shape.chunks == 0) fail(place, 1, "there are no actions", "one row of them for each rank");
  check(schedule, place);
  return schedule;
}

std::string csv_text(const PipelineSchedule& schedule) {
  std::string text;
  if (schedule.placement == StagePlacement::v) text = "placement,v\n";
  if (schedule.placement == StagePlacement::both_ways) text = "placement,both-ways\n";
  for (const auto& actions : schedule.ranks) {
    std::string_view comma;
    for (const Action& action : actions) {
      char kind = name_of(action).front();
      text += comma;
      text += schedule.shape.chunks == 1 ? fmt::format("{}{}", kind, action.microbatch)
                                         : fmt::format("{}{}.{}", kind, action.chunk, action.microbatch);
      comma = action.with_next ? "+" : ",";
    }
    text += '\n';
  }
  return text;
}

}  // namespace sextant
