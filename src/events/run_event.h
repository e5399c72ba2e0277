// events.jsonl: what happened to a run, one line of JSON per event, in the order in which it happened, over all
// attempts. Unlike metrics.jsonl nothing is ever removed: a step that is run again leaves the events of both times.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "events/event_details.h"

namespace sextant {

enum class EventKind : uint8_t {
#define EVENT(name, when) name,
#include "events/event_kinds.def"
#undef EVENT
};

struct EventKindInfo {
  EventKind kind;
  std::string_view name, when;
};
std::vector<EventKindInfo> event_kinds();
std::string_view name_of(EventKind kind);
std::optional<EventKind> event_kind_named(std::string_view name);

struct RunEvent {
  EventKind kind = EventKind::note;
  std::string time = {};             // UTC, 2026-11-17T18:03:54.123Z; empty: now, when it is written
  std::optional<int64_t> step = {};  // the step it belongs to; a start has the first step that will run
  std::string text = {};             // one sentence for a person
  EventDetails details = {};         // further fields of the line

  bool operator==(const RunEvent&) const = default;
};

std::string utc_now();  // as in RunEvent::time

// One line, without its end. parse_event gives nothing for a line that is no event, such as one cut off by a crash.
std::string event_line(const RunEvent& event);
std::optional<RunEvent> parse_event(std::string_view line);

inline constexpr std::string_view kEventsFile = "events.jsonl";

// Appends to DIRECTORY/events.jsonl with one write, so that lines of several processes do not mix; a torn last line is
// ended first. RunError where it cannot be written.
void append_event(const std::filesystem::path& directory, const RunEvent& event);

// All events of a run, lines that are none left out; empty where there is no file.
std::vector<RunEvent> read_events(const std::filesystem::path& directory);

}  // namespace sextant
