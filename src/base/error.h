// Errors are of three kinds and are caught once, in app/. exit_code.h has the exit code of each.
//   UserError  what was given cannot be used: place, what was got, what is expected, a hint.
//   RunError   the run itself failed (disk full, a rank lost): where it stood.
//   BUG(...)   our own mistake, with the source line.
#pragma once

#include <fmt/format.h>

#include <source_location>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/exit_code.h"

namespace sextant {

// The fields are joined to "place: got; expected …; hint". Empty fields are left out.
struct Complaint {
  std::string place;     // "config.toml:3:5 model.heads", "weights.safetensors", "line 7"
  std::string got;       // what is wrong, as a clause: "heads 7 does not divide hidden 64"
  std::string expected;  // what would be right, as a noun phrase: "a divisor of 64"
  std::string hint;      // what to do, as a sentence

  std::string text() const;
};

class UserError : public std::runtime_error {
 public:
  explicit UserError(Complaint complaint);
  explicit UserError(std::vector<Complaint> complaints);  // all config errors are reported together
  const std::vector<Complaint>& complaints() const { return complaints_; }
  virtual ExitCode exit_code() const { return ExitCode::bad_input; }

 private:
  std::vector<Complaint> complaints_;
};

// The request is well-formed, but needs more memory than there is.
class DoesNotFit : public UserError {
 public:
  using UserError::UserError;
  ExitCode exit_code() const override { return ExitCode::does_not_fit; }
};

class RunError : public std::runtime_error {
 public:
  // `place` says where the run stood: a file, "step 12", "layers.3.attn (rank 0)"; empty when `what` does.
  RunError(std::string_view place, std::string_view what, std::string_view hint = "",
           ExitCode code = ExitCode::run_failed);
  ExitCode exit_code() const { return code_; }

 private:
  ExitCode code_;
};

class Bug : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void throw_bug(std::source_location where, const std::string& what);

}  // namespace sextant

// Our own mistake: something that must hold does not.
#define BUG(...) ::sextant::throw_bug(std::source_location::current(), fmt::format(__VA_ARGS__))
#define BUG_IF(condition, ...)       \
  do {                               \
    if (condition) BUG(__VA_ARGS__); \
  } while (false)
