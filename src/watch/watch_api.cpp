#include "watch/watch_api.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <ctime>
#include <set>

#include "watch/page.h"
#include "watch/prometheus.h"
#include "watch/run_comparison.h"
#include "watch/run_json.h"

namespace sextant {

namespace {

constexpr size_t kMostParts = 4000, kMostCompared = 100;

HttpResponse json_response(std::string text) {
  return {.type = "application/json", .body = std::move(text)};
}

HttpResponse json_response(BodyPieces pieces) {
  return {.type = "application/json", .body = {}, .pieces = std::move(pieces)};
}

struct BadParameter {
  std::string_view name;
  std::string expected;
};

template <typename Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string required_text(const HttpRequest& request, std::string_view name) {
  const std::string* text = request.parameter(name);
  if (!text || text->empty()) throw BadParameter{name, "a value"};
  return *text;
}

double number_or(const HttpRequest& request, std::string_view name, double otherwise) {
  const std::string* text = request.parameter(name);
  if (!text) return otherwise;
  std::optional<double> number = number_in<double>(*text);
  if (!number || !std::isfinite(*number)) throw BadParameter{name, "a number"};
  return *number;
}

// Each id once, in the order in which they were given.
std::vector<int> ids_in(const HttpRequest& request) {
  std::set<int> seen;
  std::vector<int> ids;
  std::string text = required_text(request, "runs");
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    std::optional<int> id = number_in<int>(one);
    if (!id) throw BadParameter{"runs", "ids of runs, with commas between them"};
    if (seen.insert(*id).second) ids.push_back(*id);
  }
  return ids;
}

XAxis axis_in(const HttpRequest& request) {
  const std::string* name = request.parameter("x");
  std::optional<XAxis> axis = name ? x_axis_named(*name) : XAxis::step;
  if (!axis) throw BadParameter{"x", "one of " + x_axis_names()};
  return *axis;
}

HttpResponse answer_series(const RunSet& runs, const HttpRequest& request) {
  SeriesQuestion question{.field = required_text(request, "field"), .runs = ids_in(request)};
  question.range.axis = axis_in(request);
  question.range.from = number_or(request, "from", question.range.from);
  question.range.to = number_or(request, "to", question.range.to);
  double parts = number_or(request, "parts", 400);
  if (!(parts >= 1 && parts <= kMostParts)) throw BadParameter{"parts", "1 to 4000"};
  question.range.parts = static_cast<size_t>(parts);
  question.smoothing = number_or(request, "smooth", 0);
  if (!(question.smoothing >= 0 && question.smoothing < 1)) throw BadParameter{"smooth", "0 to below 1"};
  return json_response(series_json(runs, std::move(question)));
}

HttpResponse answer_list(const RunSet& runs, const HttpRequest& request) {
  std::optional<int> id = number_in<int>(required_text(request, "run"));
  if (!id) throw BadParameter{"run", "the id of a run"};
  const WatchedRun* run = runs.find(*id);
  const ListColumn* list = run ? run->columns().list(required_text(request, "field")) : nullptr;
  if (!list) return plain_response(HttpStatus::not_found, "this run has no such list");
  return json_response(list_json(*run, *list, axis_in(request)));
}

HttpResponse answer_ops(const RunSet& runs, const HttpRequest& request) {
  std::optional<int> id = number_in<int>(required_text(request, "run"));
  if (!id) throw BadParameter{"run", "the id of a run"};
  const WatchedRun* run = runs.find(*id);
  if (!run) return plain_response(HttpStatus::not_found, "there is no such run");
  return json_response(op_comparison_pieces(run->directory()));
}

// Of the others with the first.
HttpResponse answer_comparison(const RunSet& runs, const HttpRequest& request) {
  std::vector<const WatchedRun*> compared;
  std::vector<int> ids = ids_in(request);
  if (ids.size() > kMostCompared) throw BadParameter{"runs", fmt::format("at most {} runs", kMostCompared)};
  for (int id : ids) {
    const WatchedRun* run = runs.find(id);
    if (!run) return plain_response(HttpStatus::not_found, "there is no such run");
    compared.push_back(run);
  }
  return json_response(comparison_json(compare_with_first(compared)));
}

HttpResponse answer_page(const std::string& token) {
  LivePage page = live_page(token);
  return {.type = "text/html; charset=utf-8",
          .body = std::move(page.html),
          .headers = fmt::format("Content-Security-Policy: {}\r\n", page.policy)};
}

}  // namespace

HttpResponse WatchApi::answer(const HttpRequest& request) const {
  if (std::optional<HttpResponse> refused = access_.refusal(request)) return std::move(*refused);
  int64_t now = std::time(nullptr);
  try {
    if (request.path == "/") return answer_page(access_.token());
    if (request.path == "/api/runs") return json_response(runs_json(runs_, now));
    if (request.path == "/api/series") return answer_series(runs_, request);
    if (request.path == "/api/list") return answer_list(runs_, request);
    if (request.path == "/api/ops") return answer_ops(runs_, request);
    if (request.path == "/api/compare") return answer_comparison(runs_, request);
    if (request.path == "/api/events") return json_response(events_json(runs_, ids_in(request)));
    if (request.path == "/api/stream")
      return {.type = "text/event-stream", .body = "retry: 2000\n\n", .is_event_stream = true};
    if (request.path == "/metrics")
      return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = {}, .pieces = prometheus_pieces(runs_, now)};
  } catch (const BadParameter& bad) {
    return plain_response(HttpStatus::bad_request, fmt::format("parameter {}: expected {}", bad.name, bad.expected));
  }
  return plain_response(HttpStatus::not_found, "not found; the page is at /, the API at /api/runs");
}

}  // namespace sextant
