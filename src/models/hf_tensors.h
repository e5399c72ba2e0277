// HfTensors: the list of an architecture's tensors in a Hugging Face directory, written a layer at a time.
#pragma once

#include <fmt/format.h>
#include <cstdint>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/model_def.h"

namespace sextant {

class HfTensors {
 public:
  // Sets the prefixes of the names that follow, in the file and in our model.
  void begin(std::string hf, std::string own) { hf_ = std::move(hf), own_ = std::move(own); }
  void begin_layer(std::string_view hf, int64_t layer) {
    begin(fmt::format("{}.{}.", hf, layer), fmt::format("layers.{}.", layer));
  }

  void add(std::string_view hf, std::string_view own, int64_t rows) { add(hf, own, 0, rows); }
  void add(std::string_view hf, std::string_view own, int64_t first_row, int64_t rows) {
    list_.push_back({fmt::format("{}{}", hf_, hf), fmt::format("{}{}", own_, own), first_row, rows});
  }
  void add_with_bias(std::string_view hf, std::string_view own, int64_t rows) {
    for (std::string_view part : {".weight", ".bias"})
      add(fmt::format("{}{}", hf, part), fmt::format("{}{}", own, part), rows);
  }
  // HF.weight of a norm of which the file holds the weights less 1.
  void add_less_one(std::string_view hf, std::string_view own, int64_t rows) {
    add(fmt::format("{}.weight", hf), fmt::format("{}.weight", own), rows);
    list_.back().file_less = 1;
  }
  // q_proj, k_proj and v_proj below HF, one parameter at attn.qkv. `part` is "weight" or "bias".
  void add_qkv(std::string_view hf, const ModelSpec& m, std::string_view part = "weight") {
    int64_t q = m.heads * m.head_dim, kv = m.kv_heads * m.head_dim;
    std::string own = fmt::format("attn.qkv.{}", part);
    add(fmt::format("{}.q_proj.{}", hf, part), own, 0, q);
    add(fmt::format("{}.k_proj.{}", hf, part), own, q, kv);
    add(fmt::format("{}.v_proj.{}", hf, part), own, q + kv, kv);
  }
  // q_proj, k_proj, v_proj and o_proj below HF, with the biases that the spec asks for.
  void add_attention(std::string_view hf, const ModelSpec& m) {
    add_qkv(hf, m);
    if (m.qkv_bias) add_qkv(hf, m, "bias");
    add_linear(fmt::format("{}.o_proj", hf), "attn.out", m.hidden, m.out_bias);
  }
  // gate_proj and up_proj, one parameter at mlp.gate_up, and down_proj, below "mlp.".
  void add_gated_mlp(const ModelSpec& m) {
    for (std::string_view part : {"weight", "bias"}) {
      if (part == "bias" && !m.mlp_bias) break;
      std::string own = fmt::format("mlp.gate_up.{}", part);
      add(fmt::format("mlp.gate_proj.{}", part), own, 0, m.ffn);
      add(fmt::format("mlp.up_proj.{}", part), own, m.ffn, m.ffn);
    }
    add_linear("mlp.down_proj", "mlp.down", m.hidden, m.mlp_bias);
  }
  // The matrices of experts, one after the other in the parameters mlp.experts.gate_up and mlp.experts.down. `names`
  // are those of an expert's three in the file, below HF.N.
  // Where all experts are one tensor, it is HF.gate_up_proj or HF.down_proj below `stacked`.
  struct ExpertNames {
    std::string_view gate = "gate_proj", up = "up_proj", down = "down_proj";
    std::string_view stacked = "mlp.experts";
  };
  void add_experts(std::string_view hf, const ModelSpec& m, const ExpertNames& names) {
    int64_t width = m.experts->ffn, count = m.experts->count;
    for (int64_t e = 0; e < count; ++e) {
      auto name = [&](std::string_view part) { return fmt::format("{}.{}.{}.weight", hf, e, part); };
      auto stack = [&](std::string_view part, int64_t row, int64_t rows) {
        list_.back().stacked = StackedRows{fmt::format("{}{}.{}", hf_, names.stacked, part), e, count, row, rows};
      };
      add(name(names.gate), "mlp.experts.gate_up.weight", 2 * e * width, width);
      stack("gate_up_proj", 0, 2 * width);
      add(name(names.up), "mlp.experts.gate_up.weight", (2 * e + 1) * width, width);
      stack("gate_up_proj", width, 2 * width);
      add(name(names.down), "mlp.experts.down.weight", e * m.hidden, m.hidden);
      stack("down_proj", 0, m.hidden);
    }
  }
  // The last one has this name where experts are stacked.
  void stacked_as(std::string_view hf) { list_.back().stacked = StackedRows{fmt::format("{}{}", hf_, hf)}; }
  void add_linear(std::string_view hf, std::string_view own, int64_t rows, bool bias) {
    if (bias) return add_with_bias(hf, own, rows);
    add(fmt::format("{}.weight", hf), fmt::format("{}.weight", own), rows);
  }
  // A matrix or bias whose rows in the file are q, k and v of the first head, then of the second, …
  void add_head_by_head(const std::string& hf, const std::string& own, const ModelSpec& m) {
    for (int64_t head = 0; head < m.heads; ++head)
      for (int64_t part = 0; part < 3; ++part) {
        add(hf, own, (part * m.heads + head) * m.head_dim, m.head_dim);
        list_.back().file_row = (head * 3 + part) * m.head_dim;
        list_.back().file_rows = 3 * m.heads * m.head_dim;
      }
  }
  HfTensor& last() { return list_.back(); }

  std::vector<HfTensor> take() { return std::move(list_); }

 private:
  std::string hf_, own_;
  std::vector<HfTensor> list_;
};

}  // namespace sextant
