// Compares the machines of a run and finds outliers by majority, since no list here could know the machines of a site.
// Every rank calls these functions together; the findings are on rank 0.
#pragma once

#include <string>
#include <vector>

#include "comm/transport.h"
#include "doctor/finding.h"
#include "doctor/host.h"

namespace sextant {

struct RankExamination {
  int rank = 0;
  std::string host;
  Examination exam;
};

// On rank 0 those of all ranks, in order; elsewhere nothing.
std::vector<RankExamination> gather_examinations(Transport& transport, const Host& host, const Examination& own);

// The findings of all, those that agree told once; then one finding for each fact that is not the same everywhere.
std::vector<Finding> merge_findings(const std::vector<RankExamination>& ranks);
std::vector<Finding> compare_facts(const std::vector<RankExamination>& ranks);

// How far each rank's clock is from the others', how long a message takes to it and back, and whether it comes back as
// it was sent. Without findings on ranks other than 0.
std::vector<Finding> check_messages(Transport& transport, const Host& host, const std::vector<RankExamination>& ranks);

// "rank 3 (node7)", "node7" when all of its ranks are meant, "" when all ranks are.
std::string place_of(const std::vector<int>& chosen, const std::vector<RankExamination>& ranks);

}  // namespace sextant
