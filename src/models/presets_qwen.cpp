// Qwen 1.5, 2 and 2.5 (biases of q, k and v) and the dense models of Qwen 3 (norms of their heads).
#include "models/presets.h"

namespace sextant {

namespace {

enum class Kind { qwen2, qwen3 };
enum class Head { own, tied };

struct Row {
  std::string_view name, about;
  Kind kind;
  int64_t layers, hidden, heads, kv_heads, ffn, vocab, max_seq;
  Head head = Head::own;
};

Preset preset(const Row& row) {
  constexpr int64_t kEndOfText = 151643;
  return {row.name,
          row.about,
          {.architecture = "llama",
           .layers = row.layers,
           .hidden = row.hidden,
           .heads = row.heads,
           .kv_heads = row.kv_heads,
           .head_dim = row.kind == Kind::qwen3 ? 128 : row.hidden / row.heads,
           .ffn = row.ffn,
           .vocab = row.vocab,
           .max_seq = row.max_seq,
           .norm_eps = 1e-6,
           .rope_theta = 1e6,
           .qkv_bias = row.kind == Kind::qwen2,
           .qk_norm = row.kind == Kind::qwen3,
           .tied_head = row.head == Head::tied,
           .bos_token = kEndOfText,
           .eos_tokens = {kEndOfText}}};
}

}  // namespace

std::vector<Preset> qwen_presets() {
  using enum Kind;
  // clang-format off
  return {
      //        name            about               kind layers hidden heads kv_heads ffn vocab  max_seq
      preset({"qwen1.5-72b",  "Alibaba Qwen1.5 72B",  qwen2, 80, 8192, 64, 64, 24576, 152064,  32768}),
      preset({"qwen2-0.5b",   "Alibaba Qwen2 0.5B",   qwen2, 24,  896, 14,  2,  4864, 151936, 131072, Head::tied}),
      preset({"qwen2-1.5b",   "Alibaba Qwen2 1.5B",   qwen2, 28, 1536, 12,  2,  8960, 151936, 131072, Head::tied}),
      preset({"qwen2-7b",     "Alibaba Qwen2 7B",     qwen2, 28, 3584, 28,  4, 18944, 152064, 131072}),
      preset({"qwen2-72b",    "Alibaba Qwen2 72B",    qwen2, 80, 8192, 64,  8, 29568, 152064, 131072}),
      preset({"qwen2.5-0.5b", "Alibaba Qwen2.5 0.5B", qwen2, 24,  896, 14,  2,  4864, 151936,  32768, Head::tied}),
      preset({"qwen2.5-1.5b", "Alibaba Qwen2.5 1.5B", qwen2, 28, 1536, 12,  2,  8960, 151936, 131072, Head::tied}),
      preset({"qwen2.5-3b",   "Alibaba Qwen2.5 3B",   qwen2, 36, 2048, 16,  2, 11008, 151936,  32768, Head::tied}),
      preset({"qwen2.5-7b",   "Alibaba Qwen2.5 7B",   qwen2, 28, 3584, 28,  4, 18944, 152064, 131072}),
      preset({"qwen2.5-14b",  "Alibaba Qwen2.5 14B",  qwen2, 48, 5120, 40,  8, 13824, 152064, 131072}),
      preset({"qwen2.5-32b",  "Alibaba Qwen2.5 32B",  qwen2, 64, 5120, 40,  8, 27648, 152064, 131072}),
      preset({"qwen2.5-72b",  "Alibaba Qwen2.5 72B",  qwen2, 80, 8192, 64,  8, 29568, 152064, 131072}),
      preset({"qwen3-0.6b",   "Alibaba Qwen3 0.6B",   qwen3, 28, 1024, 16,  8,  3072, 151936,  32768, Head::tied}),
      preset({"qwen3-1.7b",   "Alibaba Qwen3 1.7B",   qwen3, 28, 2048, 16,  8,  6144, 151936,  32768, Head::tied}),
      preset({"qwen3-4b",     "Alibaba Qwen3 4B",     qwen3, 36, 2560, 32,  8,  9728, 151936,  32768, Head::tied}),
      preset({"qwen3-8b",     "Alibaba Qwen3 8B",     qwen3, 36, 4096, 32,  8, 12288, 151936,  32768}),
      preset({"qwen3-14b",    "Alibaba Qwen3 14B",    qwen3, 40, 5120, 40,  8, 17408, 151936,  32768}),
      preset({"qwen3-32b",    "Alibaba Qwen3 32B",    qwen3, 64, 5120, 64,  8, 25600, 151936,  40960}),
  };
  // clang-format on
}

}  // namespace sextant
