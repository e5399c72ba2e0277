// The same model on one rank and on many meshes: the losses of some steps and the weights at the end agree.
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>

#include "mesh_cases.h"
#include "run/programs.h"
#include "run/resolve_spec.h"
#include "same_training.h"
#include "scratch_run.h"

namespace sextant {
namespace {

const std::vector<std::string> kCommon = common_settings();

class OnMeshes : public testing::TestWithParam<std::tuple<const char*, MeshCase>> {
 protected:
  static ScratchRun& scratch() {
    static ScratchRun run("meshes");
    return run;
  }
  // One reference run per architecture, shared by all meshes. Experts are balanced over the sequences of all ranks that
  // go through the model at once: there, one rank takes as many at once.
  static std::string reference(const std::string& file, const std::vector<std::string>& settings) {
    RunConfig run = scratch().config(file, settings);
    std::string name = "one-" + file;
    std::vector<std::string> alone = kCommon;
    if (resolve_spec(run).experts) {
      int64_t at_once = run.batch.microbatch * run_shape(run, resolve_spec(run)).mesh.ranks(AxisRole::data);
      name += fmt::format("-{}", at_once);
      alone.push_back(fmt::format("batch.microbatch={}", at_once));
    }
    if (!std::filesystem::exists(scratch().root() / name)) scratch().run(name, alone, file);
    return name;
  }
};

TEST_P(OnMeshes, TrainsAsOneRankDoes) {
  const auto& [file, mesh] = GetParam();
  std::vector<std::string> settings = kCommon;
  settings.insert(settings.end(), mesh.settings.begin(), mesh.settings.end());
  std::string one = reference(file, settings);
  std::vector<std::string> expected = scratch().losses(one);
  std::string out = fmt::format("{}-{}", mesh.name, file);
  scratch().run(out, settings, file);
  expect_same_losses(scratch().losses(out), expected);
  double validation = std::stod(scratch().metric(one, "validation_loss").back());
  EXPECT_NEAR(std::stod(scratch().metric(out, "validation_loss").back()), validation, 1e-5 * validation);
  const std::string last = fmt::format("step-{:06}", kMeshSteps);
  expect_same_weights(scratch().root() / one / last, scratch().root() / out / last);
}

// Resumes on another mesh, with the optimizer's state, whichever way experts lay before. So many sequences go through
// every mesh at once: that is what experts are balanced over.
void expect_resumed(const std::string& name, const std::vector<MeshCase>& chain, int64_t at_once) {
  ScratchRun scratch(name);
  auto settings_of = [&](const MeshCase& mesh, int64_t steps) {
    std::vector<std::string> settings = kCommon;
    settings.insert(settings.end(), mesh.settings.begin(), mesh.settings.end());
    settings.push_back(fmt::format("train.steps={}", steps));
    settings.push_back("train.eval_every=0");
    RunConfig run = scratch.config("tiny-moe.toml", settings);
    int ranks = run_shape(run, resolve_spec(run)).mesh.ranks(AxisRole::data);
    settings.push_back(fmt::format("batch.microbatch={}", at_once / ranks));
    return settings;
  };
  int64_t steps = 2 * static_cast<int64_t>(chain.size());
  scratch.run("alone", settings_of({"one", {}}, steps), "tiny-moe.toml");
  for (size_t i = 0; i < chain.size(); ++i)
    scratch.run("changing", settings_of(chain[i], 2 * (static_cast<int64_t>(i) + 1)), "tiny-moe.toml");
  expect_same_losses(scratch.losses("changing"), scratch.losses("alone"));
  std::string last = fmt::format("step-{:06}", steps);
  expect_same_weights(scratch.root() / "alone" / last, scratch.root() / "changing" / last);
}

TEST(ExpertMeshChanges, AreResumedFromOneAnother) {
  expect_resumed("expert-changes",
                 {{"one", {}},
                  {"ep4", {"mesh.dp=4", "mesh.ep=4", "mesh.zero=1"}},
                  {"etp2_ep2", {"mesh.tp=4", "mesh.etp=2", "mesh.ep=2"}},
                  {"cp_ep", {"mesh.cp=2", "mesh.dp=2", "mesh.ep=4", "mesh.zero=3"}},
                  {"pp", {"mesh.pp=2", "mesh.dp=2", "mesh.ep=2"}}},
                 8);
}

// Schedules of pairs among them.
TEST(ExpertMeshChanges, AreResumedByOtherSchedules) {
  const std::string dualpipe = "pipeline.schedule=dualpipe", dualpipev = "pipeline.schedule=dualpipev";
  expect_resumed("expert-schedules",
                 {{"combined", {"mesh.dp=2", "mesh.ep=2", "pipeline.schedule=combined-1f1b"}},
                  {"dualpipev", {"mesh.pp=2", "mesh.dp=2", "mesh.ep=2", "mesh.zero=1", dualpipev, "pipeline.chunks=2"}},
                  {"dualpipe",
                   {"mesh.pp=2", "mesh.tp=2", "mesh.etp=1", "mesh.ep=2", "mesh.zero=1", dualpipe, "pipeline.chunks=2"}},
                  {"one", {}}},
                 2);
}

// A case's name tells the sizes of its axes and its ZeRO stage, and its settings are those.
TEST(MeshCases, AreWhatTheirNamesSay) {
  std::vector<MeshCase> cases = meshes();
  for (const std::vector<MeshCase>& more : {expert_meshes(), dispatch_meshes()})
    cases.insert(cases.end(), more.begin(), more.end());
  for (const MeshCase& mesh : cases) {
    std::map<std::string, std::string> named, set;
    std::istringstream words(mesh.name);
    for (std::string word; std::getline(words, word, '_');)
      if (size_t digit = word.find_first_of("0123456789"); digit + 1 == word.size() && digit > 0)
        if (word != "h1") named[word.substr(0, digit)] = word.substr(digit);  // of the schedule zb-h1
    for (std::string_view axis : {"dp", "tp", "pp", "cp", "ep", "etp", "zero"})
      for (const std::string& setting : mesh.settings)
        if (std::string key = fmt::format("mesh.{}=", axis); setting.starts_with(key))
          set[std::string(axis)] = setting.substr(key.size());
    EXPECT_EQ(named, set) << mesh.name;
  }
}

// A schedule of one's own: GPipe on two ranks, written by hand.
TEST(MeshSchedule, TrainsByAScheduleFromAFile) {
  ScratchRun scratch("csv");
  std::string row_of_f, row_of_b;
  for (int m = 0; m < 8; ++m)
    row_of_f += fmt::format("F{},", m), row_of_b += fmt::format("B{}{}", m, m < 7 ? "," : "\n");
  write_file_atomically(scratch.root() / "schedule.csv", row_of_f + row_of_b + row_of_f + row_of_b);
  scratch.run("one", kCommon);
  std::vector<std::string> settings = kCommon;
  for (const std::string& setting : {std::string("mesh.pp=2"), std::string("pipeline.schedule=csv"),
                                     fmt::format("pipeline.file={}", (scratch.root() / "schedule.csv").string())})
    settings.push_back(setting);
  scratch.run("csv", settings);
  expect_same_losses(scratch.losses("csv"), scratch.losses("one"));
}

std::string case_name(const testing::TestParamInfo<OnMeshes::ParamType>& info) {
  std::string file = std::get<0>(info.param);
  return std::string(std::get<1>(info.param).name) + "_" + file.substr(5, file.find('.') - 5);
}

// Every mesh with one architecture, and with one of two others; any pair may be among the drawn configurations
// (tests/campaign/configurations.py).
std::vector<std::tuple<const char*, MeshCase>> models_on_meshes() {
  std::vector<std::tuple<const char*, MeshCase>> cases;
  bool even = false;
  for (const MeshCase& mesh : meshes()) {
    cases.emplace_back("tiny-llama.toml", mesh);
    cases.emplace_back((even = !even) ? "tiny-gpt2.toml" : "tiny-moe.toml", mesh);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Meshes, OnMeshes, testing::ValuesIn(models_on_meshes()), case_name);

INSTANTIATE_TEST_SUITE_P(ExpertMeshes, OnMeshes,
                         testing::Combine(testing::Values("tiny-moe.toml"), testing::ValuesIn(expert_meshes())),
                         case_name);

INSTANTIATE_TEST_SUITE_P(DispatchMeshes, OnMeshes,
                         testing::Combine(testing::Values("tiny-moe.toml"), testing::ValuesIn(dispatch_meshes())),
                         case_name);

}  // namespace
}  // namespace sextant
