#include "models/router_losses.h"

#include <utility>

#include "ops/lost_rows.h"

namespace sextant {

void RouterLosses::add_layer(const ExpertOutput& output, const ExpertMlp& spec, const ExpertLoad& load) {
  ++layers_;
  if (output.dropped != kNoValue) dropped_ = added(dropped_, output.dropped, "dropped_so_far");
  if (experts_.z_loss > 0) {
    Attrs attrs{{"tokens", sequences_ * seq_}, {"coefficient", experts_.z_loss}};
    z_ = added(z_, b_.op(ops::router_z_loss, "z_loss", {output.logits}, attrs), "z_loss_so_far");
  }
  if (experts_.balance_loss == 0) return;
  if (experts_.balance_scope != BalanceScope::all_layers) {
    balance_ = added(balance_, layer_loss(output, spec, load), "balance_so_far");
    return;
  }
  load_ = {added(load_.scores, load.scores, "load_scores"),
           load_.counts == kNoValue ? load.counts : b_.op(ops::add, "load_counts", {load_.counts, load.counts})};
}

ValueId RouterLosses::layer_loss(const ExpertOutput& output, const ExpertMlp& spec, const ExpertLoad& load) {
  Attrs attrs{{"experts", spec.experts}, {"coefficient", experts_.balance_loss / static_cast<double>(spec.per_token)}};
  if (experts_.balance_scope == BalanceScope::layer) {
    attrs.set("tokens", sequences_ * seq_);
    return b_.op(ops::balance_loss, "balance", {b_.summed(load.scores), b_.summed(load.counts)}, attrs);
  }
  ExpertLoad each = sequence_load(b_, output, spec);
  attrs.set("tokens", seq_);
  attrs.set("sequences", sequences_);
  return b_.op(ops::balance_loss, "balance",
               {b_.summed_over_sequence(each.scores), b_.summed_over_sequence(each.counts)}, attrs);
}

ValueId RouterLosses::added(ValueId so_far, ValueId more, std::string_view name) {
  if (so_far == kNoValue) return more;
  // A gradient that all layers shared would be needed on all stages of a pipeline; this way each sends the next its
  // own.
  if (b_.ranks(AxisRole::pipeline) > 1)
    so_far = b_.op(ops::scale, std::string(name) + "_sent", {so_far}, {{"factor", 1.0}});
  return b_.op(ops::add, name, {so_far, more});
}

void RouterLosses::fetch_total(ValueId total, std::string_view name, std::string path) {
  // An op of its own behind the last block: the stage with the model's loss hands out the others too.
  b_.fetch(b_.op(ops::scale, name, {b_.summed(total)}, {{"factor", 1.0}}), std::move(path));
}

void RouterLosses::close() {
  if (dropped_ != kNoValue) fetch_total(dropped_, "dropped", std::string(kDroppedRowsPath));
  if (load_.scores == kNoValue && balance_ == kNoValue && z_ == kNoValue) return;
  b_.feed_for_all("balance_scale", wide_of(b_.dtype()));
  if (load_.scores != kNoValue) {
    Attrs attrs{
        {"experts", experts_.count}, {"tokens", sequences_ * seq_ * layers_}, {"coefficient", experts_.balance_loss}};
    b_.fetch(b_.op(ops::balance_loss, "balance", {b_.summed(load_.scores), b_.summed(load_.counts)}, attrs),
             "balance_loss");
  }
  if (balance_ != kNoValue) fetch_total(balance_, "balance", "balance_loss");
  if (z_ != kNoValue) fetch_total(z_, "z_loss", "router_z_loss");
}

}  // namespace sextant
