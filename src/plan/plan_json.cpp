#include <nlohmann/json.hpp>

#include "plan/run_plan.h"

namespace sextant {

namespace {

using Json = nlohmann::ordered_json;

Json memory_json(const RankClass& c) {
  const MemoryParts& m = c.memory;
  Json rank = {{"stage", c.stage},
               {"weights", m.weights},
               {"gradients", m.gradients},
               {"optimizer", m.optimizer},
               {"activations", m.activations},
               {"scratch", m.scratch},
               {"communication", m.communication},
               {"overhead", m.overhead},
               {"total", m.total()},
               {"arena_bytes", c.arena_bytes},
               {"peak_at", c.peak_at},
               {"peak_in", name_of(c.peak_in)}};
  if (c.host.total() > 0)
    rank["host"] = {{"weights", c.host.weights},
                    {"optimizer", c.host.optimizer},
                    {"activations", c.host.activations},
                    {"passing", c.host.passing},
                    {"arena_bytes", c.host.total()}};
  if (c.nvme_bytes > 0) rank["nvme"] = {{"arena_bytes", c.nvme_bytes}};
  return rank;
}

Json interval_json(const PredictionInterval& interval, double seconds) {
  return {{"share", interval.share},
          {"low_s", interval.low(seconds)},
          {"high_s", interval.high(seconds)},
          {"learned_from", interval.rows},
          {"on_this_device", interval.of_device},
          {"with_this_software", interval.of_software}};
}

Json memory_interval_json(const MemoryInterval& interval, int64_t peak_bytes) {
  auto bytes = static_cast<double>(peak_bytes);
  return {{"share", interval.share},
          {"low_bytes", interval.low(bytes)},
          {"high_bytes", interval.high(bytes)},
          {"learned_from", interval.rows},
          {"learned_by", text_of(interval.of)}};
}

Json step_json(const StepTime& s) {
  Json exposed = Json::object();
  for (const auto& [axes, seconds] : s.exposed_comm_s) exposed[axes] = seconds;
  Json out = {{"seconds", s.seconds},
              {"compute_s", s.compute_s},
              {"bubble_s", s.bubble_s},
              {"update_s", s.update_s},
              {"host_s", s.host_s},
              {"exposed_comm_s", exposed},
              {"mfu", s.mfu},
              {"hfu", s.hfu},
              {"tflops_per_device", s.tflops_per_device},
              {"tokens_per_s_per_device", s.tokens_per_s_per_device}};
  if (s.interval) out["interval"] = interval_json(*s.interval, s.seconds);
  return out;
}

}  // namespace

std::string plan_json(const RunPlan& p) {
  Json out = {{"architecture", p.architecture},
              {"mesh", p.mesh},
              {"ranks", p.ranks},
              {"microbatches", p.microbatches},
              {"tokens_per_step", p.tokens_per_step}};
  Json parts = Json::object();
  for (const ParameterCount& part : p.by_part) parts[part.part] = {{"each", part.each}, {"times", part.times}};
  out["params"] = {{"total", p.parameters},
                   {"active", p.active.all},
                   {"active_without_embedding", p.active.without_embedding},
                   {"parts", parts}};
  out["flops"] = {{"per_token_model", p.flops.model_causal},
                  {"per_token_model_full_attention", p.flops.model_full},
                  {"per_token_executed", p.flops.executed},
                  {"per_step_model", p.flops.model_causal * static_cast<double>(p.tokens_per_step)},
                  {"per_step_executed", p.flops.executed * static_cast<double>(p.tokens_per_step)}};
  if (p.expert_rows)
    out["expert_rows"] = {{"dispatch", word_of(p.expert_rows->dispatch)},
                          {"capacity", p.expert_rows->capacity},
                          {"most", p.expert_rows->most},
                          {"copies", p.expert_rows->copies},
                          {"rounds_when_repeated", p.expert_rows->rounds}};
  Json ranks = Json::array();
  for (const RankClass& c : p.classes) ranks.push_back(memory_json(c));
  out["memory"] = {{"ranks", ranks},
                   {"peak_bytes", p.peak_bytes},
                   {"snapshot_bytes", p.snapshot},
                   {"local_checkpoint_bytes", p.local_copies + p.local_copies_held},
                   {"evaluation_bytes", p.evaluation_extra},
                   {"repeat_bytes", p.repeat_extra}};
  if (p.host_bytes > 0) out["memory"]["host_bytes"] = p.host_bytes;
  if (p.host_room) out["memory"]["host_room_bytes"] = *p.host_room;
  if (p.nvme_bytes > 0) out["memory"]["nvme_bytes"] = p.nvme_bytes;
  if (p.nvme_room) out["memory"]["nvme_room_bytes"] = *p.nvme_room;
  if (p.device_bytes) {
    out["memory"]["device_bytes"] = *p.device_bytes, out["memory"]["fits"] = p.fits();
    out["memory"]["fit"] = name_of(p.device_fit());
    out["memory"]["known"] = name_of(p.memory_basis);
  }
  if (p.memory_interval) out["memory"]["interval"] = memory_interval_json(*p.memory_interval, p.peak_bytes);
  Json sent = Json::object();
  for (const auto& [axes, bytes] : p.sent) sent[axes] = bytes;
  out["sent_bytes_per_rank_and_step"] = sent;
  if (!p.machine.empty()) {
    out["machine"] = p.machine, out["device"] = p.device, out["profile"] = p.profile;
    if (p.format)
      out["format"] = {{"name", p.format->name()},
                       {"bytes_per_element", p.format->bytes_per_element()},
                       {"peak_tflops", p.format_peak / 1e12}};
    // null: it does not fit, and would not run.
    out["step"] = p.step ? step_json(*p.step) : Json();
    if (p.imbalance) out["expert_imbalance"] = p.imbalance->ratio;
    out["run"] = p.economics ? Json::parse(economics_json(*p.economics)) : Json();
  }
  return out.dump(1) + "\n";
}

}  // namespace sextant
