#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/units.h"
#include "laws/quantity.h"
#include "watch/run_comparison.h"

namespace sextant {

namespace {

using ComparisonJson = nlohmann::ordered_json;

std::string with_error(const std::optional<LossEstimate>& loss) {
  return loss ? fmt::format("{:.4f} ± {:.4f}", loss->mean, loss->error) : "–";
}

std::string tokens_text(double tokens) {
  return human_count(static_cast<int64_t>(tokens));
}

std::string figures_line(const RunFigures& run) {
  std::string out = fmt::format("  {}: {} steps, {} tokens, loss {}", printable(run.name), human_count(run.steps),
                                tokens_text(run.tokens), with_error(run.final_loss));
  if (run.validation_loss) out += fmt::format(", validation {:.4f}", *run.validation_loss);
  if (run.bits_per_byte) out += fmt::format(", {:.4f} bits per byte", *run.bits_per_byte);
  if (run.tokens_per_s > 0) out += fmt::format(", {} tokens/s", tokens_text(std::round(run.tokens_per_s)));
  return out + "\n";
}

ComparisonJson estimate_json(const std::optional<LossEstimate>& loss) {
  if (!loss) return nullptr;
  return {{"loss", loss->mean},
          {"standard_error", loss->error},
          {"tokens", loss->tokens},
          {"steps", loss->steps},
          {"independent_steps", loss->independent}};
}

ComparisonJson number_or_null(const std::optional<double>& number) {
  return number ? ComparisonJson(*number) : ComparisonJson(nullptr);
}

ComparisonJson figures_json(const RunFigures& run) {
  return {{"name", run.name},
          {"steps", run.steps},
          {"tokens", run.tokens},
          {"seconds", run.seconds},
          {"flops", number_or_null(run.flops)},
          {"final_loss", estimate_json(run.final_loss)},
          {"validation_loss", number_or_null(run.validation_loss)},
          {"bits_per_byte", number_or_null(run.bits_per_byte)},
          {"tokens_per_s", run.tokens_per_s}};
}

ComparisonJson reached_json(const std::optional<LossReached>& reached) {
  if (!reached) return {{"tokens", nullptr}, {"seconds", nullptr}, {"flops", nullptr}};
  return {{"tokens", reached->tokens}, {"seconds", reached->seconds}, {"flops", number_or_null(reached->flops)}};
}

ComparisonJson equal_flops_json(const std::optional<EqualFlops>& equal) {
  if (!equal) return nullptr;
  return {{"flops", equal->flops},
          {"a", estimate_json(equal->a)},
          {"b", estimate_json(equal->b)},
          {"difference", equal->difference()}};
}

std::string reached_text(const std::string& name, const LossReached& reached) {
  return fmt::format("{} takes {} tokens{} and {}", printable(name), tokens_text(reached.tokens),
                     reached.flops ? fmt::format(", {} FLOPs", human_flops(*reached.flops)) : "",
                     human_duration(reached.seconds));
}

std::string level_text(LossMeasure measure, double value) {
  return measure == LossMeasure::bits_per_byte ? fmt::format("{:.4f} {}", value, words_of(measure))
                                               : fmt::format("{} {:.4f}", words_of(measure), value);
}

std::string reached_line(const RunComparison& c) {
  if (!c.reached_loss || !c.a_reached || !c.b_reached) return "";
  return fmt::format("  to {}: {}, {}\n", level_text(*c.basis.measure, *c.reached_loss),
                     reached_text(c.a.name, *c.a_reached), reached_text(c.b.name, *c.b_reached));
}

ComparisonJson basis_json(const LossBasis& basis) {
  if (!basis.measure) return {{"measure", nullptr}, {"unit", nullptr}, {"why", basis.why}};
  return {{"measure", field_of(*basis.measure)}, {"unit", unit_of(*basis.measure)}, {"why", basis.why}};
}

}  // namespace

std::string RunComparison::sentence() const {
  if (!basis.measure)
    return fmt::format("{} and {} cannot be compared: {}.", printable(b.name), printable(a.name), printable(basis.why));
  if (verdict == ComparisonVerdict::unknown && *basis.measure != LossMeasure::loss)
    return fmt::format("{} and {} cannot be compared: no {} at equal tokens, or fewer than 8 steps with a loss.",
                       printable(b.name), printable(a.name), words_of(*basis.measure));
  if (verdict == ComparisonVerdict::unknown)
    return fmt::format("{} and {} cannot be compared: fewer than 8 steps with a loss at equal tokens.",
                       printable(b.name), printable(a.name));
  std::string at = fmt::format("at {} tokens", tokens_text(std::min(a.tokens, b.tokens)));
  if (verdict == ComparisonVerdict::no_difference)
    return fmt::format(
        "{} is not different from {} {}: {:+.4f} in {}, within the noise of ±{:.4f} (two standard errors).",
        printable(b.name), printable(a.name), at, difference, words_of(*basis.measure), 2 * error);
  return fmt::format("{} is {} than {} {}: {:+.4f} in {}, beyond the noise of ±{:.4f} (two standard errors).",
                     printable(b.name), name_of(verdict), printable(a.name), at, difference, words_of(*basis.measure),
                     2 * error);
}

std::string comparison_text(const std::vector<RunComparison>& comparisons) {
  std::string out;
  for (const RunComparison& c : comparisons) {
    if (!out.empty()) out += "\n";
    out += fmt::format("{}\n{}{}", c.sentence(), figures_line(c.a), figures_line(c.b));
    if (c.basis.measure && !c.basis.why.empty())
      out += fmt::format("  by {}: {}\n", words_of(*c.basis.measure), printable(c.basis.why));
    if (c.equal_a && c.equal_b)
      out += fmt::format("  at equal tokens ({}): {} against {}\n", tokens_text(std::min(c.a.tokens, c.b.tokens)),
                         with_error(c.equal_a), with_error(c.equal_b));
    if (c.equal_flops)
      out += fmt::format("  at equal FLOPs ({}): {} against {}\n", human_flops(c.equal_flops->flops),
                         with_error(c.equal_flops->a), with_error(c.equal_flops->b));
    if (c.seed_error > 0)
      out += fmt::format("  noise: ±{:.4f} of the curves, ±{:.4f} of the seeds ({:.1f} % of the loss, {})\n",
                         2 * c.curve_error, 2 * c.seed_error, 100 * c.seeds.share,
                         c.seeds.runs > 0 ? fmt::format("from {} runs that differ in their seed alone", c.seeds.runs)
                                          : "assumed: give runs that differ in train.seed alone to measure it");
    out += reached_line(c);
    if (!c.config_remark.empty()) out += fmt::format("  configs not compared: {}\n", printable(c.config_remark));
    if (c.config_remark.empty() && c.config.empty()) out += "  the configs are the same\n";
    for (const ConfigChange& key : c.config) out += fmt::format("  {}\n", printable(key.text()));
  }
  return out;
}

std::string comparison_json(const std::vector<RunComparison>& comparisons) {
  ComparisonJson list = ComparisonJson::array();
  for (const RunComparison& c : comparisons) {
    ComparisonJson keys = ComparisonJson::array();
    for (const ConfigChange& key : c.config)
      keys.push_back({{"key", key.key}, {"before", key.before}, {"after", key.after}});
    bool compared = c.verdict != ComparisonVerdict::unknown;
    list.push_back({{"a", figures_json(c.a)},
                    {"b", figures_json(c.b)},
                    {"config", c.config_remark.empty() ? keys : ComparisonJson(nullptr)},
                    {"basis", basis_json(c.basis)},
                    {"equal_tokens",
                     {{"a", estimate_json(c.equal_a)},
                      {"b", estimate_json(c.equal_b)},
                      {"difference", compared ? ComparisonJson(c.difference) : ComparisonJson(nullptr)},
                      {"standard_error", compared ? ComparisonJson(c.error) : ComparisonJson(nullptr)},
                      {"curve_error", compared ? ComparisonJson(c.curve_error) : ComparisonJson(nullptr)},
                      {"seed_error", compared ? ComparisonJson(c.seed_error) : ComparisonJson(nullptr)}}},
                    {"equal_flops", equal_flops_json(c.equal_flops)},
                    {"to_loss",
                     {{"loss", number_or_null(c.reached_loss)},
                      {"a", reached_json(c.a_reached)},
                      {"b", reached_json(c.b_reached)}}},
                    {"verdict", name_of(c.verdict)},
                    {"sentence", c.sentence()}});
  }
  return ComparisonJson{{"comparisons", list}}.dump(-1, ' ', false, ComparisonJson::error_handler_t::replace);
}

}  // namespace sextant
