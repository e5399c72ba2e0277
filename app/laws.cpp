// `sextant laws`: scaling laws, and fits of one's own runs.
#include <fmt/format.h>

#include "app/common_options.h"
#include "app/given_options.h"
#include "app/verb.h"
#include "laws/report.h"

namespace sextant {

namespace {

struct LawsArguments {
  std::string compute, tokens, params, inference_tokens;
  std::string fit;  // a CSV file of one's own runs
  bool json = false;
};

void add_laws_options(CLI::App& verb, LawsArguments& a) {
  verb.add_option("--compute", a.compute, "floating-point operations to spend: the best size and tokens");
  verb.add_option("--tokens", a.tokens, "tokens to train on: the size they suit");
  verb.add_option("--params", a.params, "parameters: the tokens and loss that suit them");
  verb.add_option("--inference-tokens", a.inference_tokens, "tokens to be served in the model's life");
  verb.add_option("--fit", a.fit, "fit a scaling law to your own runs (CSV: params, tokens, loss)");
  verb.add_flag("--json", a.json, "print JSON");
}

void run_laws(const LawsArguments& a, VerbContext& context) {
  require_values(*context.verb);
  LawsRequest request{.compute = given_quantity(a.compute, "--compute"),
                      .tokens = given_quantity(a.tokens, "--tokens"),
                      .params = given_quantity(a.params, "--params"),
                      .inference_tokens = given_quantity(a.inference_tokens, "--inference-tokens").value_or(0),
                      .fit_csv = a.fit};
  fmt::print("{}", a.json ? laws_json(request) : laws_text(request));
}

constexpr ValueFormat kLawsValues[] = {
    {"TOKENS", "a number of tokens, such as 300M or 1.4T", "--inference-tokens"},
    {"FLOPS", "a number of floating-point operations, such as 1e21", "--compute"},
    {"PARAMETERS", "a number of parameters, such as 1B", "--params"},
};

}  // namespace

const VerbDef laws_verb{
    .words = "laws",
    .summary = "Best size, tokens and loss of a budget by scaling laws",
    .details = "The budget is compute, tokens or parameters; --fit takes a law from your own runs",
    .examples = "sextant laws --params 1B",
    .values = kLawsValues,
    .declare = declare_verb<add_laws_options, run_laws>,
};

}  // namespace sextant
