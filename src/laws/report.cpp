#include "laws/report.h"

#include "base/error.h"
#include "base/files.h"

namespace sextant {

namespace {

void require_range(const std::optional<double>& value, const char* option, double most) {
  if (value && !(*value >= 1 && *value <= most))
    throw UserError(Complaint{option, fmt::format("{:g}", *value), fmt::format("between 1 and {:.0e}", most), ""});
}

void check(const LawsRequest& request) {
  require_range(request.compute, "--compute", 1e40);
  require_range(request.tokens, "--tokens", 1e20);
  require_range(request.params, "--params", 1e20);
  if (!(request.inference_tokens >= 0 && request.inference_tokens <= 1e24))
    throw UserError(
        Complaint{"--inference-tokens", fmt::format("{:g}", request.inference_tokens), "between 0 and 1e24", ""});
  if (request.compute && (request.tokens || request.params))
    throw UserError(Complaint{"--compute", "tokens or parameters are given too", "one of them", "Compute is 6·N·D."});
  if (!request.sized() && request.fit_csv.empty())
    throw UserError(Complaint{"", "neither a budget nor runs are given", "--compute, --tokens, --params or --fit", ""});
  if (!request.sized() && request.inference_tokens > 0)
    throw UserError(
        Complaint{"--inference-tokens", "there is no model to serve", "--compute, --tokens or --params", ""});
}

// The compute at which this division of it fits the request.
double compute_of(const LawsRequest& request, const ComputeSplit& split) {
  if (request.compute) return *request.compute;
  if (request.decided()) return 6 * *request.params * *request.tokens;
  return request.params ? split.compute_for_params(*request.params) : split.compute_for_tokens(*request.tokens);
}

LawRow row_of(const LawsRequest& request, Law law) {
  LawRow row{.law = std::move(law), .optimum = {}, .decided_loss = std::nullopt};
  row.optimum = row.law.optimum(compute_of(request, row.law.split));
  if (request.decided() && row.law.loss) row.decided_loss = row.law.loss(*request.params, *request.tokens);
  return row;
}

}  // namespace

LawsReport laws_report(const LawsRequest& request) {
  check(request);
  LawsReport report{.request = request,
                    .rows = {},
                    .fit = std::nullopt,
                    .law = besiroglu(),
                    .optimum = {},
                    .smaller = {},
                    .lifetime = std::nullopt};
  if (!request.fit_csv.empty()) {
    report.fit = fit_law(runs_from_csv(read_file(request.fit_csv), request.fit_csv), request.fit_csv);
    report.law = report.fit->law;
  }
  report.smaller = undersized_tradeoff_table(report.law);
  if (!request.sized()) return report;

  std::vector<Law> laws = published_laws();
  if (report.fit) laws.insert(laws.begin(), as_law(report.law));
  for (Law& law : laws) report.rows.push_back(row_of(request, std::move(law)));
  double compute = compute_of(request, report.law.split());
  report.optimum = report.law.optimum(compute);
  if (request.inference_tokens > 0) report.lifetime = compare_lifetimes(report.law, compute, request.inference_tokens);
  return report;
}

std::string laws_text(const LawsRequest& request) {
  return laws_text(laws_report(request));
}
std::string laws_json(const LawsRequest& request) {
  return laws_json(laws_report(request));
}

}  // namespace sextant
