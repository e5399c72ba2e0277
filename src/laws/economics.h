// Cost of a run on given machines: days, device-hours, money, energy, and the share that failures and checkpoints take.
//
// Failures come at random, at a constant rate per device, and any of them stops the whole run; it resumes from the last
// checkpoint after a restart, and may fail in either. Expected times are exact for this model (Daly 2006): a piece of
// work of τ seconds and its checkpoint of δ, at a mean time M between failures of all devices and a restart of R, take
//   M · e^(R/M) · (e^((τ+δ)/M) − 1).
// A run that ends before its first checkpoint is due saves only what it was for: that costs it nothing (δ = 0).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sextant {

// Llama 3 405B: 419 unexpected interruptions in 54 days on 16,384 H100s (arXiv:2407.21783, section 3.3.4).
constexpr double kLlama3DeviceMtbfHours = 54 * 24 * 16384.0 / 419;

struct RunEconomicsInput {
  double step_seconds = 0;
  double tokens_per_step = 0;
  double token_budget = 0;
  int64_t devices = 1;
  int64_t devices_per_node = 8;
  double device_watts = 0;           // drawn at the device with its share of the node; 0 = unknown
  double pue = 1.2;                  // what the building draws for each watt of its machines
  double price_per_device_hour = 0;  // dollars; 0 = unknown
  double device_mtbf_hours = 0;      // 0 = unknown: Llama 3's
  double checkpoint_seconds = 0;     // for which training stands still
  int64_t checkpoint_every = 0;      // steps; 0 = as loses least
  double restart_seconds = 0;        // from a failure to the first step that counts, without what is done again
  double params = 0;                 // used for each token; 0 = unknown
};

// Shares of the time with failures; they and the goodput add up to 1.
struct LostTime {
  double checkpoints = 0;
  double rework = 0;  // done again after failures
  double restarts = 0;
};

struct Economics {
  RunEconomicsInput run;
  int64_t steps = 0;
  int64_t nodes = 0;
  double days = 0;                           // of steps alone
  double model_flops_per_device_second = 0;  // 6·params per token; 0 = unknown

  double mtbf_hours = 0;     // of all devices together
  double young_seconds = 0;  // the interval that loses least, to first order
  double daly_seconds = 0;   // and to higher order: used, in whole steps, where the run does not say
  int64_t checkpoint_steps = 1;
  double saves = 0;
  LostTime lost;
  double goodput = 1;  // share of the time spent on steps that count

  bool saves_between() const { return checkpoint_steps < steps; }  // not only at the end

  // With failures and checkpoints. Nothing: they come faster than the run gets on.
  std::optional<double> days_with_failures;
  std::optional<double> device_hours;
  std::optional<double> failures;
  std::optional<double> cost;        // nor when the price is unknown
  std::optional<double> energy_mwh;  // nor when the power is
};

// UserError for what cannot be: no devices, negative times, a PUE below 1.
Economics economics_of(const RunEconomicsInput& run);

// The work between checkpoints that loses least: Young 1974, sqrt(2δM); Daly 2006, which holds when δ is no longer
// small against M.
double young_interval(double checkpoint_seconds, double mtbf_seconds);
double daly_interval(double checkpoint_seconds, double mtbf_seconds);

std::string economics_text(const Economics& economics);
std::string economics_json(const Economics& economics);  // one object

}  // namespace sextant
