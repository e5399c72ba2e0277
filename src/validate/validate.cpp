#include "validate/validate.h"

#include <exception>
#include <mutex>

#include "base/error.h"
#include "base/threads.h"
#include "cost/machine_file.h"
#include "cost/network.h"
#include "cost/planned_target.h"
#include "cost/software_profile_file.h"

namespace sextant {

namespace {

// Rows are independent; each is taken by whoever is free.
template <class Each>
void for_each_number(size_t count, Each each) {
  ThreadTeam team(0);
  std::mutex mutex;
  std::exception_ptr first;  // a task of the team must not throw
  team.parallel_for(static_cast<int64_t>(count), [&](int64_t i, int) {
    try {
      each(static_cast<size_t>(i));
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
  });
  if (first) std::rethrow_exception(first);
}

template <class Each>
void for_each_row(std::vector<ValidationRow>& rows, Each each) {
  for_each_number(rows.size(), [&](size_t i) { each(rows[i]); });
}

// The machine with the node size of the row and the network that its profile documents.
Machine machine_of_row(Machine machine, const PublishedRun& row, const SoftwareProfile& profile) {
  if (row.gpus_per_node && *row.gpus_per_node > 0 && machine.levels.size() > 1 &&
      machine.levels.front().devices == machine.devices_per_node) {
    machine.levels.front().devices = *row.gpus_per_node;
    machine.devices_per_node = *row.gpus_per_node;
  }
  if (row.has_experts()) machine = with_experts(std::move(machine));
  return with_network_of(profile, std::move(machine));
}

std::optional<double> measured(const ValidationRow& row) {
  const PublishedRun& published = row.published;
  if (auto seconds = published.measured_seconds()) return seconds;
  if (!published.has_experts() || !published.tflops_per_gpu || *published.tflops_per_gpu <= 0) return std::nullopt;
  const BatchSection& batch = row.run.config.batch;
  double flops = flops_per_token(*row.lowered, batch).model_causal * static_cast<double>(batch.sequences * batch.seq);
  return flops / (*published.tflops_per_gpu * 1e12 * static_cast<double>(row.lowered->shape.mesh.world_size()));
}

}  // namespace

double ValidationRow::error() const {
  return predicted_s / *measured_s - 1;
}

RunTraits ValidationRow::traits() const {
  return {.device = machine.device.name,
          .software = run.profile.name,
          .models = models_word(published.has_experts()),
          .size = size_class(1e9 * published.params_b.value_or(0)),
          .dominated = dominated};
}

Validation::Validation(std::vector<PublishedRun> runs) {
  std::vector<SoftwareProfile> profiles = load_profiles();
  for (PublishedRun& published : runs) {
    ConvertedRun converted = to_run_config(published, profiles);
    ValidationRow& row = rows_.emplace_back();
    row.run = std::move(converted.run);
    row.why_not = std::move(converted.why_not);
    row.published = std::move(published);
    if (!row.predicted()) continue;
    if (!machines_.contains(row.run.machine)) machines_[row.run.machine] = load_machine(row.run.machine);
    row.machine = machine_of_row(machines_[row.run.machine], row.published, row.run.profile);
  }
  for_each_row(rows_, [](ValidationRow& row) {
    if (!row.predicted()) return;
    try {
      row.lowered = std::make_unique<LoweredRun>(
          lower_run(row.run.config, row.run.spec, planned_target(row.run.profile), Checks::none));
      row.predicted_memory = foreign_memory(*row.lowered, row.run.config, row.run.profile, row.machine);
      row.measured_s = measured(row);
    } catch (const UserError& error) {
      row.why_not = error.what();
    }
  });
}

void Validation::predict_row(ValidationRow& row, const Efficiencies& efficiency) {
  if (!row.predicted()) return;
  SimResult result = simulate_run(*row.lowered, {row.machine, efficiency, row.run.profile, row.run.expert_imbalance});
  row.predicted_s = result.seconds;
  row.dominated = dominated_by(result);
}

void Validation::predict(Constants constants) {
  for_each_row(rows_, [&](ValidationRow& row) {
    if (!row.predicted()) return;
    predict_row(row, constants == Constants::tables ? row.machine.tables : row.machine.efficiency());
  });
}

void Validation::predict_rows(const std::vector<size_t>& rows, const Efficiencies& efficiency) {
  for_each_number(rows.size(), [&](size_t i) { predict_row(rows_[rows[i]], efficiency); });
}

}  // namespace sextant
