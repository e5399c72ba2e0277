// EventLog: where a process puts the events of a run: events.jsonl, and the command of log.on_event.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "events/event_hook.h"
#include "events/run_event.h"

namespace sextant {

class EventLog {
 public:
  // `on_event`: a command; empty: none. What it prints goes to DIRECTORY/on_event.log.
  EventLog(std::filesystem::path directory, std::string on_event)
      : directory_(std::move(directory)), hook_(std::move(on_event), directory_ / "on_event.log") {}

  // A disk that takes no event does not end a run: what to say of it, the first time.
  std::optional<std::string> record(RunEvent event);

 private:
  std::filesystem::path directory_;
  EventHook hook_;
  bool failed_ = false;
};

}  // namespace sextant
