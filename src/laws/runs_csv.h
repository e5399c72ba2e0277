// A table of somebody's training runs. The first row names the columns: `params` or `N`, `tokens` or `D`, `loss` or
// `L`, and `flops` or `C`, from which the missing one of params and tokens is computed as C = 6·N·D; other columns are
// passed over. Empty lines and lines that begin with # are too. Cells may be quoted; counts may be written 70B
// or 1.4e12.
#pragma once

#include <string_view>
#include <vector>

namespace sextant {

struct LossRun {
  double params = 0;
  double tokens = 0;
  double loss = 0;  // nats per token, at the end of the run
};

// All three positive and finite. UserError names `place` (the file), the line and the column.
std::vector<LossRun> runs_from_csv(std::string_view text, std::string_view place = "runs.csv");

}  // namespace sextant
