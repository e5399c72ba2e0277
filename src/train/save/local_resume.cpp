#include "train/save/local_resume.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "comm/tags.h"
#include "ir/program.h"
#include "train/save/first_failure.h"

namespace sextant {

namespace {

constexpr int64_t kPassedPiece = int64_t{8} << 20;
constexpr size_t kStepsLooked = 4;  // of each process, newest first: two slots, and what an earlier attempt left

class LocalSearcher {
 public:
  LocalSearcher(const LocalSearch& search, HostGroup& processes)
      : search_(search),
        processes_(processes),
        mesh_(search.programs.train[0].mesh),
        ranks_(static_cast<size_t>(mesh_.world_size())) {
    copies_ = list_local_copies(search.folder, problems_);
    layouts_.assign(ranks_, 0);
    for (size_t rank = 0; rank < ranks_; ++rank)
      if (is_own(rank)) layouts_[rank] = static_cast<int64_t>(layout_of(rank));
    processes_.sum(layouts_);
  }

  std::optional<LocalPoint> find() {
    std::optional<LocalPoint> found;
    std::vector<int64_t> left_out;
    for (int64_t step : candidate_steps()) {
      if ((found = try_step(step))) break;
      left_out.push_back(step);
    }
    std::string why = processes_.first_text(problems_.empty() ? "" : problems_.front());
    if (left_out.empty() && (found || why.empty())) return found;
    if (why.empty()) why = "they are not there for every rank of this mesh";
    search_.say(fmt::format("local checkpoints{} are not used: {}",
                            left_out.empty() ? "" : fmt::format(" of step {}", fmt::join(left_out, ", ")), why));
    return found;
  }

 private:
  bool is_own(size_t rank) const { return !search_.transport || search_.transport->rank() == static_cast<int>(rank); }

  uint64_t layout_of(size_t rank) const {
    auto stage = static_cast<size_t>(stage_rank_of(mesh_, static_cast<int>(rank)));
    return state_layout(search_.programs.train[stage], static_cast<int>(rank));
  }

  // Of all processes, newest first.
  std::vector<int64_t> candidate_steps() {
    std::set<int64_t, std::greater<>> own;
    for (const LocalCopy& copy : copies_)
      if (copy.manifest.step >= search_.oldest) own.insert(copy.manifest.step);
    std::vector<int64_t> all(static_cast<size_t>(processes_.size()) * kStepsLooked, 0);
    size_t at = static_cast<size_t>(processes_.rank()) * kStepsLooked, end = at + kStepsLooked;
    for (auto step = own.begin(); step != own.end() && at < end; ++step) all[at++] = *step;
    processes_.sum(all);
    std::set<int64_t, std::greater<>> found(all.begin(), all.end());
    found.erase(0);
    return {found.begin(), found.end()};
  }

  // A whole copy of the rank's state on this host, its own before a replica's.
  std::optional<LocalCopy> whole_copy(size_t rank, int64_t step) {
    std::string layout = hex(static_cast<uint64_t>(layouts_[rank]));
    for (bool own : {true, false})
      for (const LocalCopy& copy : copies_) {
        const LocalManifest& m = copy.manifest;
        if (m.step != step || m.layout != layout || (m.rank == static_cast<int64_t>(rank)) != own) continue;
        std::string damage = damage_of(copy);
        if (damage.empty()) return copy;
        problems_.push_back(damage);
      }
    return std::nullopt;
  }

  std::optional<LocalPoint> try_step(int64_t step) {
    LocalPoint point{.step = step, .state = {}, .copies = std::vector<LocalCopy>(ranks_)};
    std::vector<int64_t> has(ranks_, 0);
    for (size_t rank = 0; rank < ranks_; ++rank) {
      if (!is_own(rank)) continue;
      std::optional<LocalCopy> copy = whole_copy(rank, step);
      if (!copy) continue;
      has[rank] = 1;
      point.copies[rank] = std::move(*copy);
    }
    processes_.sum(has);
    std::vector<size_t> missing;
    for (size_t rank = 0; rank < ranks_; ++rank)
      if (has[rank] == 0) missing.push_back(rank);
    if (!missing.empty() && !fetch(missing, step, point)) return std::nullopt;
    bool usable = true;
    for (size_t rank = 0; rank < ranks_; ++rank)
      if (is_own(rank) && usable) usable = read_state(point.copies[rank], point.state);
    std::vector<int64_t> unusable{usable ? 0 : 1};
    processes_.sum(unusable);
    if (unusable[0] > 0) return std::nullopt;
    return point;
  }

