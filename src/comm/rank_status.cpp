#include "comm/rank_status.h"

#include <fmt/format.h>

namespace sextant {

std::string StatusSnapshot::text() const {
  std::string out;
  if (step > 0) out += fmt::format("in step {}", step);
  if (!action.empty()) out += fmt::format("{}{}", out.empty() ? "in " : ", ", action);
  if (!place.empty()) out += fmt::format("{}at {}", out.empty() ? "" : ", ", place);
  if (!beside.empty()) out += fmt::format("{}with {} under way", out.empty() ? "" : ", ", beside);
  return out;
}

const std::string* RankStatus::keep(std::string place) {
  std::lock_guard lock(mutex_);
  return &places_.emplace_back(std::move(place));
}

void RankStatus::begin_step(int64_t step) {
  leave_action();
  arrive(nullptr);
  step_.store(step, std::memory_order_relaxed);
}

void RankStatus::begin_action(char region, int chunk, int microbatch) {
  action_.store(uint64_t{static_cast<unsigned char>(region)} << 56 | uint64_t{static_cast<uint16_t>(chunk)} << 32 |
                    static_cast<uint32_t>(microbatch),
                std::memory_order_relaxed);
}

void RankStatus::wait_for(int rank) {
  if (waiting_for_.exchange(rank, std::memory_order_relaxed) == rank) return;
  auto now = std::chrono::system_clock::now().time_since_epoch();
  waiting_since_ms_.store(std::chrono::duration_cast<std::chrono::milliseconds>(now).count(),
                          std::memory_order_relaxed);
}

uint64_t RankStatus::progress() const {
  uint64_t mixed = 0;
  auto mix = [&](uint64_t number) { mixed = (mixed ^ number) * 0x9E3779B97F4A7C15u + (mixed >> 29); };
  mix(static_cast<uint64_t>(step_.load(std::memory_order_relaxed)));
  mix(action_.load(std::memory_order_relaxed));
  mix(reinterpret_cast<uintptr_t>(place_.load(std::memory_order_relaxed)));
  mix(reinterpret_cast<uintptr_t>(beside_.load(std::memory_order_relaxed)));
  mix(static_cast<uint64_t>(waiting_for_.load(std::memory_order_relaxed)));
  mix(moves_.load(std::memory_order_relaxed));
  mix(static_cast<uint64_t>(sequence_.load(std::memory_order_relaxed)));
  return mixed;
}

StatusSnapshot RankStatus::seen() const {
  StatusSnapshot snapshot{.step = step_.load(std::memory_order_relaxed),
                          .action = {},
                          .place = {},
                          .beside = {},
                          .waiting_for = waiting_for_.load(std::memory_order_relaxed),
                          .sequence = sequence_.load(std::memory_order_relaxed),
                          .waiting_since_ms = 0};
  if (snapshot.waiting_for >= 0) snapshot.waiting_since_ms = waiting_since_ms_.load(std::memory_order_relaxed);
  if (uint64_t action = action_.load(std::memory_order_relaxed))
    snapshot.action = static_cast<char>(action >> 56) == 'U' ? "Update"
                                                             : fmt::format("{} {} {}", static_cast<char>(action >> 56),
                                                                           action >> 32 & 0xffff, action & 0xffffffff);
  if (const std::string* place = place_.load(std::memory_order_acquire)) snapshot.place = *place;
  if (const std::string* beside = beside_.load(std::memory_order_acquire)) snapshot.beside = *beside;
  return snapshot;
}

}  // namespace sextant
