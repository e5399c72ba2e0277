// validate: predicts every published run that can be converted, and compares.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "plan/foreign_memory.h"
#include "plan/predict.h"
#include "plan/prediction_interval.h"
#include "validate/foreign.h"
#include "validate/published_run.h"

namespace sextant {

// One row, lowered once; priced with whatever efficiencies its machine has at the time.
struct ValidationRow {
  PublishedRun published;
  ForeignRun run;
  std::string why_not;  // not empty: not predicted
  std::unique_ptr<LoweredRun> lowered;
  Machine machine;  // with the network that its profile documents
  double predicted_s = 0;
  std::string dominated;  // where the predicted step goes (plan/prediction_interval.h)
  ForeignMemory predicted_memory;

  bool predicted() const { return why_not.empty(); }
  // Of a step: as published, or from the published rate of floating-point operations and the model's causal count.
  std::optional<double> measured_s;
  double error() const;  // of the step time: predicted / measured − 1
  RunTraits traits() const;
};

// Models without experts and with them are fitted apart.
enum class Models : uint8_t { dense, experts };

// Which efficiencies count: those of published tables, or those fitted.
enum class Constants : uint8_t { tables, fitted };

class Validation {
 public:
  // Reads, expresses and lowers; `machines` are loaded by name as rows ask for them.
  explicit Validation(std::vector<PublishedRun> runs);

  void predict(Constants constants);
  // For a fit: predicts these rows, by their place in rows(), with efficiencies that are not their machine's.
  void predict_rows(const std::vector<size_t>& rows, const Efficiencies& efficiency);

  std::vector<ValidationRow>& rows() { return rows_; }
  const std::vector<ValidationRow>& rows() const { return rows_; }
  const std::map<std::string, Machine>& machines() const { return machines_; }

 private:
  void predict_row(ValidationRow& row, const Efficiencies& efficiency);

  std::vector<ValidationRow> rows_;
  std::map<std::string, Machine> machines_;
};

}  // namespace sextant
