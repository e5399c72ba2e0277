// Generator: a model directory ready to write. Two Programs share one arena: prefill takes the prompt in blocks, decode
// goes on token by token; both keep keys and values in the same caches.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "exec/executor.h"
#include "generate/sampling.h"
#include "models/spec.h"
#include "text/tokenizer.h"

namespace sextant {

struct GenerateOptions {
  SamplingOptions sampling;
  int64_t max_tokens = 256;
  uint64_t seed = 1;
  uint64_t stream = 0;                // several texts from one seed
  std::vector<uint32_t> stop_tokens;  // beside the model's own end tokens
};

enum class StopReason : uint8_t { stop_token, max_tokens, context_full };

class Generator {
 public:
  // A Hugging Face directory (or a run's checkpoint). UserError when something is missing. `context` bounds the
  // positions kept; 0 = all the model can see.
  Generator(const std::filesystem::path& directory, Executor& executor, int64_t context);

  const Tokenizer& tokenizer() const { return tokenizer_; }
  const ModelSpec& spec() const { return spec_; }

  // Hands every new token to `take` as it is made. An empty prompt starts from the end-of-text token, as training did.
  // RunError where logits are not finite.
  StopReason generate(std::string_view prompt, const GenerateOptions& options,
                      const std::function<void(uint32_t)>& take);

 private:
  std::span<const float> advance(Bound& bound, std::span<const int32_t> tokens, int64_t start);
  bool ends(uint32_t token, const GenerateOptions& options) const;
  std::vector<int32_t> prompt_ids(std::string_view prompt) const;

  ModelSpec spec_;
  Tokenizer tokenizer_;
  int64_t context_;
  Program prefill_program_;
  Program decode_program_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Bound> prefill_;
  std::unique_ptr<Bound> decode_;
  std::vector<float> logits_;
};

}  // namespace sextant
