// The findings as a person reads them, and as programs do.
#pragma once

#include <string>
#include <vector>

#include "base/exit_code.h"
#include "base/text_style.h"
#include "doctor/finding.h"
#include "doctor/ranks.h"

namespace sextant {

std::string findings_text(const std::vector<Finding>& findings, Colours colours = Colours::off);
std::string findings_json(const std::vector<Finding>& findings);

// Unhealthy when there is a failure among them.
ExitCode exit_code_of(const std::vector<Finding>& findings);

// On the way between ranks.
std::string pack_examination(const RankExamination& rank);
RankExamination unpack_examination(const std::string& text);

}  // namespace sextant
