#include "run/run_identity.h"

#include "base/hash.h"

namespace sextant {

namespace {

constexpr int64_t kWholeTokens = 16 << 20;
constexpr int64_t kEndTokens = 1 << 20;
constexpr int64_t kBlockTokens = 1 << 14;
constexpr int64_t kBlocks = 256;

void add_tokens(ContentHash& hash, const TokenFile& file, int64_t begin, int64_t end) {
  for_each_piece(file, begin, end, [&](int64_t, std::span<const int32_t> ids) { hash.add(std::as_bytes(ids)); });
}

void add_file(ContentHash& hash, const TokenFile& file) {
  int64_t tokens = file.token_count();
  hash.add(std::as_bytes(std::span(&tokens, 1)));
  if (tokens <= kWholeTokens) return add_tokens(hash, file, 0, tokens);
  add_tokens(hash, file, 0, kEndTokens);
  for (int64_t block = 1; block <= kBlocks; ++block) {
    int64_t begin = tokens / (kBlocks + 1) * block;
    add_tokens(hash, file, begin, begin + kBlockTokens);
  }
  add_tokens(hash, file, tokens - kEndTokens, tokens);
}

}  // namespace

std::string identity_of(const Tokenizer& tokenizer) {
  ContentHash hash;
  for (const TokenizerFile& file : tokenizer.to_files()) hash.add(std::as_bytes(std::span(file.content)));
  return hex(hash.value());
}

std::string identity_of(const std::vector<std::shared_ptr<const TokenFile>>& files) {
  ContentHash hash;
  for (const auto& file : files) add_file(hash, *file);
  return hex(hash.value());
}

}  // namespace sextant
