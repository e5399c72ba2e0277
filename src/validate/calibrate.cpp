#include "validate/calibrate.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace sextant {

namespace {

// A row far off must not pull all others after it.
constexpr double kCap = 0.5;
constexpr double kBeyondTables = 1.1;
// With fewer rows only the rate of GEMMs is fitted.
constexpr size_t kRowsForAll = 6;
// Efficiencies stay near what tables say unless rows insist.
constexpr double kPull = 0.004;
// Rows are simulated anew at most so often around a better point.
constexpr int kRounds = 6;
// Shares of an efficiency's bounds: how far a slope is trusted, at first and at least, and what it is taken over.
constexpr double kTrust = 0.3, kLeastTrust = 0.01, kSlopeOver = 0.04;
// Less is no gain.
constexpr double kGain = 1e-5, kGainOfRound = 2e-4;

double span_of(const NamedEfficiency& named) {
  return named.bounds.most - named.bounds.least;
}

// Errors of the rows at a point, as logarithms, and their change with each efficiency.
struct LocalModel {
  Efficiencies at;
  std::vector<double> errors;
  std::vector<std::vector<double>> slopes;  // by efficiency, then by row; empty where it is not fitted

  std::vector<double> errors_at(const Efficiencies& point) const {
    std::vector<double> out = errors;
    for (size_t k = 0; k < slopes.size(); ++k) {
      double away = point.*named_efficiencies()[k].field - at.*named_efficiencies()[k].field;
      for (size_t row = 0; row < slopes[k].size() && away != 0; ++row) out[row] += away * slopes[k][row];
    }
    return out;
  }
};

// A simulation of all rows takes seconds, so the descent goes over a model of them that is linear around a point, and
// what it finds is simulated: where that is better, it is the next point.
class Fit {
 public:
  Fit(Validation& validation, const std::string& machine, Models models)
      : validation_(validation),
        start_(validation.machines().at(machine).tables),
        stored_(models == Models::dense ? validation.machines().at(machine).fitted
                                        : validation.machines().at(machine).fitted_experts) {
    for (size_t i = 0; i < validation.rows().size(); ++i)
      if (counts(validation.rows()[i], machine, models)) rows_.push_back(i);
  }

  Calibration run() {
    std::vector<double> errors = errors_at(start_);
    Calibration out{.efficiency = start_, .before = loss(errors, start_, ""), .rows = rows_.size()};
    out.after = out.before;
    if (rows_.size() < 2) return out;  // too few to tell anything
    if (stored_) begin_at_stored(out, errors);
    LocalModel model = around(out.efficiency, errors);
    improve(out, model);
    return out;
  }

  // Each source in turn is left out of the descent over a model around the fit of all, which begins at the one that the
  // machine's file has: rows of others are not simulated again.
  std::vector<HeldOut> hold_out() {
    std::map<std::string, HeldOut> by_source;
    for (size_t i : rows_) by_source[row(i).published.source].source = row(i).published.source;
    Efficiencies from = stored_ ? *stored_ : start_;
    std::vector<double> errors = errors_at(from);
    Calibration all_rows{.efficiency = from, .before = loss(errors, from, ""), .rows = rows_.size()};
    all_rows.after = all_rows.before;
    LocalModel model = around(from, errors);
    if (rows_.size() >= 2) improve(all_rows, model);
    std::vector<HeldOut> all;
    for (auto& [source, held] : by_source) {
      std::vector<size_t> own;
      for (size_t i : rows_)
        if (row(i).published.source == source) own.push_back(i);
      held.fitted_on = rows_.size() - own.size();
      validation_.predict_rows(own, held.fitted_on < 2 ? start_ : descend(model, 1, source));
      for (size_t i : own)
        held.errors.push_back({.source = source, .traits = row(i).traits(), .log_error = std::log1p(row(i).error())});
      all.push_back(std::move(held));
    }
    return all;
  }

 private:
  // Where the fit that the machine's file has is nearer than the tables, it is the first point.
  void begin_at_stored(Calibration& out, std::vector<double>& errors) {
    std::vector<double> stored = errors_at(*stored_);
    double now = loss(stored, *stored_, "");
    if (now >= out.after) return;
    out.efficiency = *stored_, out.after = now;
    errors = std::move(stored);
  }

  // From `out`, around which `model` is, to where rows are nearest; the model is left around a point near that one.
  void improve(Calibration& out, LocalModel& model) {
    double trust = kTrust;
    for (int round = 0; round < kRounds && trust > kLeastTrust; ++round) {
      Efficiencies tried = descend(model, trust, "");
      if (tried == out.efficiency) break;
      std::vector<double> errors = errors_at(tried);
      double now = loss(errors, tried, ""), gain = out.after - now;
      if (gain < kGain) {
        trust /= 4;
        continue;
      }
      out.efficiency = tried, out.after = now;
      if (gain < kGainOfRound) break;
      model = around(tried, errors);
    }
  }

