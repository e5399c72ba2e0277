#include "exec/file_ring.h"

#ifdef SEXTANT_LIBURING
#include <liburing.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#endif

#include "base/error.h"
#include "ir/memory_space.h"

namespace sextant {

#ifdef SEXTANT_LIBURING

namespace {

constexpr int64_t kPieceOfFile = 1 << 20;
constexpr size_t kPiecesUnderWay = 32;

[[noreturn]] void refuse_ring(int error) {
  throw UserError({.place = "offload.to",
                   .got = fmt::format("the kernel does not let this process use io_uring: {}", std::strerror(error)),
                   .expected = "io_uring for offload.to = \"nvme\"",
                   .hint =
                       "in a container allow the system calls io_uring_setup, io_uring_enter and io_uring_register "
                       "(Docker: --security-opt seccomp=PROFILE); on the host set sysctl kernel.io_uring_disabled=0; "
                       "or use offload.to = \"host\""});
}

}  // namespace

struct FileRing::State {
  struct Piece {
    std::byte* data = nullptr;
    int64_t left = 0, offset = 0;
  };

  io_uring ring{};
  std::array<Piece, kPiecesUnderWay> pieces;
  std::array<size_t, kPiecesUnderWay> idle{};  // the first idle_count are those that wait for work
  size_t idle_count = 0;

  void queue(FileAccess access, int descriptor, size_t at) {
    const Piece& piece = pieces[at];
    io_uring_sqe* request = io_uring_get_sqe(&ring);
    BUG_IF(!request, "more pieces than the ring has room for");
    const auto bytes = static_cast<unsigned>(piece.left);
    const auto offset = static_cast<uint64_t>(piece.offset);
    access == FileAccess::read ? io_uring_prep_read(request, descriptor, piece.data, bytes, offset)
                               : io_uring_prep_write(request, descriptor, piece.data, bytes, offset);
    io_uring_sqe_set_data64(request, at);
  }

  void open() {
    if (int result = io_uring_queue_init(kPiecesUnderWay, &ring, 0); result < 0) refuse_ring(-result);
  }

  // The kernel took some requests and takes no more calls: those that it has taken are still written to memory when
  // they are done. They are waited for here, by looking; those that it has not taken go with the ring.
  void abandon() {
    const unsigned taken_until = io_uring_smp_load_acquire(ring.sq.khead);
    const size_t not_taken = ring.sq.sqe_tail - taken_until;
    while (kPiecesUnderWay - idle_count > not_taken) {
      io_uring_cqe* done = nullptr;
      if (io_uring_peek_cqe(&ring, &done) != 0) {
        sched_yield();  // a call of the kernel, in which it ends what is done
        continue;
      }
      io_uring_cqe_seen(&ring, done);
      ++idle_count;
    }
    io_uring_queue_exit(&ring);
    open();
  }
};

FileRing::FileRing() : state_(std::make_unique<State>()) {
  state_->open();
}

FileRing::~FileRing() {
  io_uring_queue_exit(&state_->ring);
}

std::optional<FileFailure> FileRing::move(FileAccess access, int descriptor, std::byte* data, int64_t bytes,
                                          int64_t offset) {
  State& s = *state_;
  s.idle_count = kPiecesUnderWay;
  for (size_t at = 0; at < kPiecesUnderWay; ++at) s.idle[at] = at;
  std::optional<FileFailure> failure;
  auto settle = [&](size_t at, int result) {
    State::Piece& piece = s.pieces[at];
    // A later request must begin at a block again.
    const int64_t moved = result > 0 ? result / kFileBlock * kFileBlock : 0;
    const bool again = result == -EINTR || result == -EAGAIN;
    if (moved == 0 && !again && !failure) failure = FileFailure{std::max(0, -result), piece.offset};
    piece.data += moved, piece.offset += moved, piece.left -= moved;
    if (piece.left > 0 && !failure)
      s.queue(access, descriptor, at);
    else
      s.idle[s.idle_count++] = at;
  };
  for (int64_t next = 0;;) {
    while (!failure && next < bytes && s.idle_count > 0) {
      const size_t at = s.idle[--s.idle_count];
      s.pieces[at] = {data + next, std::min(kPieceOfFile, bytes - next), offset + next};
      next += s.pieces[at].left;
      s.queue(access, descriptor, at);
    }
    if (s.idle_count == kPiecesUnderWay) return failure;
    int result = io_uring_submit_and_wait(&s.ring, 1);
    if (result < 0 && result != -EINTR && result != -EAGAIN && result != -EBUSY) {
      s.abandon();
      return FileFailure{-result, offset};
    }
    for (io_uring_cqe* done = nullptr; io_uring_peek_cqe(&s.ring, &done) == 0;) {
      const size_t at = io_uring_cqe_get_data64(done);
      const int moved = done->res;
      io_uring_cqe_seen(&s.ring, done);
      settle(at, moved);
    }
  }
}

#else

struct FileRing::State {};

FileRing::FileRing() {
  throw UserError({.place = "offload.to",
                   .got = "this build has no liburing, with which values are kept on NVMe",
                   .expected = "a build with liburing, or offload.to = \"host\"",
                   .hint = "install liburing-dev (scripts/setup does) and build again"});
}

FileRing::~FileRing() = default;

std::optional<FileFailure> FileRing::move(FileAccess, int, std::byte*, int64_t, int64_t) {
  BUG("a ring of a build without liburing");
}

#endif

}  // namespace sextant
