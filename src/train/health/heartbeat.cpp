#include "train/health/heartbeat.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "base/run_file.h"
#include "base/threads.h"

namespace sextant {

namespace fs = std::filesystem;

std::string own_host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "?";
}

fs::path heartbeat_directory(const fs::path& out) {
  return out / "heartbeat";
}

namespace {

constexpr std::chrono::milliseconds kInterval{500};
constexpr size_t kFileBytes = 4096;  // always: a beat is written over the last one, the rest is spaces
constexpr size_t kReasonBytes = 1024;

fs::path file_of(const fs::path& out, int rank) {
  return heartbeat_directory(out) / fmt::format("rank-{}.json", rank);
}

// Appends `text` as a string of JSON. Nearly all are plain, and are copied as they are.
void append_json(std::string& to, const std::string& text) {
  auto is_plain = [](unsigned char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; };
  if (std::ranges::all_of(text, is_plain))
    to.append("\"").append(text).append("\"");
  else
    to += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Another machine may have died in the middle of a write.
std::optional<LastBeat> read_record(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error) || fs::file_size(path, error) > kFileBytes) return std::nullopt;
  try {
    nlohmann::json json = nlohmann::json::parse(read_file(path));
    auto number = [&](const char* key) { return json.value(key, int64_t{0}); };
    auto text = [&](const char* key) { return printable(json.at(key).get<std::string>()); };  // it ends in messages
    return LastBeat{.rank = json.at("rank"),
                    .host = text("host"),
                    .time = text("time"),
                    .state = text("state"),
                    .reason = text("reason"),
                    .pid = json.at("pid"),
                    .snapshot = {.step = json.at("step"),
                                 .action = text("action"),
                                 .place = text("op"),
                                 .beside = text("beside"),
                                 .waiting_for = json.at("waiting_for"),
                                 .sequence = number("sequence"),
                                 .waiting_since_ms = number("waiting_since_ms")},
                    .thread = number("thread"),
                    .time_ms = number("time_ms")};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  } catch (const std::runtime_error&) {  // gone meanwhile, or not to be read
    return std::nullopt;
  }
}

std::string line_of(const LastBeat& r) {
  std::string who = fmt::format("rank {} (process {} on {}, {})", r.rank, r.pid, r.host, r.time),
              where = r.snapshot.text();
  if (where.empty()) where = "before its first step";
  if (r.state == "failed" && r.reason.starts_with("rank ")) return fmt::format("{} failed: {}", who, r.reason);
  if (r.state == "failed") return fmt::format("{} failed {}: {}", who, where, r.reason);
  std::string line = fmt::format("{} was {} {}", who, r.state == "running" ? "last seen" : "ended", where);
  return r.snapshot.waiting_for < 0 ? line : line + fmt::format(", waiting for rank {}", r.snapshot.waiting_for);
}

}  // namespace

Heartbeat::Heartbeat(const fs::path& out, int rank, const RankStatus& rank_status)
    : path_(file_of(out, rank)), rank_status_(rank_status), host_(own_host_name()), thread_(::gettid()) {
  who_ = fmt::format("{{\"rank\":{},\"host\":", rank);
  append_json(who_, host_);
  who_ += fmt::format(",\"pid\":{}", ::getpid());
  std::error_code ignored;
  fs::create_directories(out, ignored);
  open();
  beat();
  watcher_ = start_thread(fmt::format("rank {}'s heartbeat", rank), [this] { keep_beating(); });
}

Heartbeat::~Heartbeat() {
  if (!over_) end();
  watcher_.join();
  if (file_ >= 0) ::close(file_);
}

void Heartbeat::open() {
  // A run without heartbeats is still a run; what must be written reports its own errors.
  file_ = make_run_folder(path_.parent_path()) ? open_run_file(path_, O_TRUNC | O_WRONLY) : -1;
  end_ = kFileBytes;
}

// Those who watch the run would take it for one that hangs.
void Heartbeat::open_again_if_removed() {
  struct stat about {};
  if (file_ >= 0 && (::fstat(file_, &about) != 0 || about.st_nlink > 0)) return;
  if (file_ >= 0) ::close(file_);
  open();
}