  static bool counts(const ValidationRow& row, const std::string& machine, Models models) {
    if (row.run.machine != machine || !row.predicted() || !row.measured_s) return false;
    const PublishedRun& run = row.published;
    return models == Models::dense ? run.judged() && run.timed() : run.judged_experts();
  }

  const ValidationRow& row(size_t i) const { return validation_.rows()[i]; }

  std::vector<double> errors_at(const Efficiencies& point) {
    validation_.predict_rows(rows_, point);
    std::vector<double> errors;
    for (size_t i : rows_) errors.push_back(std::log1p(row(i).error()));
    return errors;
  }

  LocalModel around(const Efficiencies& at, const std::vector<double>& errors) {
    LocalModel model{.at = at, .errors = errors};
    for (const NamedEfficiency& named : named_efficiencies()) {
      std::vector<double>& slopes = model.slopes.emplace_back();
      if (!is_fitted(named, rows_.size())) continue;
      double step = kSlopeOver * span_of(named);
      if (at.*named.field + step > most(named)) step = -step;
      Efficiencies beside = at;
      beside.*named.field += step;
      slopes = errors_at(beside);
      for (size_t i = 0; i < slopes.size(); ++i) slopes[i] = (slopes[i] - errors[i]) / step;
    }
    return model;
  }

  static bool is_fitted(const NamedEfficiency& named, size_t rows) {
    return rows >= kRowsForAll || named.field == &Efficiencies::product;
  }

  Efficiencies descend(const LocalModel& model, double trust, const std::string& without) const {
    auto rows =
        static_cast<size_t>(std::ranges::count_if(rows_, [&](size_t i) { return row(i).published.source != without; }));
    Efficiencies best = model.at;
    double least = loss(model.errors, best, without);
    auto improve = [&](const NamedEfficiency& named, double step) {
      double farthest = trust * span_of(named), middle = model.at.*named.field;
      Efficiencies tried = best;
      tried.*named.field =
          std::clamp(best.*named.field + step * span_of(named), std::max(named.bounds.least, middle - farthest),
                     std::max(named.bounds.least, std::min(most(named), middle + farthest)));
      double now = loss(model.errors_at(tried), tried, without);
      if (now >= least - kGain) return false;
      best = tried, least = now;
      return true;
    };
    for (double step : {0.12, 0.06, 0.03, 0.015})
      for (bool better = true; better;) {
        better = false;
        for (const NamedEfficiency& named : named_efficiencies())
          if (is_fitted(named, rows)) better = improve(named, step) || improve(named, -step) || better;
      }
    return best;
  }

  // Kernels and links may do a little better than their tables, not more.
  double most(const NamedEfficiency& named) const {
    bool share = named.field != &Efficiencies::kernel_s && named.field != &Efficiencies::imbalance;
    return share ? std::min(named.bounds.most, kBeyondTables * start_.*named.field) : named.bounds.most;
  }

  double loss(const std::vector<double>& errors, const Efficiencies& efficiency, const std::string& without) const {
    // Sources with many rows count for more, but not in proportion.
    struct OfSource {
      double sum = 0, rows = 0;
    };
    std::map<std::string_view, OfSource> by_source;
    for (size_t i = 0; i < rows_.size(); ++i) {
      std::string_view source = row(rows_[i]).published.source;
      if (source == without) continue;
      OfSource& of = by_source[source];
      of.sum += std::min(kCap, std::abs(errors[i])), of.rows += 1;
    }
    double sum = 0, weights = 0, pull = 0;
    for (const auto& [source, of] : by_source) {
      double weight = std::sqrt(of.rows);
      sum += weight * of.sum / of.rows, weights += weight;
    }
    for (const NamedEfficiency& named : named_efficiencies()) {
      double away = (efficiency.*named.field - start_.*named.field) / span_of(named);
      pull += away * away;
    }
    return (weights > 0 ? sum / weights : 0) + kPull * pull;
  }

  Validation& validation_;
  Efficiencies start_;
  std::optional<Efficiencies> stored_;  // in the machine's file
  std::vector<size_t> rows_;
};

}  // namespace

std::vector<double> HeldOut::absolute() const {
  std::vector<double> out;
  for (const HeldOutError& error : errors) out.push_back(std::abs(std::expm1(error.log_error)));
  return out;
}

Calibration calibrate(Validation& validation, const std::string& machine, Models models) {
  return Fit(validation, machine, models).run();
}

std::vector<HeldOut> hold_out_sources(Validation& validation, const std::string& machine, Models models) {
  return Fit(validation, machine, models).hold_out();
}

}  // namespace sextant
