#include "validate/calibrate.h"

#include <algorithm>
#include <cmath>

namespace sextant {

namespace {

// A row far off must not pull all others after it.
constexpr double kCap = 0.5;
constexpr double kBeyondTables = 1.1;
// With fewer rows only the rate of GEMMs is fitted.
constexpr size_t kRowsForAll = 6;
// Efficiencies stay near what tables say unless rows insist.
constexpr double kPull = 0.004;

// Which rows a machine type is fitted on.
class Counted {
 public:
  Counted(std::string machine, Models models) : machine_(std::move(machine)), models_(models) {}

  bool operator()(const ValidationRow& row) const {
    if (row.run.machine != machine_ || !row.predicted() || !row.measured_s) return false;
    return models_ == Models::dense ? row.published.judged() && row.published.timed() : row.published.judged_experts();
  }

 private:
  const std::string machine_;
  const Models models_;
};

class Descent {
 public:
  Descent(Validation& validation, const std::string& machine, Models models, const std::string& without)
      : validation_(validation),
        machine_(machine),
        models_(models),
        without_(without),
        counts_(machine, models),
        start_(validation.machines().at(machine).tables) {}

  Calibration run() {
    Calibration out{.efficiency = start_};
    out.before = out.after = loss(start_);
    out.rows = rows_;
    if (rows_ < 2) return out;  // too few to tell anything
    for (double step : {0.12, 0.06, 0.03, 0.015}) {
      for (bool better = true; better;) {
        better = false;
        for (const NamedEfficiency& named : named_efficiencies())
          if (rows_ >= kRowsForAll || named.field == &Efficiencies::product)
            better = improve(out, named, step) || better;
      }
    }
    return out;
  }

 private:
  bool improve(Calibration& best, const NamedEfficiency& named, double step) {
    bool better = false;
    for (double direction : {1.0, -1.0}) {
      Efficiencies tried = best.efficiency;
      double span = named.bounds.most - named.bounds.least;
      double& value = tried.*named.field;
      value = std::clamp(value + direction * step * span, named.bounds.least, most(named));
      if (value == best.efficiency.*named.field) continue;
      double now = loss(tried);
      if (now >= best.after - 1e-5) continue;
      best.efficiency = tried, best.after = now, better = true;
    }
    return better;
  }

  // Kernels and links may do a little better than their tables, not more.
  double most(const NamedEfficiency& named) const {
    bool share = named.field != &Efficiencies::kernel_s && named.field != &Efficiencies::imbalance;
    return share ? std::min(named.bounds.most, kBeyondTables * start_.*named.field) : named.bounds.most;
  }

  double loss(const Efficiencies& efficiency) {
    validation_.predict_with(machine_, models_, efficiency);
    double sum = 0;
    // Sources with many rows count for more, but not in proportion.
    std::map<std::string, std::vector<double>> by_source;
    rows_ = 0;
    for (const ValidationRow& row : validation_.rows()) {
      if (!counts_(row) || row.published.source == without_) continue;
      by_source[row.published.source].push_back(std::min(kCap, std::abs(std::log1p(row.error()))));
      ++rows_;
    }
    double weights = 0;
    for (const auto& [source, errors] : by_source) {
      double mean = 0, weight = std::sqrt(static_cast<double>(errors.size()));
      for (double e : errors) mean += e / static_cast<double>(errors.size());
      sum += weight * mean, weights += weight;
    }
    double pull = 0;
    for (const NamedEfficiency& named : named_efficiencies()) {
      double away = (efficiency.*named.field - start_.*named.field) / (named.bounds.most - named.bounds.least);
      pull += away * away;
    }
    return (weights > 0 ? sum / weights : 0) + kPull * pull;
  }

  Validation& validation_;
  std::string machine_;
  Models models_;
  std::string without_;
  Counted counts_;
  Efficiencies start_;
  size_t rows_ = 0;
};

}  // namespace

Calibration calibrate(Validation& validation, const std::string& machine, Models models, const std::string& without) {
  return Descent(validation, machine, models, without).run();
}

std::vector<HeldOut> hold_out_sources(Validation& validation, const std::string& machine, Models models) {
  std::map<std::string, HeldOut> by_source;
  Counted counts(machine, models);
  for (const ValidationRow& row : validation.rows())
    if (counts(row)) by_source[row.published.source].source = row.published.source;
  std::vector<HeldOut> all;
  for (auto& [source, held] : by_source) {
    Calibration fit = calibrate(validation, machine, models, source);
    held.fitted_on = fit.rows;
    validation.predict_with(machine, models, fit.efficiency);
    for (const ValidationRow& row : validation.rows())
      if (counts(row) && row.published.source == source) held.errors.push_back(std::abs(row.error()));
    all.push_back(std::move(held));
  }
  return all;
}

}  // namespace sextant
