#include "view/pages/validation_html.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "view/xml_check.h"

namespace sextant {
namespace {

constexpr const char* kHead =
    "source,model,arch,layers,hidden,heads,kv_heads,ffn_hidden,vocab,seq,params_B,gpu,n_gpus,gpus_per_node,dp,tp,pp,cp,"
    "vpp,zero_stage,global_batch_seqs,"
    "micro_batch,recompute,seq_parallel,precision,schedule,measured_tokens_per_s_per_gpu,measured_iter_s,measured_mem_"
    "gb_per_gpu,how_known\n";

std::string row(const std::string& source, const std::string& gpu, const std::string& arch) {
  return source + ",GPT small," + arch + ",4,256,4,4,1024,51200,512,0.03," + gpu +
         ",8,8,8,1,1,1,1,0,64,8,none,no,bf16,1f1b,,0.05,,trust A\n";
}

struct Judged {
  explicit Judged(const std::string& rows) : validation(parse_published_runs(kHead + rows, "runs.csv")) {
    validation.predict(Constants::tables);
    tables = figures_of(validation);
    validation.predict(Constants::fitted);
    fitted = figures_of(validation);
  }
  std::string html() const {
    return validation_html(validation, tables, fitted,
                           {.command = "sextant validate --html a.html", .version = "1.2.3", .date = "2026-11-18"});
  }

  Validation validation;
  ValidationFigures tables, fitted;
};

TEST(ValidationHtml, ShowsErrorsRunsAndReasons) {
  Judged judged(row("Megatron-LM SC21", "A100-80GB-SXM", "gpt") + row("Megatron-LM SC21", "H100-SXM", "gpt") +
                row("elsewhere", "abacus", "gpt"));
  std::string html = judged.html();
  EXPECT_EQ(why_not_well_formed(html), "");
  EXPECT_NE(html.find("sextant 1.2.3, 2026-11-18."), std::string::npos);
  EXPECT_NE(html.find("sextant validate --html a.html"), std::string::npos);
  ASSERT_EQ(judged.fitted.judged_errors.rows, 2u);
  auto percent = [](double share) { return fmt::format(">{:.1f} %<", 100 * share); };
  for (double share :
       {judged.fitted.judged_errors.median, judged.fitted.judged_errors.p90, judged.tables.judged_errors.median})
    EXPECT_GT(count_of(html, percent(share)), 0u) << percent(share);
  EXPECT_EQ(count_of(html, "fill-opacity=\"0.8\"><title>"), 2u * 2);  // marks in both pictures
  size_t predicted = 0;
  for (const ValidationRow& r : judged.validation.rows()) {
    if (!r.predicted()) {
      EXPECT_GT(count_of(html, r.why_not.substr(0, 10)), 0u) << r.why_not;
      continue;
    }
    ++predicted;
    EXPECT_GT(count_of(html, fmt::format(">{:.4g} s<", r.predicted_s)), 0u);
    EXPECT_GT(count_of(html, fmt::format(">{:+.1f} %<", 100 * r.error())), 0u);
    for (const std::string& assumed : r.run.assumed) EXPECT_GT(count_of(html, assumed), 0u) << assumed;
  }
  EXPECT_EQ(predicted, 2u);
}

TEST(ValidationHtml, HostileWordsAreWords) {
  Judged judged(row("\"\"\"><script>alert(1)</script>&\"", "A100-80GB-SXM", "gpt") +
                row("<script>", "<script>", "<script>"));
  std::string html = judged.html();
  EXPECT_EQ(why_not_well_formed(html), "");
  EXPECT_EQ(count_of(html, "<script"), 0u);
}

TEST(ValidationHtml, NoRunsAtAll) {
  EXPECT_EQ(why_not_well_formed(Judged("").html()), "");
}

}  // namespace
}  // namespace sextant
