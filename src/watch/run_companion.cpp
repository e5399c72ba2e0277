#include "watch/run_companion.h"

#include <charconv>
#include <chrono>
#include <ctime>

#include "base/error.h"
#include "watch/access.h"
#include "watch/live_tensorboard.h"
#include "watch/prometheus.h"

namespace sextant {

namespace {

constexpr std::chrono::milliseconds kTurn{100}, kFollowEvery{1000};
constexpr size_t kCompanionBudget = size_t{4} << 20;  // bytes of metrics at a time

bool is_loopback(const std::string& host) {
  return host == "127.0.0.1" || host == "::1" || host == "localhost";
}

}  // namespace

ServedAddress parse_served_address(std::string_view text, std::string_view place) {
  size_t colon = text.rfind(':');
  int port = -1;
  std::string_view digits = colon == text.npos ? std::string_view() : text.substr(colon + 1);
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() || port < 0 || port > 65535)
    throw UserError({.place = std::string(place),
                     .got = fmt::format("'{}'", text),
                     .expected = ":PORT for this machine alone, or ADDRESS:PORT, such as :9400"});
  std::string host(text.substr(0, colon));
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return {host.empty() ? "127.0.0.1" : host, port};
}

RunCompanion::RunCompanion(const std::filesystem::path& run, const Wishes& wishes,
                           std::function<void(const std::string&)> say)
    : say_(std::move(say)), runs_({run}) {
  if (wishes.tensorboard) tensorboard_ = std::make_unique<LiveTensorboard>(run);
  if (!wishes.prometheus.empty()) {
    ServedAddress address = parse_served_address(wishes.prometheus, "log.prometheus");
    // Elsewhere than on loopback whoever reaches the port may read: scrapers send no token, and values are all there
    // is.
    bool is_local = is_loopback(address.host);
    server_ = std::make_unique<HttpServer>(
        address.host, address.port, HttpLimits{}, [this, is_local](const HttpRequest& request) -> HttpResponse {
          if (is_local)
            if (std::optional<HttpResponse> refused = Access::loopback().refusal(request)) return std::move(*refused);
          if (request.path != "/metrics")
            return plain_response(HttpStatus::not_found, "there is /metrics; `sextant watch` serves the page");
          return {.type = "text/plain; version=0.0.4; charset=utf-8",
                  .body = {},
                  .pieces = prometheus_pieces(runs_, std::time(nullptr))};
        });
  }
  worker_ = std::thread([this] { work(); });
}

RunCompanion::~RunCompanion() {
  ending_ = true;
  worker_.join();
}

void RunCompanion::follow() {
  if (server_) {
    runs_.rescan();
    runs_.poll(kCompanionBudget);
  }
  if (tensorboard_) tensorboard_->follow();
}

void RunCompanion::work() {
  auto next = std::chrono::steady_clock::now();
  try {
    while (!ending_) {
      if (std::chrono::steady_clock::now() >= next) {
        follow();
        next = std::chrono::steady_clock::now() + kFollowEvery;
      }
      if (server_)
        server_->turn(kTurn);
      else
        std::this_thread::sleep_for(kTurn);
    }
    follow();
  } catch (const std::exception& error) {
    say_(fmt::format("log.tensorboard and log.prometheus end here: {}", error.what()));
  }
}

}  // namespace sextant
