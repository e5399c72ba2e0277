#include "watch/http_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/interruptions.h"
#include "base/printable.h"

namespace sextant {

namespace {

int listen_on(const std::string& host, int port, std::string& why) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    why = ::gai_strerror(error);
    return -1;
  }
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, ::freeaddrinfo);
  for (addrinfo* at = found; at; at = at->ai_next) {
    int fd = ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol);
    if (fd < 0) {
      why = std::strerror(errno);
      continue;
    }
    int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(fd, at->ai_addr, at->ai_addrlen) == 0 && ::listen(fd, 128) == 0) return fd;
    why = std::strerror(errno);
    ::close(fd);
  }
  return -1;
}

int port_of(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

}  // namespace

// The state of a connection says its current work: reading a head, writing an answer, an open stream, or draining.
struct HttpServer::Connection {
  enum class State : uint8_t { head, answer, stream, draining, done };

  explicit Connection(int socket) : fd(socket) {}
  ~Connection() { ::close(fd); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int fd;
  State state = State::head;
  std::string in, out;
  size_t written = 0;
  bool is_http_1_0 = false;
  std::optional<AnswerBody> body;  // what of the answer is still to be made
  Clock::time_point since = Clock::now(), last_write = since;

  bool has_output() const { return written < out.size(); }
  bool wants_to_write() const { return has_output() || body; }
};

HttpResponse plain_response(HttpStatus status, std::string_view text) {
  return {.status = status, .body = std::string(text) + "\n"};
}

HttpServer::HttpServer(const std::string& host, int port, HttpLimits limits, Handler handler)
    : limits_(limits), handler_(std::move(handler)) {
  // Some connections are left to requests that end.
  limits_.streams =
      std::clamp<size_t>(limits_.streams, 1, std::max<size_t>(limits_.connections - limits_.connections / 4, 1));
  std::string why;
  listener_ = listen_on(host, port, why);
  if (listener_ < 0)
    throw RunError(fmt::format("{} port {}", printable(host), port), "cannot listen: " + why,
                   "choose another --port, or end the program that uses it");
  port_ = port_of(listener_);
}

HttpServer::~HttpServer() {
  connections_.clear();
  ::close(listener_);
}

size_t HttpServer::streams() const {
  return static_cast<size_t>(
      std::ranges::count(connections_, Connection::State::stream, [](const Connection& c) { return c.state; }));
}

void HttpServer::turn(std::chrono::milliseconds wait) {
  std::vector<pollfd> waiting{{listener_, POLLIN, 0}};
  for (const Connection& connection : connections_)
    waiting.push_back({connection.fd, static_cast<short>(connection.wants_to_write() ? POLLIN | POLLOUT : POLLIN), 0});
  if (::poll(waiting.data(), waiting.size(), static_cast<int>(wait.count())) < 0) return;  // a signal
  auto at = waiting.begin() + 1;
  Clock::time_point now = Clock::now();
  for (Connection& connection : connections_) {
    try {
      serve(connection, (at++)->revents);
      look_at_time(connection, now);
    } catch (const std::bad_alloc&) {
      refuse_for_memory(connection);
    }
  }
  connections_.remove_if([](const Connection& c) { return c.state == Connection::State::done; });
  if (waiting.front().revents & POLLIN) accept_all();
}

bool HttpServer::add_connection(int fd) {
  try {
    connections_.emplace_back(fd);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void HttpServer::accept_all() {
  for (int fd = 0; (fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) {
    int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connections_.size() < limits_.connections && add_connection(fd)) continue;
    constexpr std::string_view kFull =
        "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n";
    [[maybe_unused]] ssize_t sent = ::send(fd, kFull.data(), kFull.size(), MSG_NOSIGNAL);
    ::close(fd);
  }
}

void HttpServer::serve(Connection& c, short happened) {
  using State = Connection::State;
  if (happened & (POLLERR | POLLNVAL)) c.state = State::done;
  if (happened & (POLLIN | POLLHUP)) read_from(c);
  if (!(happened & POLLOUT) || c.state == State::done) return;
  // One portion in a turn: other connections have theirs.
  if (!c.has_output() && c.body) make_more(c);
  write_to(c);
}

void HttpServer::refuse_for_memory(Connection& c) {
  using State = Connection::State;
  bool is_asking = c.state == State::head;  // later a part of another answer may have been sent
  c.body.reset();
  c.in = c.out = std::string();
  c.written = 0;
  if (!is_asking) {
    c.state = State::done;
    return;
  }
  try {
    answer(c, plain_response(HttpStatus::unavailable, "there is no memory for this answer; ask for less, or later"));
  } catch (const std::bad_alloc&) {
    c.state = State::done;
  }
}

void HttpServer::read_from(Connection& c) {
  using State = Connection::State;
  char block[4096];
  ssize_t got = ::recv(c.fd, block, sizeof block, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    // A reader may end its side once it has asked; an answer is still written.
    if (c.state != State::answer || got < 0) c.state = State::done;
    return;
  }
  // Bytes behind the request are not read.
  if (c.state == State::head) read_head(c, {block, static_cast<size_t>(got)});
}

void HttpServer::read_head(Connection& c, std::string_view block) {
  c.in += block;
  size_t end = c.in.find("\r\n\r\n");
  if (end != c.in.npos && end + 4 <= limits_.head_bytes) {
    auto request = parse_request(std::string_view(c.in).substr(0, end + 4));
    if (const HttpStatus* refused = std::get_if<HttpStatus>(&request)) {
      HttpResponse response = plain_response(*refused, reason_of(*refused));
      if (*refused == HttpStatus::method_not_allowed) response.headers = "Allow: GET\r\n";
      return answer(c, std::move(response));
    }
    c.is_http_1_0 = std::get<HttpRequest>(request).is_http_1_0;
    return answer(c, handler_(std::get<HttpRequest>(request)));
  }
  if (c.in.size() > limits_.head_bytes)
    answer(c, plain_response(HttpStatus::head_too_large, reason_of(HttpStatus::head_too_large)));
}

void HttpServer::answer(Connection& c, HttpResponse response) {
  std::optional<AnswerBody> body;
  if (response.pieces) {
    // An answer of one portion has a length; of a longer one it is not known.
    body.emplace(std::move(response.pieces), limits_.answer);
    AnswerBody::Made made = body->make(response.body);
    if (made == AnswerBody::Made::beyond_budget)
      return answer(c, plain_response(HttpStatus::unavailable, "the answer would be too large; ask for less"));
    if (made == AnswerBody::Made::all) body.reset();
  }
  c.out = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nConnection: close\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: "
      "same-origin\r\n{}",
      static_cast<int>(response.status), reason_of(response.status), response.type, response.headers);
  if (body && !c.is_http_1_0) c.out += "Transfer-Encoding: chunked\r\n";
  if (!body && !response.is_event_stream) c.out += fmt::format("Content-Length: {}\r\n", response.body.size());
  c.out += "\r\n";
  c.body = std::move(body);
  c.out += c.body ? portion_of(c, response.body) : response.body;
  if (response.is_event_stream) make_room_for_stream();
  c.in.clear();
  c.in.shrink_to_fit();
  c.since = c.last_write = Clock::now();
  c.state = response.is_event_stream ? Connection::State::stream : Connection::State::answer;
  write_to(c);
}

// So that streams, which have no end, never take all connections.
void HttpServer::make_room_for_stream() {
  using State = Connection::State;
  if (streams() < limits_.streams) return;
  Connection* oldest = nullptr;
  for (Connection& c : connections_)
    if (c.state == State::stream && (!oldest || c.since < oldest->since)) oldest = &c;
  oldest->state = State::done;  // removed at the end of this turn
}

// As it is sent: readers of HTTP/1.1 see by the last chunk that nothing was cut off, older ones read until the end.
std::string HttpServer::portion_of(const Connection& c, const std::string& text) {
  if (c.is_http_1_0 || text.empty()) return text;
  return fmt::format("{:x}\r\n{}\r\n", text.size(), text);
}

void HttpServer::make_more(Connection& c) {
  std::string text;
  AnswerBody::Made made = c.body->make(text);
  if (made == AnswerBody::Made::beyond_budget) {
    c.state = Connection::State::done;  // without the last chunk: the reader knows that it has not got all
    return;
  }
  c.out = portion_of(c, text);
  if (made == AnswerBody::Made::part) return;
  c.body.reset();
  if (!c.is_http_1_0) c.out += "0\r\n\r\n";
}

void HttpServer::write_to(Connection& c) {
  using State = Connection::State;
  Interruptions interruptions;
  while (c.has_output()) {
    ssize_t sent = ::send(c.fd, c.out.data() + c.written, c.out.size() - c.written, MSG_NOSIGNAL);
    if (sent < 0 && interruptions.may_try_again()) continue;
    if (sent < 0 && errno != EAGAIN) c.state = State::done;
    if (sent < 0) return;
    interruptions.passed();
    c.written += static_cast<size_t>(sent);
    c.last_write = Clock::now();
  }
  c.out.clear();
  c.written = 0;
  if (c.state != State::answer || c.body) return;
  // Closed by the other side, or in time: closing first would lose the answer where more was sent than was read.
  ::shutdown(c.fd, SHUT_WR);
  c.state = State::draining;
  c.since = Clock::now();
}

void HttpServer::look_at_time(Connection& c, Clock::time_point now) {
  using State = Connection::State;
  constexpr std::chrono::milliseconds kDraining{500};
  if (c.state == State::head && now - c.since > limits_.head_time)
    answer(c, plain_response(HttpStatus::request_timeout, reason_of(HttpStatus::request_timeout)));
  if (c.state == State::answer && now - c.since > limits_.answer_time) c.state = State::done;
  if (c.state == State::draining && now - c.since > kDraining) c.state = State::done;
  if (c.state == State::stream && !c.has_output() && now - c.last_write > limits_.silence) {
    c.out = ":\n\n";
    write_to(c);
  }
  if (c.state == State::stream && c.has_output() && now - c.last_write > limits_.answer_time) c.state = State::done;
}

void HttpServer::publish(std::string_view event, std::string_view data) {
  for (Connection& c : connections_) {
    if (c.state != Connection::State::stream) continue;
    if (c.out.size() - c.written > limits_.waiting_stream_bytes) {
      c.state = Connection::State::done;  // removed in the next turn
      continue;
    }
    try {
      c.out += fmt::format("event: {}\ndata: {}\n\n", event, data);
      write_to(c);
    } catch (const std::bad_alloc&) {
      refuse_for_memory(c);
    }
  }
}

}  // namespace sextant
