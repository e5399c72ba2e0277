#include "view/pages/plan_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "laws/quantity.h"
#include "laws/run_amounts.h"
#include "view/page.h"
#include "view/pages/assumptions.h"
#include "view/pages/plan_figures.h"
#include "view/pages/plan_pictures.h"

namespace sextant {

namespace {

std::string bytes(int64_t n) {
  return human(Bytes{n});
}

void step_section(Page& page, const PlanReportParts& parts) {
  if (!parts.plan.fits()) {
    page.paragraph(
        "A step that cannot run has no time, and the run no days and no cost: the plan needs more memory than the "
        "device has.");
    return;
  }
  if (!parts.plan.step) return;
  const StepTime& s = *parts.plan.step;
  page.section("Where the time of a step goes");
  if (parts.trace && !parts.trace->empty())
    page.picture(step_timeline_svg(parts.plan, *parts.trace),
                 "Point at a block for what it is. The percentages at the right are the time in which a stage "
                 "computes. The wait for the slowest of all devices comes on top.");
  page.table(step_table(parts.plan));
  page.paragraph(fmt::format(
      "{:.1f} TFLOP/s of the model on each device: {} MFU (attention causal), {} HFU (with what is computed again).",
      s.tflops_per_device, percent_text(s.mfu), percent_text(s.hfu)));
}

void memory_section(Page& page, const PlanReportParts& parts) {
  const RunPlan& p = parts.plan;
  page.section("Memory");
  MemoryPicture picture = memory_picture(p, parts.lowered);
  std::vector<std::string> panels = memory_panels(picture);
  std::string which = panels.size() < picture.panels.size() ? fmt::format("; {} of {} stages, the largest among them",
                                                                          panels.size(), picture.panels.size())
                                                            : "";
  page.pictures(
      panels,
      fmt::format("What lies in the memory of a rank, op by op in the order in which they run; a microbatch holds its "
                  "activations until its backward. Gaps between buffers are not drawn{}.",
                  which));
  PageTable table{.heads = {{p.classes.size() > 1 ? "a rank of stage" : "a rank"},
                            {fmt::format("weights ({})", name_of(p.weights))},
                            {"gradients"},
                            {"optimizer"},
                            {"activations"},
                            {"messages"},
                            {"scratch, gaps"},
                            {"driver, libraries"},
                            {"in all"},
                            {"fullest at", true}},
                  .rows = {}};
  for (const RankClass& c : p.classes) {
    const MemoryParts& m = c.memory;
    table.rows.push_back({fmt::format("{}", c.stage), bytes(m.weights), bytes(m.gradients), bytes(m.optimizer),
                          bytes(m.activations), bytes(m.communication), bytes(m.scratch), bytes(m.overhead),
                          bytes(m.total()), fmt::format("{}, {}", name_of(c.peak_in), c.peak_at)});
  }
  page.table(table);
  std::string note =
      "1 GiB is 1,073,741,824 bytes. All but the driver's and the libraries' part is allocated at the start.";
  if (p.masters)
    note += fmt::format(" The optimizer holds two moments and {} f32 master weights.",
                        p.weights == DType::f16 ? "the" : "the low 16 bits of the");
  if (p.evaluation_extra > 0) note += fmt::format(" {} of it are only for evaluation.", bytes(p.evaluation_extra));
  if (p.snapshot > 0)
    note += fmt::format(" On the host, {} more hold a copy while a checkpoint is written.", bytes(p.snapshot));
  page.paragraph(note);
}

void mesh_section(Page& page, const PlanReportParts& parts) {
  const RunPlan& p = parts.plan;
  page.section("Mesh and traffic");
  page.pictures(mesh_panels(mesh_picture(p, parts.lowered, parts.machine)),
                p.ranks == 1 ? ""
                             : "Per axis, a group of ranks that talk to each other; colours are places along the axis, "
                               "and pale ranks belong to other groups.");
  if (p.sent.empty()) return;
  PageTable table{.heads = {{"sent by a rank of the largest stage, along"}, {"bytes in a step"}, {""}}, .rows = {}};
  for (const auto& [axes, sent] : p.sent) table.rows.push_back({axes, human_count(sent), bytes(sent)});
  page.table(table);
}

void parameters_section(Page& page, const RunPlan& p) {
  page.section("Parameters and operations");
  PageTable table{.heads = {{"part"}, {"each"}, {"times"}, {"in all"}}, .rows = {}, .total_rows = 1};
  for (const ParameterCount& part : p.by_part)
    table.rows.push_back(
        {part.part, human_count(part.each), human_count(part.times), human_count(part.each * part.times)});
  table.rows.push_back({"all", "", "", human_count(p.parameters)});
  page.table(table);
  page.paragraph(fmt::format(
      "Per token {:.4g} GFLOP of the model with causal attention ({:.4g} with its full square), {:.4g} executed.",
      p.flops.model_causal / 1e9, p.flops.model_full / 1e9, p.flops.executed / 1e9));
}

void run_section(Page& page, const RunPlan& p) {
  if (!p.economics) return;
  const Economics& e = *p.economics;
  page.section("The whole run");
  PageTable table{.heads = {{""}, {"", true}}, .rows = {}};
  auto add = [&](const std::string& name, std::string value) { table.rows.push_back({name, std::move(value)}); };
  add("tokens", human_quantity(e.run.token_budget));
  add("steps", human_count(e.steps));
  add("devices", fmt::format("{} in {}", human_count(e.run.devices), counted(e.nodes, "node")));
  add("steps alone", human_days(e.days));
  add("with failures and checkpoints", e.days_with_failures ? human_days(*e.days_with_failures) : "it does not end");
  if (e.device_hours && *e.device_hours >= 1) add("device-hours", human_quantity(*e.device_hours));
  if (e.cost) add("cost", fmt::format("{} at ${:g} a device-hour", human_cost(*e.cost), e.run.price_per_device_hour));
  if (e.energy_mwh) add("energy", human_energy(*e.energy_mwh));
  if (e.failures)
    add("failures expected",
        fmt::format("{}, one every {}", *e.failures < 0.01 ? "fewer than 0.01" : fmt::format("{:.3g}", *e.failures),
                    human_duration(e.mtbf_hours * 3600)));
  if (!e.saves_between()) {
    add("checkpoint", "at the end only: none is due before it");
    page.table(table);
    return;
  }
  add("checkpoint", fmt::format("every {}, {}", counted(e.checkpoint_steps, "step"),
                                human_duration(static_cast<double>(e.checkpoint_steps) * e.run.step_seconds)));
  add("time lost", fmt::format("{:.2f} % saving, {:.2f} % done again, {:.2f} % restarting", 100 * e.lost.checkpoints,
                               100 * e.lost.rework, 100 * e.lost.restarts));
  add("goodput", fmt::format("{:.2f} %", 100 * e.goodput));
  page.table(table);
}

std::string title_of(const PlanReportParts& parts) {
  const RunPlan& p = parts.plan;
  std::string name = parts.origin.model.empty() ? p.architecture : parts.origin.model;
  if (!p.device.empty()) return fmt::format("{} on {} × {}", name, human_count(p.ranks), p.device);
  return fmt::format("{} on {}", name, counted(p.ranks, "rank"));
}

}  // namespace

std::string plan_html(const PlanReportParts& parts) {
  const RunPlan& p = parts.plan;
  Page page(title_of(parts));
  page.lead(fmt::format("{}, {} parameters; mesh {}; {} tokens a step in {} microbatch{} per rank.", p.architecture,
                        human_count(p.parameters), p.mesh, human_count(p.tokens_per_step), human_count(p.microbatches),
                        p.microbatches == 1 ? "" : "es"));
  if (parts.explorer) {
    page.section("What if: other devices, batches, contexts and layouts");
    page.insert(parts.explorer->before);
    page.figures(plan_figures(p), kChosenFigures);
    page.insert(parts.explorer->behind);
    page.section("The config's own plan in full");
    page.paragraph("From here on everything is of the config as it is, whatever is chosen above.");
  } else {
    page.figures(plan_figures(p));
  }
  step_section(page, parts);
  memory_section(page, parts);
  mesh_section(page, parts);
  parameters_section(page, p);
  run_section(page, p);
  if (parts.machine) assumptions_section(page, p, *parts.machine, parts.profile);
  page.made_by(parts.origin);
  return std::move(page).finish();
}

}  // namespace sextant
