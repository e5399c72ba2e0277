#include "view/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

namespace sextant {

namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (static_cast<unsigned char>(c) < ' ')
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    else
      out += c;
  }
  return out + '"';
}

// Ranks are processes, lanes their threads: numbered as they come, and named.
class Rows {
 public:
  explicit Rows(const Trace& trace) {
    for (const Event& event : trace) {
      std::map<std::string, int>& lanes = ranks_[event.rank];
      lanes.try_emplace(event.lane, static_cast<int>(lanes.size()));
    }
  }

  int lane_of(const Event& event) const { return ranks_.at(event.rank).at(event.lane); }

  void name_all(std::vector<std::string>& lines) const {
    for (const auto& [rank, lanes] : ranks_) {
      lines.push_back(
          fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"rank {}"}}}})", rank, rank));
      for (const auto& [lane, number] : lanes)
        lines.push_back(fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", rank,
                                    number, quoted(lane)));
    }
  }

 private:
  std::map<int, std::map<std::string, int>> ranks_;
};

std::string arguments(const Event& event) {
  std::string text = fmt::format(R"("path":{},"step":{})", quoted(event.path), event.step);
  double seconds = event.end_s - event.start_s;
  if (seconds > 0 && event.flops > 0) text += fmt::format(R"(,"TFLOP/s":{:.3f})", event.flops / seconds / 1e12);
  if (seconds > 0 && event.bytes > 0)
    text += fmt::format(R"(,"GB/s":{:.3f})", static_cast<double>(event.bytes) / seconds / 1e9);
  return text;
}

}  // namespace

std::string chrome_trace(const Trace& trace) {
  std::vector<std::string> lines;
  Rows rows(trace);
  rows.name_all(lines);
  double start = 0;
  if (!trace.empty())
    start = std::min_element(trace.begin(), trace.end(), [](const Event& a, const Event& b) {
              return a.start_s < b.start_s;
            })->start_s;
  for (const Event& event : trace)
    lines.push_back(fmt::format(R"({{"ph":"X","name":{},"pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})",
                                quoted(event.name), event.rank, rows.lane_of(event), (event.start_s - start) * 1e6,
                                (event.end_s - event.start_s) * 1e6, arguments(event)));
  return fmt::format("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{}\n]}}\n", fmt::join(lines, ",\n"));
}

}  // namespace sextant
