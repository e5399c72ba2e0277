// Effects on a run of changing one thing: a row for each change. Each row is a real plan with the fastest layout,
// searched anew.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "answers/planned_run.h"
#include "answers/question_change.h"

namespace sextant {

struct WhatIfRow {
  std::string change;  // "as asked", "batch.seq=16384"
  std::string remark;
  std::optional<PlannedRun> plan;
  std::string why_not;  // where nothing fits
};

struct WhatIf {
  double tokens = 0;            // of the run
  std::vector<WhatIfRow> rows;  // the first is the question itself, which fits
};

struct WhatIfQuestion {
  ChangeableQuestion base;
  double tokens = 0;
  std::vector<QuestionChange> changes;
};

// UserError where the question itself has no plan, or a change cannot be made.
WhatIf what_if(const WhatIfQuestion& question);

// Against the first row; none where the row has no plan or a price is not known.
std::optional<double> speed_ratio(const WhatIf& answer, const WhatIfRow& row);
std::optional<double> cost_ratio(const WhatIf& answer, const WhatIfRow& row);

std::string what_if_text(const WhatIf& answer);
nlohmann::ordered_json what_if_json(const WhatIf& answer);

}  // namespace sextant
