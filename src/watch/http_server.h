// A server of GET requests and event streams on one thread, by poll(). Every connection is bounded: the time for its
// head, the bytes of it, the bytes of the answer, the time to make and to take it, and how many there are. A connection
// serves one request. Where memory ends, that request is answered with 503.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "watch/answer_body.h"
#include "watch/http_request.h"

namespace sextant {

struct HttpResponse {
  HttpStatus status = HttpStatus::ok;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::string headers;           // further ones, each with its line end
  bool is_event_stream = false;  // stays open; `body` is its first text
  BodyPieces pieces = {};        // in place of `body`: made while it is sent
};

HttpResponse plain_response(HttpStatus status, std::string_view text);

struct HttpLimits {
  size_t connections = 64, streams = 48;  // the oldest stream makes room for a new one; its page connects again
  size_t head_bytes = 16 << 10;
  size_t waiting_stream_bytes = 1 << 20;  // that a stream's reader has not taken
  AnswerBudget answer = {};               // of one that comes in pieces
  std::chrono::milliseconds head_time{10'000}, answer_time{30'000},
      silence{15'000};  // silence: then a stream gets a sign
};

class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  // RunError where the address cannot be had. Port 0: any that is free.
  HttpServer(const std::string& host, int port, HttpLimits limits, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }
  size_t connections() const { return connections_.size(); }
  size_t streams() const;

  // Waits at most that long for something to happen, and does it.
  void turn(std::chrono::milliseconds wait);

  // To every open stream.
  void publish(std::string_view event, std::string_view data);

 private:
  struct Connection;
  using Clock = std::chrono::steady_clock;

  void accept_all();
  bool add_connection(int fd);
  void read_from(Connection& connection);
  void write_to(Connection& connection);
  void serve(Connection& connection, short happened);
  void read_head(Connection& connection, std::string_view block);
  void answer(Connection& connection, HttpResponse response);
  void make_more(Connection& connection);
  void make_room_for_stream();
  void refuse_for_memory(Connection& connection);
  static std::string portion_of(const Connection& connection, const std::string& text);
  void look_at_time(Connection& connection, Clock::time_point now);

  HttpLimits limits_;
  Handler handler_;
  int listener_ = -1, port_ = 0;
  std::list<Connection> connections_;
};

}  // namespace sextant
