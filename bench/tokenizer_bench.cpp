// Tokenizer speed: bench_tokenizer TOKENIZER_FILE TEXT_FILE [threads] prints MB/s (10^6 bytes of text) on one thread
// and on `threads` (default: all cores): of the first pass, which meets empty caches, and of the best of five. By the
// clock, and by processor time, which does not count what other programs take of a busy machine. Documents are cut at
// the first line end after every 16 KiB; bench/tokenizer_peer.py cuts alike.
//
// bench_tokenizer --encoded TOKENIZER_FILE DOCUMENTS_FILE writes to standard output what tests/peers/tokenizer_peer.py
// compares: the ids that go before and after a text; then per document its ids, these decoded with special tokens, and
// without. Each is a count and so many ids or bytes; counts and ids are u32 in memory order. The file holds each
// document as a u32 length and its bytes.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/error.h"
#include "base/files.h"
#include "text/tokenizer.h"

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

double wall_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double cpu_now() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

Pass encode_all(const Tokenizer& tokenizer, const std::vector<std::string_view>& documents, ThreadTeam& team) {
  double wall = wall_now(), cpu = cpu_now();
  std::vector<std::vector<uint32_t>> ids = tokenizer.encode_batch(documents, team);
  Pass pass{.wall_s = wall_now() - wall, .cpu_s = cpu_now() - cpu};
  for (const auto& document : ids) pass.tokens += document.size();
  return pass;
}

void measure(const char* path, std::string_view text, int threads) {
  constexpr int kPasses = 5;
  Tokenizer tokenizer = Tokenizer::load(path);  // fresh, so that the first pass meets empty caches
  ThreadTeam team(threads);
  std::vector<std::string_view> documents = cut_documents(text);
  double megabytes = static_cast<double>(text.size()) / 1e6;
  Pass first = encode_all(tokenizer, documents, team), best = first;
  for (int i = 1; i < kPasses; ++i) {
    Pass pass = encode_all(tokenizer, documents, team);
    best.wall_s = std::min(best.wall_s, pass.wall_s);
    best.cpu_s = std::min(best.cpu_s, pass.cpu_s);
  }
  fmt::print(
      "threads {} documents {} tokens {} MB/s first {:.1f} best {:.1f}  per CPU second first {:.1f} best {:.1f}\n",
      threads, documents.size(), best.tokens, megabytes / first.wall_s, megabytes / best.wall_s,
      megabytes / first.cpu_s, megabytes / best.cpu_s);
}

// The u32 at the front of `text`, which it leaves.
uint32_t take_u32(std::string_view& text) {
  uint32_t value = 0;
  std::memcpy(&value, text.data(), std::min(sizeof value, text.size()));
  text.remove_prefix(std::min(sizeof value, text.size()));
  return value;
}

template <class Items>
void put(const Items& items) {
  auto count = static_cast<uint32_t>(items.size());
  std::fwrite(&count, sizeof count, 1, stdout);
  std::fwrite(items.data(), sizeof items[0], items.size(), stdout);
}

void print_encoded(const Tokenizer& tokenizer, std::string_view documents) {
  put(tokenizer.prefix_ids());
  put(tokenizer.suffix_ids());
  while (!documents.empty()) {
    uint32_t size = take_u32(documents);
    std::vector<uint32_t> ids = tokenizer.encode(documents.substr(0, size));
    documents.remove_prefix(std::min<size_t>(size, documents.size()));
    put(ids);
    put(tokenizer.decode(ids, Specials::keep));
    put(tokenizer.decode(ids, Specials::skip));
  }
}

void run(std::span<char*> arguments) {
  if (arguments.size() == 3 && std::string_view(arguments[0]) == "--encoded")
    return print_encoded(Tokenizer::load(arguments[1]), MappedFile(arguments[2]).text());
  if (arguments.size() < 2)
    throw UserError({.place = "arguments",
                     .got = fmt::format("{}", arguments.size()),
                     .expected = "TOKENIZER_FILE TEXT_FILE [threads], or --encoded TOKENIZER_FILE DOCUMENTS_FILE"});
  MappedFile text(arguments[1]);
  int threads = arguments.size() > 2 ? std::atoi(arguments[2]) : core_count();
  measure(arguments[0], text.text(), 1);
  if (threads != 1) measure(arguments[0], text.text(), threads);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run({argv + 1, static_cast<size_t>(argc - 1)});
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
