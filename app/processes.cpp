#include "app/processes.h"

#include <cstdio>
#include <thread>

#include "base/error.h"
#include "comm/launcher.h"
#ifdef SEXTANT_MPI
#include "comm/mpi/mpi_transport.h"
#endif

namespace sextant {

namespace {

// A rank thread that does not come back holds on to memory that unwinding would free: the process goes as it stands.
void end_process(const std::string& why, ExitCode code) {
  fmt::print(stderr, "sextant: {}\n  a rank did not come back; the process ends without it\n", why);
  std::fflush(nullptr);
  std::_Exit(number_of(code));
}

}  // namespace

#ifdef SEXTANT_MPI

struct Processes::Joined {
  MpiSession session;
  std::unique_ptr<Transport> transport;
};

void Processes::join() {
  if (running_under_mpi()) joined_ = std::make_unique<Joined>();
}

Launch Processes::launch(std::chrono::milliseconds timeout, const StatusLookup& status_lookup) {
  if (!joined_) return {.end_process = end_process};
  joined_->transport = make_mpi_transport(joined_->session, timeout, status_lookup);
  return {.process = joined_->transport.get(),
          .ranks_on_host = joined_->session.ranks_on_host(),
          .cores = joined_->session.cores_per_rank(),
          .end_process = {}};
}

void Processes::bound_end(std::chrono::milliseconds after_failure, std::chrono::milliseconds after_success) {
  if (joined_) joined_->session.bound_end(after_failure, after_success);
}

void Processes::leave_with(ExitCode exit_code) {
  if (!joined_) return;
  // A run that was stopped, or stopped itself, ends as one that finished does: every rank has left in good order.
  if (exit_code == ExitCode::finished || exit_code == ExitCode::stopped || exit_code == ExitCode::non_finite)
    joined_->session.succeed_with(exit_code);
  else
    joined_->session.fail_with(exit_code);
}

bool Processes::leads() const {
  return !joined_ || joined_->session.rank() == 0;
}

void Processes::wait_for_leader_report() const {
  if (!leads()) std::this_thread::sleep_for(std::chrono::milliseconds(800));
}

void Processes::wait_for_failing_rank() const {
  if (joined_) std::this_thread::sleep_for(std::chrono::milliseconds(700));
}

#else

struct Processes::Joined {};

void Processes::join() {
  if (running_under_mpi())
    throw UserError({.place = "this build of sextant has no MPI",
                     .got = "a launcher started several processes of it",
                     .expected = "one process, whose threads are the ranks",
                     .hint = "install libopenmpi-dev and build again, or start it without mpirun and srun"});
}

Launch Processes::launch(std::chrono::milliseconds, const StatusLookup&) {
  return {.end_process = end_process};
}

void Processes::bound_end(std::chrono::milliseconds, std::chrono::milliseconds) {}
void Processes::leave_with(ExitCode) {}
bool Processes::leads() const {
  return true;
}
void Processes::wait_for_leader_report() const {}
void Processes::wait_for_failing_rank() const {}

#endif

Processes::Processes() = default;
Processes::~Processes() = default;

}  // namespace sextant
