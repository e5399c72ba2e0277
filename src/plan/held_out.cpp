#include "plan/held_out.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/csv.h"
#include "base/error.h"
#include "base/files.h"
#include "base/program_folder.h"

namespace sextant {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

std::string held_out_csv(std::span<const HeldOutError> errors) {
  std::string out = "source";
  for (const RunTrait& trait : kRunTraits) out += fmt::format(",{}", trait.name);
  out += ",log_error\n";
  for (const HeldOutError& error : errors) {
    out += quoted(error.source);
    for (const RunTrait& trait : kRunTraits) out += "," + quoted(error.traits.*trait.field);
    out += fmt::format(",{:.4f}\n", error.log_error);
  }
  return out;
}

std::vector<HeldOutError> parse_held_out(std::string_view text, std::string_view place) {
  CsvTable table = parse_csv(text, place);
  auto column = [&](std::string_view name) {
    int found = table.column(name);
    if (found < 0)
      throw UserError({.place = fmt::format("{}:1", place),
                       .got = fmt::format("no column '{}'", name),
                       .expected = "a file that `sextant validate --hold-out --write FILE` made"});
    return static_cast<size_t>(found);
  };
  std::vector<HeldOutError> errors;
  for (const CsvRow& row : table.rows) {
    HeldOutError& error = errors.emplace_back();
    auto cell = [&](std::string_view name) { return row.fields[column(name)]; };
    error.source = cell("source");
    for (const RunTrait& trait : kRunTraits) error.traits.*trait.field = cell(trait.name);
    std::string number = cell("log_error");
    auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), error.log_error);
    if (problem != std::errc{} || end != number.data() + number.size() || !std::isfinite(error.log_error))
      throw UserError({.place = fmt::format("{}:{} log_error", place, row.line),
                       .got = fmt::format("'{}'", number),
                       .expected = "a number"});
  }
  return errors;
}

std::vector<HeldOutError> load_held_out(std::string_view file) {
  std::filesystem::path path = program_folder("data") / file;
  return parse_held_out(read_file(path.string()), path.string());
}

std::string text_of(const Coverage& coverage, double share) {
  return fmt::format("  {:.0f} % interval: {} of {} rows inside ({:.1f} %), its median a factor of {:.3f}\n",
                     100 * share, coverage.inside, coverage.rows, 100 * coverage.share(),
                     std::exp(coverage.median_log_half));
}

}  // namespace sextant
