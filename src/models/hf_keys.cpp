#include "models/hf_keys.h"

namespace sextant {

namespace {

constexpr HfAlias kAliases[] = {
    {"gpt2", "hidden_size", "n_embd"},         {"gpt2", "max_position_embeddings", "n_positions"},
    {"gpt2", "num_attention_heads", "n_head"}, {"gpt2", "num_hidden_layers", "n_layer"},
    {"bloom", "n_embed", "hidden_size"},       {"bloom", "num_attention_heads", "n_head"},
    {"bloom", "num_hidden_layers", "n_layer"}, {"mpt", "hidden_size", "d_model"},
    {"mpt", "num_attention_heads", "n_heads"}, {"mpt", "num_hidden_layers", "n_layers"},
};

constexpr HfDropout kDropouts[] = {
    {"gpt2", "", "attn_pdrop", 0.1},
    {"gpt2", "", "embd_pdrop", 0.1},
    {"gpt2", "", "resid_pdrop", 0.1},
    {"gpt_neox", "", "attention_dropout"},
    {"gpt_neox", "", "hidden_dropout"},
    {"opt", "", "activation_dropout"},  // of older versions
    {"opt", "", "attention_dropout"},
    {"opt", "", "dropout", 0.1},
    {"opt", "", "layerdrop"},
    {"bloom", "", "attention_dropout"},
    {"bloom", "", "hidden_dropout"},
    {"mpt", "attn_config", "attn_pdrop"},
    {"mpt", "", "emb_pdrop"},
    {"mpt", "", "resid_pdrop"},
    {"llama", "", "attention_dropout"},
    {"mistral", "", "attention_dropout"},
    {"qwen2", "", "attention_dropout"},
    {"qwen3", "", "attention_dropout"},
    {"nemotron", "", "attention_dropout"},
    {"palm", "", "attention_dropout"},
};

constexpr HfPadding kPaddings[] = {
    {"opt", 1}, {"llama", {}}, {"mistral", {}}, {"qwen2", {}}, {"qwen3", {}}, {"nemotron", {}},
};

}  // namespace

std::span<const HfAlias> hf_aliases() {
  return kAliases;
}

std::span<const HfDropout> hf_dropouts() {
  return kDropouts;
}

const HfPadding* find_hf_padding(std::string_view model_type) {
  for (const HfPadding& padding : kPaddings)
    if (padding.model_type == model_type) return &padding;
  return nullptr;
}

}  // namespace sextant
