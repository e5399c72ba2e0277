#include "base/error.h"

#include <cstring>

#include "base/printable.h"

namespace sextant {

std::string Complaint::text() const {
  std::string out = place.empty() ? printable(got) : fmt::format("{}: {}", printable(place), printable(got));
  if (!expected.empty()) out += fmt::format("; expected {}", printable(expected));
  if (!hint.empty()) out += fmt::format("\n  hint: {}", printable(hint));
  return out;
}

namespace {

std::string join_complaints(const std::vector<Complaint>& complaints) {
  std::string out;
  for (const Complaint& complaint : complaints) {
    if (!out.empty()) out += '\n';
    out += complaint.text();
  }
  return out;
}

std::string run_error_text(std::string_view place, std::string_view what, std::string_view hint) {
  // `what` may be the text of another error, with lines of its own.
  std::string out = printable(what, Newlines::kept);
  if (!place.empty()) out = fmt::format("{}: {}", printable(place), out);
  if (!hint.empty()) out += fmt::format("\n  hint: {}", printable(hint));
  return out;
}

}  // namespace

UserError::UserError(Complaint complaint) : UserError(std::vector<Complaint>{std::move(complaint)}) {}

UserError::UserError(std::vector<Complaint> complaints)
    : std::runtime_error(join_complaints(complaints)), complaints_(std::move(complaints)) {}

RunError::RunError(std::string_view place, std::string_view what, std::string_view hint, ExitCode code)
    : std::runtime_error(run_error_text(place, what, hint)), code_(code) {}

void throw_bug(std::source_location where, const std::string& what) {
  const char* name = std::strstr(where.file_name(), "src/");
  throw Bug(fmt::format("bug in {}:{}: {}", name ? name : where.file_name(), where.line(), what));
}

}  // namespace sextant
