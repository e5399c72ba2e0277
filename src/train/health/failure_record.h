// Events that a rank which ends by an error writes to the run's directory: they give the reason.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>

#include "config/run_config.h"

namespace sextant {

// By a rank that has waited too long: who waits for whom, on standard error too. The late one may still be there to be
// looked at.
void record_hang(const std::filesystem::path& out, const LogSection& log);

// By the rank that fails, which need not be the leader.
void record_failure(const std::filesystem::path& out, const LogSection& log, int rank, int64_t step,
                    const std::exception& error);

}  // namespace sextant
