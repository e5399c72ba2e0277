#include <fmt/format.h>

#include <algorithm>

#include "cost/price.h"
#include "plan/run_plan.h"

namespace sextant {

namespace {

std::string line(const std::string& name, int64_t bytes) {
  return fmt::format("  {:<36} {:>19}  {:>10}\n", name, human_count(bytes), human(Bytes{bytes}));
}

std::string expert_dispatch_text(const ExpertRowsPlan& rows) {
  if (rows.dispatch == ExpertDispatch::gather)
    return fmt::format("gather: all {} tokens of a rank go to each rank of ep", human_count(rows.copies));
  return fmt::format("{}: {} copies of a rank's tokens go to each rank of ep, one for each token{}",
                     word_of(rows.dispatch), human_count(rows.copies),
                     rows.dispatch == ExpertDispatch::rows ? " and expert" : "");
}

std::string expert_rows_text(const ExpertRowsPlan& rows) {
  std::string out = fmt::format("experts     {}\n", expert_dispatch_text(rows));
  out += fmt::format("            {} rows for the tokens of a rank on each rank of ep", human_count(rows.capacity));
  if (rows.rounds == 1) return out + ", as many as any routing asks for\n";
  return out + fmt::format("; steps that ask for more, up to {}, are repeated in {}{} rounds\n", human_count(rows.most),
                           rows.rounds > 2 ? "2 to " : "", rows.rounds);
}

std::string format_text(const RunPlan& p) {
  return fmt::format("precision   {}; linears of blocks at {:.0f} TFLOP/s, {:.1f} times bf16\n", p.format->text(),
                     p.format_peak / 1e12, p.format_peak / p.bf16_peak);
}

std::string model_text(const RunPlan& p) {
  std::string out = fmt::format("model       {}, {} parameters\n", p.architecture, human_count(p.parameters));
  if (p.active.all < p.parameters)
    out += fmt::format("active      {} of them for a token, {} without the embedding\n", human_count(p.active.all),
                       human_count(p.active.without_embedding));
  out += fmt::format("mesh        {} ({} rank{})\n", p.mesh, p.ranks, p.ranks == 1 ? "" : "s");
  if (!p.machine.empty()) out += fmt::format("machine     {} ({}), software {}\n", p.machine, p.device, p.profile);
  if (p.format) out += format_text(p);
  out += fmt::format("step        {} tokens, {} microbatch{} per rank\n", human_count(p.tokens_per_step),
                     p.microbatches, p.microbatches == 1 ? "" : "es");
  if (p.expert_rows) out += expert_rows_text(*p.expert_rows);
  out += fmt::format(
      "per token   {:.4g} GFLOP of the model (attention causal; {:.4g} with its full square), {:.4g} executed\n\n",
      p.flops.model_causal / 1e9, p.flops.model_full / 1e9, p.flops.executed / 1e9);
  out += fmt::format("{:<39}{:>19}\n", "parameters", "");
  for (const ParameterCount& part : p.by_part)
    out += fmt::format("  {:<36} {:>19}{}\n", part.part, human_count(part.each),
                       part.times > 1 ? fmt::format("  × {}", part.times) : "");
  return out;
}

const RankClass& largest(const RunPlan& p) {
  return *std::max_element(p.classes.begin(), p.classes.end(),
                           [](const RankClass& a, const RankClass& b) { return a.memory.total() < b.memory.total(); });
}

std::string room_line(std::string_view name, double bytes, bool fits) {
  const auto room = static_cast<int64_t>(bytes);
  return fmt::format("  {:<36} {:>19}  {:>10}  {}\n", name, human_count(room), human(Bytes{room}),
                     fits ? "it fits" : "IT DOES NOT FIT");
}

std::string host_text(const HostParts& host, bool masters, bool has_file) {
  std::string out = line("and on the host, at the start too", host.total());
  if (host.weights > 0) out += line("of it weights of blocks", host.weights);
  if (host.optimizer > 0)
    out += line(masters ? "of it optimizer, master weights" : "of it optimizer state", host.optimizer);
  if (host.activations > 0) out += line("of it activations", host.activations);
  if (host.passing > 0)
    out += line(has_file ? "of it what a few steps update" : "of it gradients, weights to update", host.passing);
  return out;
}

// How far the memory is known.
std::string known_text(const RunPlan& p) {
  if (!p.device_bytes) return {};
  if (p.memory_basis == MemoryBasis::exact)
    return fmt::format("  {:<36} {:>19}  our own software: no interval\n", "known", "to the byte");
  if (p.memory_basis == MemoryBasis::wide)
    return fmt::format("  {:<36} {:>19}  values are held in bf16; nothing here runs {} yet\n", "known", "not",
                       p.format->name());
  if (p.memory_basis == MemoryBasis::programs)
    return fmt::format("  {:<36} {:>19}  that of our Programs, with room for the worst routing\n", "known", "not");
  if (!p.memory_interval) return {};
  const MemoryInterval& interval = *p.memory_interval;
  auto bytes = static_cast<double>(p.peak_bytes);
  return fmt::format(
      "  {:<36} {:>16} GB, by the errors of {} {}\n",
      fmt::format("{:.0f} % of measurements lie between", 100 * interval.share),
      fmt::format("{} and {}", two_digits(interval.low(bytes) / 1e9), two_digits(interval.high(bytes) / 1e9)),
      interval.rows, text_of(interval.of));
}

std::string_view fit_text(MemoryFit fit) {
  return fit == MemoryFit::fits ? "it fits" : fit == MemoryFit::may_fit ? "it may fit" : "IT DOES NOT FIT";
}

std::string memory_text(const RunPlan& p) {
  const RankClass& rank = largest(p);
  const MemoryParts& m = rank.memory;
  std::string out =
      fmt::format("\n{:<39}{:>19}\n",
                  p.classes.size() > 1 ? "memory of a rank of the largest stage" : "memory of one rank", "bytes");
  out += line(fmt::format("weights ({})", name_of(p.weights)), m.weights);
  const bool estimate = p.memory_basis == MemoryBasis::estimate;
  if (m.gradients > 0) out += line(estimate ? "gradients" : "gradients (f32)", m.gradients);
  std::string optimizer = fmt::format("optimizer ({}){}", p.optimizer, p.masters ? ", master weights" : "");
  if (m.optimizer > 0 || rank.host.optimizer + rank.nvme_bytes == 0) out += line(optimizer, m.optimizer);
  if (p.states_kept_wide > 0)
    out += fmt::format("  {:<36} {:>19}\n", "of it f32: the mesh cuts blocks of",
                       fmt::format("{} matrices", p.states_kept_wide));
  out += line(m.gradients > 0 ? "activations" : "activations, gradients among them", m.activations);
  if (m.communication > 0) out += line("gathered weights, messages", m.communication);
  out += line("scratch of kernels, gaps", m.scratch);
  out +=
      line(estimate ? "in all, estimated for this software" : "in all, allocated at the start", m.total() - m.overhead);
  if (m.overhead > 0) out += line("driver, libraries, communicators", m.overhead);
  out += known_text(p);
  out += fmt::format("  {:<36} {}, {}\n", "fullest in", name_of(rank.peak_in), rank.peak_at);
  if (rank.host.total() > 0) out += host_text(rank.host, p.masters, rank.nvme_bytes > 0);
  if (rank.nvme_bytes > 0)
    out += line(p.masters ? "on NVMe optimizer, master weights" : "on NVMe optimizer state", rank.nvme_bytes);
  if (p.evaluation_extra > 0) out += line("of it only for evaluation", p.evaluation_extra);
  if (p.repeat_extra > 0) out += line("of it only for repeated steps", p.repeat_extra);
  if (p.snapshot > 0) out += line("and on the host a copy, for saving", p.snapshot);
  if (p.local_copies > 0) out += line("and for local checkpoints, two copies", p.local_copies);
  if (p.local_copies_held > 0) out += line("and two for a rank of another host", p.local_copies_held);
  if (p.device_bytes)
    out += fmt::format("  {:<36} {:>19}  {:>10}  {}\n", "the device has",
                       human_count(static_cast<int64_t>(*p.device_bytes)),
                       human(Bytes{static_cast<int64_t>(*p.device_bytes)}), fit_text(p.device_fit()));
  if (p.host_room) out += room_line("and the host for each device", *p.host_room, p.fits_host());
  if (p.nvme_room) out += room_line("and its disks for each device", *p.nvme_room, p.fits_nvme());
  if (p.classes.size() > 1) out += "\nmemory by stage of the pipeline\n";
  for (const RankClass& c : p.classes)
    if (p.classes.size() > 1) out += line(fmt::format("stage {}", c.stage), c.memory.total());
  return out;
}

std::string traffic_text(const RunPlan& p) {
  if (p.sent.empty()) return {};
  std::string out = fmt::format("\n{:<39}{:>19}\n", "sent by such a rank in a step, along", "bytes");
  for (const auto& [axes, bytes] : p.sent) out += line(axes, bytes);
  return out;
}

std::string interval_text(const StepTime& s) {
  const PredictionInterval& interval = *s.interval;
  double low = 1e3 * interval.low(s.seconds), high = 1e3 * interval.high(s.seconds);
  return fmt::format("  {:<36} {:>16} ms, by the errors of {} published runs, {} of them on this device\n",
                     fmt::format("{:.0f} % of measurements lie between", 100 * interval.share),
                     fmt::format("{} and {}", two_digits(low), two_digits(high)), interval.rows, interval.of_device);
}

std::string time_text(const RunPlan& p) {
  if (!p.fits_host())
    return fmt::format("\nit does not fit: the host has {} less than is offloaded to it\n",
                       human(Bytes{p.host_bytes - static_cast<int64_t>(*p.host_room)}));
  if (!p.fits_nvme())
    return fmt::format("\nit does not fit: the disks have {} less than is offloaded to them\n",
                       human(Bytes{p.nvme_bytes - static_cast<int64_t>(*p.nvme_room)}));
  if (!p.fits() && p.memory_interval)
    return fmt::format(
        "\nit does not fit: {} or more are needed, and the device has {}; a step that cannot run has no time, no days "
        "and no cost\n",
        human(Bytes{static_cast<int64_t>(p.memory_interval->low(static_cast<double>(p.peak_bytes)))}),
        human(Bytes{static_cast<int64_t>(*p.device_bytes - p.kept_free)}));
  if (!p.fits())
    return fmt::format(
        "\nit does not fit: {} more than the device has; a step that cannot run has no time, no days and no cost\n",
        human(Bytes{p.peak_bytes - static_cast<int64_t>(*p.device_bytes)}));
  if (!p.step) return {};
  const StepTime& s = *p.step;
  auto part = [&](const std::string& name, double seconds) {
    return seconds < 5e-7
               ? std::string()
               : fmt::format("  {:<36} {:>16.1f} ms  {:>9.1f} %\n", name, 1e3 * seconds, 100 * seconds / s.seconds);
  };
  std::string out = fmt::format("\n{:<39}{:>16.1f} ms\n", "a step takes (simulated)", 1e3 * s.seconds);
  if (s.interval) out += interval_text(s);
  if (p.imbalance) out += fmt::format("  {:<36} {}\n", "tokens among ranks of experts", p.imbalance->about);
  out += part("compute", s.compute_s);
  for (const auto& [axes, seconds] : s.exposed_comm_s) out += part(not_hidden_text(axes), seconds);
  out += part("waiting for other stages (bubble)", s.bubble_s) + part("waiting for the host", s.host_s) +
         part("update", s.update_s);
  double named = s.compute_s + s.bubble_s + s.host_s + s.update_s;
  for (const auto& [axes, seconds] : s.exposed_comm_s) named += seconds;
  out += part("the slowest device, beyond the mean", s.seconds - named);
  out += fmt::format("  {:<36} {:>16.0f}\n", "tokens/s on each device", s.tokens_per_s_per_device);
  out += fmt::format("  {:<36} {:>16.1f} TFLOP/s of the model on each device\n", "", s.tflops_per_device);
  out += fmt::format("  {:<36} {:>16.1f} %   MFU, attention causal; {:.1f} % HFU\n", "", 100 * s.mfu, 100 * s.hfu);
  return out;
}

}  // namespace

std::string plan_text(const RunPlan& plan) {
  std::string out = model_text(plan) + memory_text(plan) + traffic_text(plan) + time_text(plan);
  if (plan.economics) out += "\n" + economics_text(*plan.economics);
  return out;
}

}  // namespace sextant
