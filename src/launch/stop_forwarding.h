// How mpirun is made to stop a run. Open MPI's mpirun answers SIGINT, SIGTERM and SIGHUP by ending its ranks: SIGTERM
// after odls_base_sigkill_timeout (1 s), SIGKILL after the same time again. A save under way is lost. (A longer time is
// no way out: it also passes before the SIGTERM, and mpirun sleeps through all of it after every failure.) SIGUSR1 it
// passes on to every rank, and a run that gets it saves and stops.
#pragma once

#include <string_view>

namespace sextant {

// For a POSIX shell: runs the command in "$@" and gives its exit status. The first SIGINT or SIGTERM, and every SIGHUP
// and SIGUSR1, reach the command as SIGUSR1; the next SIGINT or SIGTERM ends it at once. Each line is a command of its
// own.
inline constexpr std::string_view kStopForwarding =
    R"("$@" < /dev/null &
run=$!
stop() { again=1; kill -"$1" "$run"; }
trap 'stop USR1' HUP USR1
trap 'stop USR1; trap "stop TERM" INT TERM' INT TERM
again=1
while [ -n "$again" ]; do again=; code=0; wait "$run" || code=$?; done
exit "$code"
)";

}  // namespace sextant
