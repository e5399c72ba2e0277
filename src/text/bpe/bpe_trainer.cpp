#include "text/bpe/bpe_trainer.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "base/error.h"
#include "text/bpe/bpe_alphabet.h"
#include "text/bpe/bpe_pairs.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {

namespace {

// The tokens so far: names and ids.
class Vocabulary {
 public:
  // The id of `name`, a new one if it is new.
  uint32_t id_of(const std::string& name) {
    auto [found, is_new] = ids_.try_emplace(name, static_cast<uint32_t>(names_.size()));
    if (is_new) names_.push_back(name);
    return found->second;
  }
  const std::string& name(uint32_t id) const { return names_[id]; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, uint32_t> ids_;
};

// The words of the text, as symbols that merge, and how often each pair of neighbours occurs. Counts are kept up to
// date merge by merge: only words that hold the pair are visited.
class PairCounter {
 public:
  void add_word(std::span<const uint32_t> symbols, uint64_t count) {
    words_.push_back({symbols_.size(), symbols.size(), static_cast<int64_t>(count)});
    symbols_.insert(symbols_.end(), symbols.begin(), symbols.end());
    auto word = static_cast<uint32_t>(words_.size() - 1);
    for (size_t i = 0; i + 1 < symbols.size(); ++i) change({symbols[i], symbols[i + 1]}, +1, word);
  }

  // The commonest pair and its count, taken off the queue; count 0 when there is none left.
  struct Candidate {
    int64_t count = 0;
    TokenPair pair{};
    uint32_t list = 0;  // of the words that hold it, in lists_
  };
  Candidate pop() {
    close_round();
    while (!queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end(), rarer);
      Candidate& top = queue_.back();
      int64_t now = pairs_.find(top.pair)->count;
      if (top.count == now) {
        Candidate popped = top;
        queue_.pop_back();
        return popped;
      }
      // Its count has sunk since it was queued; it goes back to where it belongs now.
      top.count = now;
      std::push_heap(queue_.begin(), queue_.end(), rarer);
    }
    return {};
  }

  // Replaces the pair by `merged` wherever it stands.
  void merge(const Candidate& candidate, uint32_t merged) {
    std::vector<uint32_t> holders = std::move(lists_[candidate.list]);
    for (uint32_t word : holders) merge_in(word, candidate.pair, merged);
  }

 private:
  struct Word {
    size_t begin, size;  // in symbols_
    int64_t count;
  };
  struct PairInfo {
    int64_t count = 0;
    uint32_t list = 0;
    uint32_t round = 0;  // the one in which `list` was begun
  };

  static bool rarer(const Candidate& a, const Candidate& b) {
    return a.count != b.count ? a.count < b.count : a.pair > b.pair;
  }

  void change(TokenPair pair, int64_t sign, uint32_t word) {
    PairInfo& info = pairs_[pair];
    info.count += sign * words_[word].count;
    if (sign < 0) return;
    if (info.round != round_) {
      info.round = round_;
      info.list = static_cast<uint32_t>(lists_.size());
      lists_.emplace_back();
      gained_.push_back(pair);
    }
    std::vector<uint32_t>& list = lists_[info.list];
    if (list.empty() || list.back() != word) list.push_back(word);
  }

  // Queues the pairs that have occurred anew since the last call.
  void close_round() {
    for (TokenPair pair : gained_) {
      const PairInfo& info = *pairs_.find(pair);
      if (info.count <= 0) continue;
      queue_.push_back({info.count, pair, info.list});
      std::push_heap(queue_.begin(), queue_.end(), rarer);
    }
    gained_.clear();
    ++round_;
  }

  void merge_in(uint32_t word_index, TokenPair pair, uint32_t merged) {
    Word& word = words_[word_index];
    uint32_t* symbols = &symbols_[word.begin];
    size_t kept = 0;
    for (size_t i = 0; i < word.size; ++i) {
      if (symbols[i] != pair.left || i + 1 == word.size || symbols[i + 1] != pair.right) {
        symbols[kept++] = symbols[i];
        continue;
      }
      if (kept > 0) {
        change({symbols[kept - 1], pair.left}, -1, word_index);
        change({symbols[kept - 1], merged}, +1, word_index);
      }
      ++i;
      if (i + 1 < word.size) {
        change({pair.right, symbols[i + 1]}, -1, word_index);
        change({merged, symbols[i + 1]}, +1, word_index);
      }
      symbols[kept++] = merged;
    }
    word.size = kept;
  }

