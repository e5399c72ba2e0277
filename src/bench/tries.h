// Measurements of which single ones may be beyond the device: too large for its memory, or a shape that its library
// does not know. Such a one is reported among the findings, and the others go on; only when none can be done it is an
// error.
#pragma once

#include <exception>
#include <string>

#include "base/error.h"
#include "bench/result.h"

namespace sextant {

class Tries {
 public:
  explicit Tries(BenchReport& report) : report_(report), before_(report.results.size()) {}

  template <class Body>
  void run(const std::string& what, const Body& body) {
    try {
      body();
    } catch (const RunError& error) {
      report_.findings.push_back(fmt::format("not timed: {}: {}", what, error.what()));
      if (!first_) first_ = std::current_exception();
    }
  }

  void finish() const {
    if (first_ && report_.results.size() == before_) std::rethrow_exception(first_);
  }

 private:
  BenchReport& report_;
  size_t before_;
  std::exception_ptr first_;
};

}  // namespace sextant
