#include "text/tokenizer.h"

#include <algorithm>
#include <array>
#include <exception>
#include <mutex>
#include <unordered_map>

#include "base/error.h"
#include "base/files.h"
#include "base/units.h"
#include "text/bpe/bpe_alphabet.h"
#include "text/stated_eos.h"
#include "text/tokenizer_encoder.h"
#include "text/tokenizer_files.h"
#include "text/unicode/unicode_utf8.h"
#include "text/unigram/unigram_model.h"

namespace sextant {

namespace {

std::unique_ptr<PieceModel> make_model(const TokenizerParts& parts) {
  if (parts.unigram) {
    UnigramModelParts model{.unknown = parts.unigram->unknown, .byte_fallback = parts.byte_fallback};
    for (size_t i = 0; i < parts.vocab.size(); ++i)
      model.pieces.push_back(
          {parts.vocab[i].name, parts.vocab[i].id, parts.unigram->scores[i], parts.vocab[i].in_text});
    const std::vector<double>& scores = parts.unigram->scores;
    model.lowest_score = parts.unigram->lowest.value_or(*std::min_element(scores.begin(), scores.end()));
    model.sums = parts.unigram->sums;
    return std::make_unique<UnigramModel>(model);
  }
  BpeModelParts model{.merges = parts.merges, .unknown = parts.unknown, .whole_pieces_first = parts.ignore_merges};
  model.unit = parts.unit;
  model.ranks = parts.merge_ranks;
  if (parts.byte_fallback && parts.unit == BpeUnit::character) model.fallback = BpeSymbols::Fallback::bytes;
  for (const VocabEntry& entry : parts.vocab) {
    bool is_byte = parts.byte_fallback && byte_of_fallback_name(entry.name);
    if (!entry.in_text && !is_byte) continue;
    if (parts.unit == BpeUnit::character)
      model.tokens.emplace_back(entry.name, entry.id);
    else if (auto bytes = bytes_of_name(entry.name))
      model.tokens.emplace_back(std::move(*bytes), entry.id);
  }
  return std::make_unique<BpeModel>(model);
}

// The bytes of text that a token of the vocabulary represents.
std::string bytes_of(const VocabEntry& entry, const TokenizerParts& parts) {
  if (parts.unit == BpeUnit::byte || parts.byte_names) return bytes_of_name(entry.name).value_or(entry.name);
  if (auto byte = byte_of_fallback_name(entry.name); byte && parts.byte_fallback)
    return std::string(1, static_cast<char>(*byte));
  if (!parts.spaces_as_metaspace) return entry.name;
  static const NormalizerPtr kSpaces = literal_normalizer("\u2581", " ");
  return normalized(entry.name, kSpaces.get());
}

uint32_t ids_of(const TokenizerParts& parts) {
  uint32_t size = 0;
  for (const VocabEntry& entry : parts.vocab) size = std::max(size, entry.id + 1);
  for (const AddedToken& token : parts.added) size = std::max(size, token.id + 1);
  return size;
}

}  // namespace

struct Tokenizer::State {
  explicit State(TokenizerParts given)
      : parts(std::move(given)),
        model(make_model(parts)),
        finder(parts.added, parts.sentencepiece.empty() ? parts.normalizer.get() : nullptr),
        bytes(ids_of(parts)),
        special(bytes.size()) {
    for (const VocabEntry& entry : parts.vocab) {
      bytes[entry.id] = bytes_of(entry, parts);
      ids[entry.name] = entry.id;
    }
    for (const AddedToken& token : parts.added) {
      // A user-defined token of sentencepiece is a piece like others.
      bool is_piece =
          !parts.sentencepiece.empty() || (parts.byte_fallback && byte_of_fallback_name(token.content).has_value());
      bytes[token.id] = is_piece ? bytes_of({token.content, token.id}, parts) : token.content;
      ids[token.content] = token.id;
      special[token.id] = token.special;
    }
    for (uint32_t id : parts.specials) special[id] = true;
    eos = parts.stated_eos;
  }

  TokenizerParts parts;
  std::unique_ptr<PieceModel> model;
  AddedTokenFinder finder;
  std::vector<std::string> bytes;  // by id
  std::vector<bool> special;       // by id
  std::unordered_map<std::string, uint32_t> ids;
  std::optional<uint32_t> eos;  // as told from outside

