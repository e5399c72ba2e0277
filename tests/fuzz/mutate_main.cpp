// A fuzzer for any compiler: runs a target on every seed file and on mutations of them, the same ones every time.
// Whatever the target lets escape fails the test; built with the sanitizers, so does every bad access. libFuzzer takes
// this file's place with -DSEXTANT_FUZZ=ON.
//   fuzz_NAME ROUNDS SEED_FILE…
// SEXTANT_FUZZ_SECONDS: goes on after ROUNDS until that many seconds have passed since the start.
// SEXTANT_FUZZ_SEED [1]: another sequence of mutations.
// An input that aborts the target is printed.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/rng.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using sextant::Random;

// One to four changes: a flipped bit, an interesting byte, a removed or doubled stretch, a cut, a digit run made huge.
std::string mutate(std::string text, const Random& random) {
  uint64_t draw = 0;
  auto below = [&](size_t n) { return n == 0 ? 0 : static_cast<size_t>(random.below(draw++, n)); };
  for (size_t change = 1 + below(4); change > 0; --change) {
    size_t at = below(text.size() + 1), length = 1 + below(16);
    switch (below(6)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1:
        if (at < text.size()) text[at] = "\0\xff\x7f\x80{}[]\",:0-"[below(13)];
        break;
      case 2:
        text.erase(std::min(at, text.size()), length);
        break;
      case 3:
        text.insert(at, text.substr(below(text.size() + 1), length));
        break;
      case 4:
        text.resize(at);
        break;
      case 5:
        text.insert(at, "99999999999999999999");
        break;
    }
  }
  return text;
}

// The current input of the target: a signal handler has no other way to get it.
const std::string* current_input = nullptr;

extern "C" void print_input(int) {
  constexpr char kTitle[] = "the input that follows aborted the target:\n";
  if (current_input && (write(STDERR_FILENO, kTitle, sizeof kTitle - 1) < 0 ||
                        write(STDERR_FILENO, current_input->data(), current_input->size()) < 0))
    return;  // nobody reads: the abort itself still says that something is wrong
}

void run(const std::string& input) {
  current_input = &input;
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

double from_environment(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atof(text) : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  std::signal(SIGABRT, print_input);
  auto rounds = static_cast<uint64_t>(std::atoll(argv[1]));
  std::vector<std::string> seeds{""};
  for (int i = 2; i < argc; ++i) seeds.push_back(sextant::read_file(argv[i]));
  const auto start = std::chrono::steady_clock::now();
  const std::chrono::duration<double> wanted(from_environment("SEXTANT_FUZZ_SECONDS", 0));
  const auto seed_number = static_cast<uint64_t>(from_environment("SEXTANT_FUZZ_SEED", 1));
  for (const std::string& seed : seeds) run(seed);
  uint64_t round = 0;
  for (; round < rounds || std::chrono::steady_clock::now() - start < wanted; ++round)
    run(mutate(seeds[round % seeds.size()], Random(seed_number, "fuzz", round)));
  std::printf("%llu inputs\n", static_cast<unsigned long long>(round) + seeds.size());
  return 0;
}