  bool read_state(const LocalCopy& copy, RunState& state) {
    try {
      state = parse_run_state(copy.manifest.state, copy.data);
      return state.step == copy.manifest.step;
    } catch (const std::runtime_error& error) {
      problems_.emplace_back(error.what());
      return false;
    }
  }

  // From the first process that has each; every process is one rank here.
  bool fetch(const std::vector<size_t>& missing, int64_t step, LocalPoint& point) {
    if (!search_.transport) return false;
    auto size = static_cast<size_t>(processes_.size()), self = static_cast<size_t>(processes_.rank());
    std::vector<std::optional<LocalCopy>> here(missing.size());
    std::vector<int64_t> holders(missing.size() * size, 0);
    for (size_t i = 0; i < missing.size(); ++i) {
      here[i] = whole_copy(missing[i], step);
      holders[i * size + self] = here[i] ? 1 : 0;
    }
    processes_.sum(holders);
    std::vector<int64_t> failed{0};
    for (size_t i = 0; i < missing.size(); ++i) {
      auto begin = holders.begin() + static_cast<ptrdiff_t>(i * size), end = begin + static_cast<ptrdiff_t>(size);
      auto holder = std::find(begin, end, 1);
      if (holder == end) return false;  // the same on every process
      auto sender = static_cast<size_t>(holder - begin);
      if (sender == self) send(*here[i], static_cast<int>(missing[i]));
      if (missing[i] == self && !receive(static_cast<int>(sender), point.copies[self])) failed[0] = 1;
    }
    processes_.sum(failed);
    return failed[0] == 0;
  }

  void send(const LocalCopy& copy, int to) {
    MappedFile file(copy.data);
    std::string text = local_manifest_json(copy.manifest);
    auto length = static_cast<int64_t>(text.size());
    AbortOnThrow abort(*search_.transport);
    pass(to, std::as_bytes(std::span(&length, 1)));
    pass(to, std::as_bytes(std::span(text)));
    for (std::span<const std::byte> left = file.bytes(); !left.empty();) {
      size_t piece = std::min(left.size(), static_cast<size_t>(kPassedPiece));
      pass(to, left.first(piece));
      left = left.subspan(piece);
    }
  }
  void pass(int to, std::span<const std::byte> bytes) {
    search_.transport->wait(search_.transport->send(to, kLocalCopyTag, bytes));
  }
  void take(int from, std::span<std::byte> bytes) {
    search_.transport->wait(search_.transport->receive(from, kLocalCopyTag, bytes));
  }

  // Kept in this rank's first slot, as if it had been written here.
  bool receive(int from, LocalCopy& copy) {
    int self = search_.transport->rank();
    int64_t length = 0;
    AbortOnThrow abort(*search_.transport);
    take(from, std::as_writable_bytes(std::span(&length, 1)));
    std::string text(static_cast<size_t>(length), ' ');
    take(from, std::as_writable_bytes(std::span(text)));
    LocalManifest manifest = parse_local_manifest(text, fmt::format("what rank {} sent", from));
    manifest.rank = self;
    std::optional<LocalSlot> slot;
    std::string failure;
    try_to(failure, [&] { slot.emplace(search_.folder, self, self, 0, manifest.bytes).begin(); });
    std::vector<std::byte> piece(static_cast<size_t>(std::min(manifest.bytes, kPassedPiece)));
    for (int64_t at = 0; at < manifest.bytes; at += kPassedPiece) {
      std::span part = std::span(piece).first(static_cast<size_t>(std::min(kPassedPiece, manifest.bytes - at)));
      take(from, part);
      try_to(failure, [&] { slot->write_at(at, part); });
    }
    try_to(failure, [&] { slot->commit(manifest); });
    if (failure.empty()) {
      std::vector<std::string> ignored;
      for (LocalCopy& found : list_local_copies(search_.folder, ignored))
        if (found.manifest.rank == self && found.manifest.step == manifest.step) copy = std::move(found);
      failure = copy.data.empty() ? "it is not there" : damage_of(copy);
    }
    if (!failure.empty()) problems_.push_back(fmt::format("the copy that rank {} sent: {}", from, failure));
    return failure.empty();
  }

  const LocalSearch& search_;
  HostGroup& processes_;
  const Mesh& mesh_;
  size_t ranks_;
  std::vector<LocalCopy> copies_;
  std::vector<int64_t> layouts_;  // by rank
  std::vector<std::string> problems_;
};

}  // namespace

std::optional<LocalPoint> find_local_point(const LocalSearch& search, HostGroup& processes) {
  return LocalSearcher(search, processes).find();
}

}  // namespace sextant
