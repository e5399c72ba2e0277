#include "events/run_event.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "base/run_file.h"

namespace sextant {

namespace {

constexpr EventKindInfo kEventKinds[] = {
#define EVENT(name, when) {EventKind::name, #name, when},
#include "events/event_kinds.def"
#undef EVENT
};

nlohmann::ordered_json json_of(const EventValue& value) {
  return std::visit(
      []<class T>(const T& own) -> nlohmann::ordered_json {
        if constexpr (std::is_same_v<T, EventJson>)
          return nlohmann::ordered_json::parse(own.text, nullptr, false);
        else
          return own;
      },
      value);
}

EventValue value_of(const nlohmann::ordered_json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer() && !json.is_number_unsigned()) return json.get<int64_t>();
  if (json.is_number_unsigned() && json.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()})
    return json.get<int64_t>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  bool texts = json.is_array() && !json.empty() &&
               std::ranges::all_of(json, [](const nlohmann::ordered_json& item) { return item.is_string(); });
  if (texts) return json.get<std::vector<std::string>>();
  return EventJson{json.dump()};
}

class EventsDescriptor {
 public:
  explicit EventsDescriptor(const std::filesystem::path& path)
      : path_(path), fd_(open_run_file(path, O_RDWR | O_APPEND)) {
    if (fd_ < 0) fail("cannot open for writing");
  }
  ~EventsDescriptor() { ::close(fd_); }
  EventsDescriptor(const EventsDescriptor&) = delete;
  EventsDescriptor& operator=(const EventsDescriptor&) = delete;

  bool ends_in_a_line() const {
    struct stat about {};
    char last = '\n';
    if (::fstat(fd_, &about) == 0 && about.st_size > 0 && ::pread(fd_, &last, 1, about.st_size - 1) != 1) last = '\n';
    return last == '\n';
  }

  void write(const std::string& text) const {
    ssize_t written = ::write(fd_, text.data(), text.size());
    if (written != static_cast<ssize_t>(text.size())) fail(written < 0 ? "cannot write" : "cannot write all of a line");
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw RunError(path_.string(), fmt::format("{}: {}", what, std::strerror(errno)));
  }
  std::filesystem::path path_;
  int fd_;
};

}  // namespace

std::vector<EventKindInfo> event_kinds() {
  return {std::begin(kEventKinds), std::end(kEventKinds)};
}

std::string_view name_of(EventKind kind) {
  return kEventKinds[static_cast<size_t>(kind)].name;
}

std::optional<EventKind> event_kind_named(std::string_view name) {
  for (const EventKindInfo& info : kEventKinds)
    if (info.name == name) return info.kind;
  return std::nullopt;
}

std::string utc_now() {
  using namespace std::chrono;
  auto now = floor<milliseconds>(system_clock::now());
  std::time_t seconds = system_clock::to_time_t(now);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min, utc.tm_sec, now.time_since_epoch().count() % 1000);
}

std::string event_line(const RunEvent& event) {
  nlohmann::ordered_json line;
  line["time"] = event.time.empty() ? utc_now() : event.time;
  line["event"] = name_of(event.kind);
  if (event.step) line["step"] = *event.step;
  line["text"] = event.text;
  for (const auto& [name, value] : event.details)
    if (!line.contains(name)) line[name] = json_of(value);
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<RunEvent> parse_event(std::string_view line) {
  auto json = nlohmann::ordered_json::parse(line, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  auto text_of = [&](const char* name) -> std::optional<std::string> {
    auto found = json.find(name);
    if (found == json.end() || !found->is_string()) return std::nullopt;
    return found->get<std::string>();
  };
  std::optional<std::string> time = text_of("time"), kind = text_of("event"), text = text_of("text");
  std::optional<EventKind> known = kind ? event_kind_named(*kind) : std::nullopt;
  if (!time || time->empty() || !known || !text) return std::nullopt;
  RunEvent event{.kind = *known, .time = *time, .text = *text};
  if (auto step = json.find("step"); step != json.end()) {
    if (!step->is_number_integer()) return std::nullopt;
    event.step = step->get<int64_t>();
  }
  for (const char* name : {"time", "event", "step", "text"}) json.erase(name);
  for (const auto& [name, value] : json.items()) event.details.set(name, value_of(value));
  return event;
}

void append_event(const std::filesystem::path& directory, const RunEvent& event) {
  EventsDescriptor file(directory / kEventsFile);
  file.write((file.ends_in_a_line() ? "" : "\n") + event_line(event) + "\n");
}

std::vector<RunEvent> read_events(const std::filesystem::path& directory) {
  std::filesystem::path path = directory / kEventsFile;
  std::vector<RunEvent> events;
  if (!std::filesystem::exists(path)) return events;
  std::istringstream lines(read_file(path));
  for (std::string line; std::getline(lines, line);)
    if (std::optional<RunEvent> event = parse_event(line)) events.push_back(std::move(*event));
  return events;
}

}  // namespace sextant