  std::mutex mutex;
  std::vector<std::unique_ptr<Encoder>> idle;  // their caches outlive a call
};

// An encoder for the time of a call: one that lies idle, or a new one.
class Tokenizer::BorrowedEncoder {
 public:
  explicit BorrowedEncoder(State& state) : state_(state) {
    {
      std::lock_guard lock(state.mutex);
      if (!state.idle.empty()) {
        encoder_ = std::move(state.idle.back());
        state.idle.pop_back();
      }
    }
    if (!encoder_) encoder_ = std::make_unique<Encoder>(state.parts.stages, *state.model);
  }
  ~BorrowedEncoder() {
    std::lock_guard lock(state_.mutex);
    state_.idle.push_back(std::move(encoder_));
  }
  BorrowedEncoder(const BorrowedEncoder&) = delete;
  BorrowedEncoder& operator=(const BorrowedEncoder&) = delete;

  void encode_into(std::string_view text, std::vector<uint32_t>& ids) {
    std::string mended;
    if (!is_valid_utf8(text)) {
      append_mended_utf8(text, mended);
      text = mended;
    }
    for (const TextPart& part : state_.finder.split_raw(text)) {
      if (part.id) {
        ids.push_back(*part.id);
        continue;
      }
      TextPlace place = part.text.data() == text.data() ? TextPlace::start : TextPlace::later;
      if (!state_.parts.normalizer) {
        encode_normal(part.text, place, ids);
        continue;
      }
      NormalText normal{std::string(part.text), place == TextPlace::start};
      state_.parts.normalizer->apply(normal);
      encode_normal(normal.text, normal.from_start ? TextPlace::start : TextPlace::later, ids);
    }
  }

 private:
  void encode_normal(std::string_view text, TextPlace place, std::vector<uint32_t>& ids) {
    for (const TextPart& part : state_.finder.split_normalized(text)) {
      if (part.id)
        ids.push_back(*part.id);
      else
        encoder_->encode(part.text, part.text.data() == text.data() ? place : TextPlace::later, ids);
    }
  }

  State& state_;
  std::unique_ptr<Encoder> encoder_;
};

Tokenizer::Tokenizer(TokenizerParts parts) : state_(std::make_unique<State>(std::move(parts))) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

Tokenizer Tokenizer::from_json(std::string_view text, std::string_view place) {
  return Tokenizer(parse_tokenizer(text, place));
}

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  Tokenizer tokenizer(read_tokenizer_file(path));
  take_stated_eos(stated_eos(path), tokenizer);
  return tokenizer;
}

Tokenizer Tokenizer::from_sentencepiece(std::string_view bytes, std::string_view place) {
  return Tokenizer(parse_sentencepiece(bytes, place));
}

std::string Tokenizer::to_json() const {
  return write_tokenizer(state_->parts);
}

std::vector<TokenizerFile> Tokenizer::to_files() const {
  const TokenizerParts& parts = state_->parts;
  if (parts.sentencepiece.empty()) return {{kTokenizerFile, to_json()}};
  std::string config =
      fmt::format(R"({{"add_bos_token": {}, "add_eos_token": {}}})", !parts.prefix.empty(), !parts.suffix.empty());
  return {{kSentencePieceFile, parts.sentencepiece}, {kTokenizerConfigFile, config + "\n"}};
}

std::vector<uint32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<uint32_t> ids;
  encode_into(text, ids);
  return ids;
}

void Tokenizer::encode_into(std::string_view text, std::vector<uint32_t>& ids) const {
  BorrowedEncoder(*state_).encode_into(text, ids);
}

std::vector<uint32_t> Tokenizer::encode_with_special(std::string_view text) const {
  std::vector<uint32_t> ids = state_->parts.prefix;
  encode_into(text, ids);
  ids.insert(ids.end(), state_->parts.suffix.begin(), state_->parts.suffix.end());
  return ids;
}

std::span<const uint32_t> Tokenizer::prefix_ids() const {
  return state_->parts.prefix;
}
std::span<const uint32_t> Tokenizer::suffix_ids() const {
  return state_->parts.suffix;
}

