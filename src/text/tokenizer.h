// A tokenizer in the form of Hugging Face's tokenizer.json (BPE, Unigram) or of sentencepiece's tokenizer.model: text
// to ids and back. Enters: any bytes; broken UTF-8 is read as bytes.decode('utf-8', errors='replace') would, and then
// the ids are those HF `tokenizers` gives, or the sentencepiece library. Never changes once made: all functions may be
// called from many threads at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/threads.h"
#include "text/tokenizer_parts.h"

namespace sextant {

enum class Specials { keep, skip };

struct TokenizerFile {
  std::string name;  // "tokenizer.json"
  std::string content;

  bool operator==(const TokenizerFile&) const = default;
};

class Tokenizer {
 public:
  explicit Tokenizer(TokenizerParts parts);
  // UserError where the text is not a tokenizer.json we can follow; `place` names it.
  static Tokenizer from_json(std::string_view text, std::string_view place);
  static Tokenizer from_sentencepiece(std::string_view bytes, std::string_view place);
  // A tokenizer.json, a tokenizer.model, or a vocab.json with merges.txt beside it (tokenizer_files.h).
  static Tokenizer load(const std::filesystem::path& path);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  std::string to_json() const;                  // not of a tokenizer.model
  std::vector<TokenizerFile> to_files() const;  // what `load` of the first reads again

  // Without what the post-processor adds (HF's add_special_tokens=False); special tokens in the text become their ids.
  std::vector<uint32_t> encode(std::string_view text) const;
  void encode_into(std::string_view text, std::vector<uint32_t>& ids) const;  // appends
  // With the begin and end tokens that the file's post-processor puts around a sequence.
  std::vector<uint32_t> encode_with_special(std::string_view text) const;
  // Ids that the post-processor puts before and after one sequence; often empty.
  std::span<const uint32_t> prefix_ids() const;
  std::span<const uint32_t> suffix_ids() const;
  // `encode` of each document; the team's threads share the documents.
  std::vector<std::vector<uint32_t>> encode_batch(std::span<const std::string_view> documents, ThreadTeam& team) const;

  // The bytes that the tokens stand for; they need not be valid UTF-8. Ids without a token stand for nothing. A space
  // that the tokenizer put before the text stays: only so do texts join.
  std::string decode(std::span<const uint32_t> ids, Specials specials = Specials::keep) const;
  std::string_view token_bytes(uint32_t id) const;

  uint32_t vocab_size() const;  // the highest id plus one
  // Added tokens by their content, others by their name in the vocabulary ("Ġthe", "▁the").
  std::optional<uint32_t> token_id(std::string_view content) const;
  bool is_special(uint32_t id) const;
  const std::vector<AddedToken>& added_tokens() const;

  // The token that ends a document, and the one that begins it (often the same). tokenizer.json does not say which they
  // are: `load` asks the files beside it (stated_eos.h) for the end, then the post-processor is asked, then the names
  // in use are tried.
  std::optional<uint32_t> eos_id() const;
  void set_eos(uint32_t id);  // before other threads use it
  std::optional<uint32_t> bos_id() const;

 private:
  struct State;
  class BorrowedEncoder;
  std::unique_ptr<State> state_;
};

// Decodes ids that arrive one by one: text is given out when it is whole UTF-8.
class StreamDecoder {
 public:
  // The tokenizer must outlive this.
  explicit StreamDecoder(const Tokenizer& tokenizer, Specials specials = Specials::keep)
      : tokenizer_(tokenizer), specials_(specials) {}

  std::string push(uint32_t id);  // what has become whole; bytes that never will are U+FFFD
  std::string finish();           // what is left, a cut-off character as U+FFFD

 private:
  const Tokenizer& tokenizer_;
  Specials specials_;
  std::string pending_;
};

}  // namespace sextant