  std::vector<uint32_t> symbols_;
  std::vector<Word> words_;
  PairMap<PairInfo> pairs_;
  std::vector<std::vector<uint32_t>> lists_;
  std::vector<TokenPair> gained_;
  uint32_t round_ = 1;
  std::vector<Candidate> queue_;  // a heap
};

void set_pattern(const BpeTrainingPlan& plan, TokenizerParts& parts) {
  std::shared_ptr<const Splitter> splitter = make_splitter({.text = plan.pattern}, "pattern");
  parts.stages = {{.splitter = std::move(splitter)}};
  auto byte_level = [](bool use_regex) {
    return fmt::format(R"({{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": {}}})",
                       use_regex);
  };
  parts.extras.decoder = byte_level(true);
  parts.extras.pre_tokenizer =
      plan.pattern == kGpt2Pattern
          ? byte_level(true)
          : fmt::format(R"({{"type": "Sequence", "pretokenizers": [{{"type": "Split", "pattern": {{"Regex": {}}}, )"
                        R"("behavior": "Isolated", "invert": false}}, {}]}})",
                        json_quoted(plan.pattern), byte_level(false));
}

}  // namespace

BpeTrainer::BpeTrainer(BpeTrainingPlan plan)
    : plan_(std::move(plan)), splitter_(make_splitter({.text = plan_.pattern}, "pattern")) {
  uint64_t least = 256 + plan_.special_tokens.size();
  if (plan_.vocab_size < least)
    throw UserError({.place = "vocab_size",
                     .got = fmt::format("{}", plan_.vocab_size),
                     .expected = fmt::format("at least {}: 256 bytes and the special tokens", least)});
  std::unordered_set<std::string_view> seen;
  for (const std::string& token : plan_.special_tokens)
    if (token.empty() || !is_valid_utf8(token) || !seen.insert(token).second)
      throw UserError({.place = "special_tokens",
                       .got = fmt::format("\"{}\"", token),
                       .expected = "strings that are not empty, valid UTF-8, and given once"});
}

void BpeTrainer::feed(std::string_view document) {
  std::string mended;
  if (!is_valid_utf8(document)) {
    append_mended_utf8(document, mended);
    document = mended;
  }
  std::array<std::string_view, 256> pieces;
  SplitCursor cursor;
  while (size_t count = splitter_->cut(document, cursor, pieces)) {
    for (std::string_view piece : std::span(pieces).first(count)) {
      auto known = pieces_.find(piece);
      if (known != pieces_.end())
        ++known->second;
      else
        pieces_.emplace(piece, 1);
    }
  }
}

Tokenizer BpeTrainer::train() const {
  Vocabulary vocabulary;
  for (const std::string& token : plan_.special_tokens) vocabulary.id_of(token);
  std::array<uint32_t, 256> byte_ids;
  for (char byte : bytes_in_alphabet_order())
    byte_ids[static_cast<uint8_t>(byte)] = vocabulary.id_of(name_of_bytes({&byte, 1}));

  PairCounter counter;
  std::vector<uint32_t> symbols;
  for (const auto& [piece, count] : pieces_) {
    symbols.clear();
    for (char byte : piece) symbols.push_back(byte_ids[static_cast<uint8_t>(byte)]);
    counter.add_word(symbols, count);
  }

  TokenizerParts parts;
  while (vocabulary.names().size() < plan_.vocab_size) {
    PairCounter::Candidate best = counter.pop();
    if (best.count < 1 || static_cast<uint64_t>(best.count) < plan_.min_count) break;
    uint32_t merged = vocabulary.id_of(vocabulary.name(best.pair.left) + vocabulary.name(best.pair.right));
    parts.merges.push_back({best.pair, merged});
    counter.merge(best, merged);
  }

  for (uint32_t id = 0; id < vocabulary.names().size(); ++id) parts.vocab.push_back({vocabulary.name(id), id});
  for (uint32_t id = 0; id < plan_.special_tokens.size(); ++id)
    parts.added.push_back({.id = id, .content = plan_.special_tokens[id], .special = true});
  set_pattern(plan_, parts);
  return Tokenizer(std::move(parts));
}

Tokenizer train_bpe(std::span<const std::string_view> documents, BpeTrainingPlan plan) {
  BpeTrainer trainer(std::move(plan));
  for (std::string_view document : documents) trainer.feed(document);
  return trainer.train();
}

}  // namespace sextant