std::vector<std::vector<uint32_t>> Tokenizer::encode_batch(std::span<const std::string_view> documents,
                                                           ThreadTeam& team) const {
  // A task is a few documents together, so that an encoder is seldom borrowed and big documents still spread.
  constexpr int64_t kPerTask = 8;
  auto count = static_cast<int64_t>(documents.size());
  int64_t tasks = ceil_div(count, kPerTask);
  std::vector<std::vector<uint32_t>> ids(documents.size());
  std::vector<std::exception_ptr> failures(static_cast<size_t>(tasks));
  team.parallel_for(tasks, [&](int64_t task, int) {
    try {
      BorrowedEncoder encoder(*state_);
      for (int64_t i = task * kPerTask; i < std::min(count, (task + 1) * kPerTask); ++i)
        encoder.encode_into(documents[static_cast<size_t>(i)], ids[static_cast<size_t>(i)]);
    } catch (...) {
      failures[static_cast<size_t>(task)] = std::current_exception();
    }
  });
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  return ids;
}

std::string Tokenizer::decode(std::span<const uint32_t> ids, Specials specials) const {
  std::string text;
  for (uint32_t id : ids)
    if (specials == Specials::keep || !is_special(id)) text += token_bytes(id);
  return text;
}

std::string_view Tokenizer::token_bytes(uint32_t id) const {
  return id < state_->bytes.size() ? std::string_view(state_->bytes[id]) : std::string_view();
}

uint32_t Tokenizer::vocab_size() const {
  return static_cast<uint32_t>(state_->bytes.size());
}

std::optional<uint32_t> Tokenizer::token_id(std::string_view content) const {
  auto found = state_->ids.find(std::string(content));
  return found == state_->ids.end() ? std::nullopt : std::optional(found->second);
}

bool Tokenizer::is_special(uint32_t id) const {
  return id < state_->special.size() && state_->special[id];
}

const std::vector<AddedToken>& Tokenizer::added_tokens() const {
  return state_->parts.added;
}

namespace {

std::optional<uint32_t> first_special_of(const Tokenizer& tokenizer, std::span<const std::string_view> names) {
  for (std::string_view name : names)
    if (auto id = tokenizer.token_id(name); id && tokenizer.is_special(*id)) return id;
  return std::nullopt;
}

}  // namespace

void Tokenizer::set_eos(uint32_t id) {
  state_->eos = id;
}

std::optional<uint32_t> Tokenizer::eos_id() const {
  if (state_->eos) return state_->eos;
  if (!state_->parts.suffix.empty()) return state_->parts.suffix.back();
  static constexpr std::array<std::string_view, 6> kNames{"<|endoftext|>", "<|end_of_text|>", "</s>",
                                                          "<eos>",         "<|eos|>",         "<｜end▁of▁sentence｜>"};
  return first_special_of(*this, kNames);
}

std::optional<uint32_t> Tokenizer::bos_id() const {
  if (!state_->parts.prefix.empty()) return state_->parts.prefix.front();
  if (state_->parts.stated_bos) return state_->parts.stated_bos;
  static constexpr std::array<std::string_view, 6> kNames{"<|begin_of_text|>",       "<s>",          "<bos>", "<|bos|>",
                                                          "<｜begin▁of▁sentence｜>", "<|endoftext|>"};
  return first_special_of(*this, kNames);
}

std::string StreamDecoder::push(uint32_t id) {
  if (specials_ == Specials::keep || !tokenizer_.is_special(id)) pending_ += tokenizer_.token_bytes(id);
  // All but a last character that later bytes may complete.
  size_t whole = 0;
  while (whole < pending_.size()) {
    Utf8Step step = step_utf8(std::string_view(pending_).substr(whole));
    if (step.state == Utf8State::cut_short) break;
    whole += step.size;
  }
  std::string text;
  append_mended_utf8(std::string_view(pending_).substr(0, whole), text);
  pending_.erase(0, whole);
  return text;
}

std::string StreamDecoder::finish() {
  std::string text;
  append_mended_utf8(pending_, text);
  pending_.clear();
  return text;
}

}  // namespace sextant
