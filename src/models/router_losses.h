// Auxiliary losses of routers of experts, in addition to the model's loss: one balances experts, and one keeps logits
// small. A model passes its layers one by one, and closes once.
#pragma once

#include "models/model_def.h"
#include "nn/blocks.h"

namespace sextant {

class RouterLosses {
 public:
  // The spec must outlive it.
  RouterLosses(Builder& b, const ExpertsSpec& experts, const Use& use)
      : b_(b), experts_(experts), sequences_(use.batch), seq_(use.seq) {}

  // Within the block of the layer.
  void add_layer(const ExpertOutput& output, const ExpertMlp& spec, const ExpertLoad& load);

  // Behind the last block: fetches the slots that were dropped, where some may be, and "balance_loss" and
  // "router_z_loss", those that there are, each a mean over the tokens of the microbatch with its coefficient. Both
  // take their gradient from the feed "balance_scale".
  void close();

 private:
  ValueId layer_loss(const ExpertOutput& output, const ExpertMlp& spec, const ExpertLoad& load);
  ValueId added(ValueId so_far, ValueId more, std::string_view name);
  void fetch_total(ValueId total, std::string_view name, std::string path);

  Builder& b_;
  const ExpertsSpec& experts_;
  int64_t sequences_, seq_;
  ExpertLoad load_;  // of all layers so far
  int64_t layers_ = 0;
  ValueId balance_ = kNoValue, z_ = kNoValue, dropped_ = kNoValue;  // of all layers so far
};

}  // namespace sextant
