// The findings as a person reads them, and as programs do.
#pragma once

#include <string>
#include <vector>

#include "doctor/finding.h"
#include "doctor/ranks.h"

namespace sextant {

std::string findings_text(const std::vector<Finding>& findings);
std::string findings_json(const std::vector<Finding>& findings);

// 1 when there is a failure among them, else 0.
int exit_code_of(const std::vector<Finding>& findings);

// On the way between ranks.
std::string pack_examination(const RankExamination& rank);
RankExamination unpack_examination(const std::string& text);

}  // namespace sextant
