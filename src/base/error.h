// Errors are of three kinds and are caught once, in app/.
//   UserError  what was given cannot be used: place, what was got, what is expected, a hint. Exit code 2.
//   RunError   the run itself failed (disk full, a rank lost): where it stood. Exit code 3.
//   BUG(...)   our own mistake, with the source line. Exit code 4.
#pragma once

#include <fmt/format.h>

#include <source_location>
#include <stdexcept>
#include <string>
#include <vector>

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

 private:
  std::vector<Complaint> complaints_;
};

class RunError : public std::runtime_error {
 public:
  // `place` says where the run stood: a file, "step 12", "layers.3.attn (rank 0)"; empty when `what` does.
  RunError(std::string_view place, std::string_view what, std::string_view hint = "");
};

class Bug : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void throw_bug(std::source_location where, const std::string& what);

}  // namespace sextant

// Our own mistake: something that must hold does not.
#define BUG(...) ::sextant::throw_bug(std::source_location::current(), fmt::format(__VA_ARGS__))
#define BUG_IF(condition, ...)      \
  do {                              \
    if (condition) BUG(__VA_ARGS__); \
  } while (false)
