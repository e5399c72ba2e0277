#include "data/tokenize.h"

#include <string>
#include <vector>

#include "base/error.h"

namespace sextant {

namespace {

constexpr size_t kBatchBytes = size_t{8} << 20;

class Batch {
 public:
  Batch(const Tokenizer& tokenizer, TokenWriter& writer, ThreadTeam& team)
      : tokenizer_(tokenizer), writer_(writer), team_(team) {}

  void add(std::string_view document) {
    texts_.emplace_back(document);
    bytes_ += document.size();
    if (bytes_ >= kBatchBytes) flush();
  }

  void flush() {
    std::vector<std::string_view> views(texts_.begin(), texts_.end());
    for (const std::vector<uint32_t>& ids : tokenizer_.encode_batch(views, team_)) {
      std::span<const uint32_t> prefix = tokenizer_.prefix_ids(), suffix = tokenizer_.suffix_ids();
      ids_.assign(prefix.begin(), prefix.end());
      ids_.insert(ids_.end(), ids.begin(), ids.end());
      ids_.insert(ids_.end(), suffix.begin(), suffix.end());
      writer_.append_document(ids_);
    }
    texts_.clear();
    bytes_ = 0;
  }

 private:
  const Tokenizer& tokenizer_;
  TokenWriter& writer_;
  ThreadTeam& team_;
  std::vector<std::string> texts_;
  std::vector<int32_t> ids_;
  size_t bytes_ = 0;
};

}  // namespace

void require_end_of_text(const Tokenizer& tokenizer, std::string_view place, std::string_view option) {
  if (tokenizer.eos_id()) return;
  throw UserError({.place = std::string(place),
                   .got = "the end-of-document token is unknown",
                   .expected = "eos_token in a tokenizer_config.json beside it",
                   .hint = fmt::format("{} names its id", option)});
}

TokenizeSummary tokenize_documents(const Documents& documents, const Tokenizer& tokenizer, const TokenOutput& output,
                                   ThreadTeam& team) {
  TokenWriterOptions options{.kind = output.format.kind, .type = output.format.type};
  // A suffix ends with the token that eos_id() names.
  if (auto eos = tokenizer.eos_id(); eos && tokenizer.suffix_ids().empty())
    options.end_of_text = static_cast<int32_t>(*eos);
  TokenWriter writer(output.path, options);
  Batch batch(tokenizer, writer, team);
  TokenizeSummary summary;
  documents([&](std::string_view document) {
    batch.add(document);
    summary.text_bytes += static_cast<int64_t>(document.size());
  });
  batch.flush();
  writer.finish();
  summary.documents = writer.document_count();
  summary.tokens = writer.token_count();
  return summary;
}

}  // namespace sextant