void Heartbeat::write(const std::string& state, const std::string& reason) {
  if (file_ < 0) return;
  StatusSnapshot seen = rank_status_.seen();
  auto now = std::chrono::system_clock::now();
  auto second = std::chrono::floor<std::chrono::seconds>(now);
  if (second != second_) {
    second_ = second;
    second_text_ = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(second)));
  }
  auto add = [&]<class... Values>(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
  };
  auto add_text = [&](std::string_view key, const std::string& value) {
    add(",\"{}\":", key);
    append_json(text_, value);
  };
  text_ = who_;
  add_text("state", state);
  add(",\"step\":{}", seen.step);
  add_text("action", seen.action);
  add_text("op", seen.place);
  add_text("beside", seen.beside);
  add(",\"waiting_for\":{},\"waiting_since_ms\":{},\"sequence\":{},\"thread\":{}", seen.waiting_for,
      seen.waiting_since_ms, seen.sequence, thread_);
  add(",\"time\":\"{}\",\"time_ms\":{}", second_text_,
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count());
  add(",\"step_s\":{:.6g},\"waited_s\":{:.6g},\"input_s\":{:.6g},\"cpu_s\":{:.6g}", times_.step, times_.waited,
      times_.input, times_.cpu);
  add_text("reason", reason.substr(0, kReasonBytes));
  text_ += '}';
  if (text_.size() >= kFileBytes) return;
  // Spaces over what the beat before had more; behind it they are there.
  size_t end = std::exchange(end_, text_.size());
  text_.resize(std::max(text_.size(), end), ' ');
  if (end == kFileBytes) text_.back() = '\n';
  [[maybe_unused]] ssize_t written = ::pwrite(file_, text_.data(), text_.size(), 0);
}

void Heartbeat::beat() {
  std::lock_guard lock(mutex_);
  if (!over_) write("running", "");
}

void Heartbeat::note_times(const RankTimes& times) {
  std::lock_guard lock(mutex_);
  times_ = times;
}

void Heartbeat::close_with(const std::string& state, const std::string& reason) {
  std::lock_guard lock(mutex_);
  over_ = true;
  open_again_if_removed();
  write(state, reason);
  ended_.notify_all();
}

void Heartbeat::finish() {
  close_with("finished", "");
}
void Heartbeat::fail(const std::string& reason) {
  close_with("failed", reason);
}
void Heartbeat::end() {
  close_with("ended", "");
}

void Heartbeat::keep_beating() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kInterval, [this] { return over_; })) {
    open_again_if_removed();
    write("running", "");
  }
}

StatusLookup heartbeat_status_lookup(const fs::path& out) {
  return [out](int rank) {
    auto record = read_record(file_of(out, rank));
    return record ? record->snapshot : StatusSnapshot{};
  };
}

std::vector<LastBeat> last_beats(const fs::path& out) {
  std::vector<LastBeat> records;
  std::error_code error;
  for (fs::directory_iterator at(heartbeat_directory(out), error), end; !error && at != end; at.increment(error))
    if (auto record = read_record(at->path())) records.push_back(std::move(*record));
  std::ranges::sort(records, {}, &LastBeat::rank);
  return records;
}

std::vector<std::string> previous_failures(const fs::path& out) {
  constexpr size_t kMost = 16;
  std::vector<std::string> lines;
  size_t left = 0;
  // First those that failed or waited for nobody: one of them is why the others waited.
  auto first = [](const LastBeat& record) { return record.state == "failed" || record.snapshot.waiting_for < 0; };
  for (bool firsts : {true, false})
    for (const LastBeat& record : last_beats(out)) {
      if (record.state == "finished" || first(record) != firsts) continue;
      lines.size() < kMost ? lines.push_back(line_of(record)) : void(++left);
    }
  if (left > 0) lines.push_back(fmt::format("and {} more, in {}", left, heartbeat_directory(out).string()));
  return lines;
}

void clear_heartbeats(const fs::path& out) {
  std::error_code ignored;
  fs::remove_all(heartbeat_directory(out), ignored);
}

}  // namespace sextant
