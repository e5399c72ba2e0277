#include "propose/text_measure.h"

#include <functional>
#include <string_view>
#include <vector>

#include "data/text_source.h"
#include "stories/stories.h"
#include "text/bpe/bpe_trainer.h"
#include "text/tokenizer_files.h"

namespace sextant {

namespace {

std::vector<std::string> first_documents(const TextMeasureRequest& request) {
  std::vector<std::string> documents;
  int64_t left = request.most_bytes;
  if (request.path == "stories") {
    for_each_story({.bytes = static_cast<uint64_t>(left)},
                   [&](std::string_view text) { documents.emplace_back(text); });
    return documents;
  }
  const std::vector<std::filesystem::path> paths{request.path};
  DocumentReader reader(paths);
  while (left > 0) {
    std::optional<std::string_view> text = reader.next();
    if (!text) break;
    documents.emplace_back(text->substr(0, static_cast<size_t>(left)));  // one document may be the whole text
    left -= static_cast<int64_t>(documents.back().size());
  }
  return documents;
}

Tokenizer tokenizer_for(const TextMeasureRequest& request, const std::vector<std::string>& documents) {
  if (request.tokenizer) return Tokenizer::load(*request.tokenizer);
  BpeTrainer trainer({.vocab_size = static_cast<uint32_t>(request.vocab), .special_tokens = {"<|endoftext|>"}});
  for (const std::string& document : documents) trainer.feed(document);
  return trainer.train();
}

}  // namespace

double bytes_per_token(const TextMeasureRequest& request) {
  const std::vector<std::string> documents = first_documents(request);
  const Tokenizer tokenizer = tokenizer_for(request, documents);
  double bytes = 0, tokens = 0;
  for (const std::string& document : documents) {
    bytes += static_cast<double>(document.size());
    tokens += static_cast<double>(tokenizer.encode(document).size() + 1);
  }
  return tokens > 0 ? bytes / tokens : 1;
}

}  // namespace sextant
