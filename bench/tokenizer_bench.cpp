// Tokenizer speed: bench_tokenizer TOKENIZER_JSON TEXT_FILE [threads] prints MB/s (10^6 bytes of text) on one thread and
// on `threads` (default: all cores): of the first pass, which meets empty caches, and of the best of five. By the clock,
// and by processor time, which does not count what other programs take of a busy machine.
// Documents are cut at the first line end after every 16 KiB; bench/tokenizer_peer.py cuts alike.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "base/error.h"
#include "base/files.h"
#include "data/tokenizer.h"

namespace {

using namespace sextant;

constexpr size_t kDocument = 16 << 10;

std::vector<std::string_view> cut_documents(std::string_view text) {
  std::vector<std::string_view> documents;
  while (!text.empty()) {
    size_t end = text.find('\n', std::min(kDocument, text.size()));
    end = end == std::string_view::npos ? text.size() : end + 1;
    documents.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return documents;
}

struct Pass {
  double wall_s = 0;
  double cpu_s = 0;  // of all threads together
  size_t tokens = 0;
};

double wall_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
double cpu_now() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

Pass encode_all(const Tokenizer& tokenizer, const std::vector<std::string_view>& documents, ThreadTeam& team) {
  double wall = wall_now(), cpu = cpu_now();
  std::vector<std::vector<uint32_t>> ids = tokenizer.encode_batch(documents, team);
  Pass pass{.wall_s = wall_now() - wall, .cpu_s = cpu_now() - cpu};
  for (const auto& document : ids) pass.tokens += document.size();
  return pass;
}

void measure(const std::string& json, std::string_view text, int threads) {
  constexpr int kPasses = 5;
  Tokenizer tokenizer = Tokenizer::from_json(json, "tokenizer");  // fresh, so that the first pass meets empty caches
  ThreadTeam team(threads);
  std::vector<std::string_view> documents = cut_documents(text);
  double megabytes = static_cast<double>(text.size()) / 1e6;
  Pass first = encode_all(tokenizer, documents, team), best = first;
  for (int i = 1; i < kPasses; ++i) {
    Pass pass = encode_all(tokenizer, documents, team);
    best.wall_s = std::min(best.wall_s, pass.wall_s);
    best.cpu_s = std::min(best.cpu_s, pass.cpu_s);
  }
  fmt::print("threads {} documents {} tokens {} MB/s first {:.1f} best {:.1f}  per CPU second first {:.1f} best {:.1f}\n",
             threads, documents.size(), best.tokens, megabytes / first.wall_s, megabytes / best.wall_s,
             megabytes / first.cpu_s, megabytes / best.cpu_s);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: {} TOKENIZER_JSON TEXT_FILE [threads]\n", argv[0]);
    return 2;
  }
  try {
    std::string json = read_file(argv[1]);
    MappedFile text(argv[2]);
    int threads = argc > 3 ? std::atoi(argv[3]) : core_count();
    measure(json, text.text(), 1);
    if (threads != 1) measure(json, text.text(), threads);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
