// A client that says exactly what the test wants, right or wrong.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

namespace sextant {

class RawClient {
 public:
  explicit RawClient(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~RawClient() { ::close(fd_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }
  bool send(std::string_view text) const {
    return ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  void end_sending() const { ::shutdown(fd_, SHUT_WR); }

  // All that comes until the server closes, or until `wanted` has come, or the patience ends.
  std::string receive(std::string_view wanted = "", std::chrono::milliseconds patience = std::chrono::seconds(20)) {
    auto deadline = std::chrono::steady_clock::now() + patience;
    while (wanted.empty() || got_.find(wanted) == got_.npos) {
      auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      pollfd waiting{fd_, POLLIN, 0};
      if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) break;
      char block[65536];
      ssize_t count = ::recv(fd_, block, sizeof block, 0);
      if (count <= 0) {
        closed_ = true;
        break;
      }
      got_.append(block, static_cast<size_t>(count));
    }
    return got_;
  }
  bool closed() const { return closed_; }

 private:
  int fd_;
  bool connected_ = false, closed_ = false;
  std::string got_;
};

struct RawAnswer {
  int status = 0;
  std::string head, body;
};

// Of a body in chunks; cut off without the last one.
inline std::string joined_chunks(std::string_view text) {
  std::string out;
  while (true) {
    size_t end = text.find("\r\n");
    if (end == text.npos) return out + "(cut off)";
    size_t size = std::stoul(std::string(text.substr(0, end)), nullptr, 16);
    if (size == 0) return out;
    out += text.substr(end + 2, size);
    text.remove_prefix(std::min(text.size(), end + 2 + size + 2));
  }
}

inline RawAnswer answer_to(int port, const std::string& request) {
  RawClient client(port);
  client.send(request);
  std::string text = client.receive();
  size_t split = text.find("\r\n\r\n");
  RawAnswer answer;
  if (text.starts_with("HTTP/1.1 ")) answer.status = std::stoi(text.substr(9, 3));
  answer.head = text.substr(0, split);
  if (split != text.npos) answer.body = text.substr(split + 4);
  if (answer.head.find("Transfer-Encoding: chunked") != answer.head.npos) answer.body = joined_chunks(answer.body);
  return answer;
}

inline RawAnswer get(int port, const std::string& target, const std::string& headers = "Host: localhost\r\n") {
  return answer_to(port, "GET " + target + " HTTP/1.1\r\n" + headers + "\r\n");
}

}  // namespace sextant
