// How long a search takes: Llama 3.1 70B on 1,024 H100s, 2,048 sequences of 8,192 tokens, and 8B on 64. Prints what
// `sextant search` would, and the time; fails when one takes more than 20 s. Time of the processors stands
// beside it, as others may be using them.
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>

#include "base/threads.h"
#include "cost/machine_file.h"
#include "models/presets.h"
#include "search/search.h"

using namespace sextant;

namespace {

struct Ask {
  const char* preset;
  const char* machine;
  int64_t devices, sequences, seq;
  double limit_s;
};

bool within_limit(const Ask& ask) {
  RunConfig run;
  run.batch.sequences = ask.sequences, run.batch.seq = ask.seq;
  ModelSpec spec = find_preset(ask.preset)->spec;
  Machine machine = load_machine(ask.machine);
  SoftwareProfile profile = own_profile();
  std::clock_t before = std::clock();
  SearchResult result =
      search_layouts({.run = run, .spec = spec, .machine = machine, .profile = profile, .devices = ask.devices});
  double processors = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  fmt::print("{} on {} × {}: {:.1f} s (of {:.0f} allowed), {:.1f} s of processors, {} threads\n{}\n", ask.preset,
             ask.devices, ask.machine, result.search_seconds, ask.limit_s, processors, core_count(),
             search_text(result));
  return result.search_seconds <= ask.limit_s;
}

}  // namespace

int main() {
  bool good = true;
  for (const Ask& ask :
       {Ask{"llama3.1-70b", "h100-sxm", 1024, 2048, 8192, 20}, Ask{"llama3.1-8b", "h100-sxm", 64, 512, 8192, 20}})
    good = within_limit(ask) && good;
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
