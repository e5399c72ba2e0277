#include "base/error.h"

#include <cstring>

namespace sextant {

std::string Complaint::text() const {
  std::string out = place.empty() ? got : fmt::format("{}: {}", place, got);
  if (!expected.empty()) out += fmt::format("; expected {}", expected);
  if (!hint.empty()) out += fmt::format("\n  hint: {}", hint);
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
  std::string out = place.empty() ? std::string(what) : fmt::format("{}: {}", place, what);
  if (!hint.empty()) out += fmt::format("\n  hint: {}", hint);
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
