#include "data/skipped_records.h"

#include "base/error.h"
#include "base/units.h"

namespace sextant {

void SkippedRecords::add(std::string what) {
  ++count;
  if (first.size() < kPlaces) first.push_back(std::move(what));
}

std::string SkippedRecords::text() const {
  return fmt::format(
      "{} document{} could not be read and {} skipped: {}{}", human_count(count), count == 1 ? "" : "s",
      count == 1 ? "was" : "were", fmt::join(first, "; "),
      count > std::ssize(first) ? fmt::format("; and {} more", human_count(count - std::ssize(first))) : "");
}

void require_few_skipped(const SkippedRecords& skipped, int64_t read, std::string_view place) {
  constexpr int64_t kFewest = 100, kPart = 10;
  if (skipped.count < kFewest || skipped.count * kPart <= skipped.count + read) return;
  throw UserError({.place = std::string(place),
                   .got = fmt::format("{} of {} documents cannot be read: {}", human_count(skipped.count),
                                      human_count(skipped.count + read), fmt::join(skipped.first, "; ")),
                   .expected = "no more than a tenth, which data.on_error = \"skip\" leaves out",
                   .hint = "check data.text_key and data.format, or mend the files"});
}

}  // namespace sextant
