// WatchedTransport: a transport that notes how long this rank waits for each other. In a collective all ranks take as
// long as the slowest; whom they waited for shows which one that was.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "comm/transport.h"

namespace sextant {

// One thread at a time, unlike the transport it stands before.
class WatchedTransport final : public Transport {
 public:
  explicit WatchedTransport(Transport& inner) : inner_(inner), waited_(static_cast<size_t>(inner.size())) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Ticket send(int to, int tag, std::span<const std::byte> bytes) override { return inner_.send(to, tag, bytes); }
  Ticket receive(int from, int tag, std::span<std::byte> bytes) override {
    Ticket ticket = inner_.receive(from, tag, bytes);
    receives_.push_back({ticket.slot, from});
    return ticket;
  }
  void wait(Ticket ticket) override {
    auto start = std::chrono::steady_clock::now();
    inner_.wait(ticket);
    for (size_t i = 0; i < receives_.size(); ++i) {
      if (receives_[i].slot != ticket.slot) continue;
      waited_[static_cast<size_t>(receives_[i].from)] +=
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      receives_[i] = receives_.back();
      receives_.pop_back();
      return;
    }
  }
  // Seconds, by rank, since the last forget().
  const std::vector<double>& waited() const { return waited_; }
  void forget() { waited_.assign(waited_.size(), 0); }

 private:
  void end_run(const std::string& reason, ExitCode code) override { inner_.abort(reason, code); }

  struct Receive {
    int32_t slot;
    int from;
  };
  Transport& inner_;
  std::vector<Receive> receives_;  // under way
  std::vector<double> waited_;
};

}  // namespace sextant
