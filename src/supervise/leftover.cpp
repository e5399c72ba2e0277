#include "supervise/leftover.h"

#include <fmt/format.h>
#include <signal.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <thread>

#include "base/run_file.h"
#include "supervise/child_process.h"
#include "train/health/heartbeat.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kChildFile = "supervisor.json";

struct NotedChild {
  pid_t process = 0;
  uint64_t start = 0;

  bool is_running() const { return start_ticks(process) == start; }
};

// Nothing for a child on another host, and for a file that was cut off.
std::optional<NotedChild> noted_child(const fs::path& out) {
  std::ifstream file(out / kChildFile);
  std::ostringstream text;
  text << file.rdbuf();
  nlohmann::json json = nlohmann::json::parse(text.str(), nullptr, false);
  if (!json.is_object() || json.value("host", nlohmann::json()) != own_host_name()) return std::nullopt;
  for (const char* key : {"child", "start"})
    if (!json.contains(key) || !json[key].is_number_unsigned()) return std::nullopt;
  auto process = json["child"].get<uint64_t>();
  if (process < 2 || process > (uint64_t{1} << 30)) return std::nullopt;
  return NotedChild{static_cast<pid_t>(process), json["start"].get<uint64_t>()};
}

}  // namespace

// Not by a temporary name: the child removes those of runs that crashed.
void note_child(const fs::path& out, pid_t child) {
  nlohmann::json json{
      {"host", own_host_name()}, {"child", static_cast<uint64_t>(child)}, {"start", start_ticks(child).value_or(0)}};
  std::error_code ignored;
  fs::remove(out / kChildFile, ignored);
  append_to_run_file(out / kChildFile, json.dump() + "\n");
}

void forget_child(const fs::path& out) {
  std::error_code ignored;
  fs::remove(out / kChildFile, ignored);
}

void end_leftover(const fs::path& out, std::chrono::milliseconds patience,
                  const std::function<void(const std::string& line)>& say) {
  std::optional<NotedChild> child = noted_child(out);
  if (!child || !child->is_running()) return forget_child(out);
  say(fmt::format("process {} of an earlier supervisor is still running here; it is asked to save and stop",
                  child->process));
  ::kill(child->process, SIGUSR1);
  for (auto start = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() - start < patience;) {
    if (!child->is_running()) return forget_child(out);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  say(fmt::format("it has not stopped within {} s and is killed",
                  std::chrono::duration_cast<std::chrono::seconds>(patience).count()));
  kill_descendants(child->process);
  ::kill(child->process, SIGKILL);
  while (child->is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  forget_child(out);
}

}  // namespace sextant
