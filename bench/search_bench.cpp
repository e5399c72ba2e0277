// How long a search takes: Llama 3 70B on 1,024 H100s, 2,048 sequences of 8,192 tokens, and two smaller asks. Prints what
// `sextant plan --search` would, and the time; fails when the large one takes more than 20 s.
#include <fmt/format.h>

#include <cstdlib>

#include "cost/machine_file.h"
#include "models/presets.h"
#include "plan/search.h"

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
  Stack stack = own_stack();
  SearchResult result = search_layouts({.run = run, .spec = spec, .machine = machine, .stack = stack, .devices = ask.devices});
  fmt::print("{} on {} × {}: {:.1f} s of {:.0f}\n{}\n", ask.preset, ask.devices, ask.machine, result.search_seconds, ask.limit_s,
             search_text(result));
  return result.search_seconds <= ask.limit_s;
}

}  // namespace

int main() {
  bool good = true;
  for (const Ask& ask : {Ask{"llama3.1-8b", "h100-sxm", 64, 512, 8192, 20}, Ask{"llama3.1-70b", "h100-sxm", 1024, 2048, 8192, 20}, Ask{"llama3.1-8b", "h100-sxm", 64, 64, 65536, 20}})
    good = within_limit(ask) && good;
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
