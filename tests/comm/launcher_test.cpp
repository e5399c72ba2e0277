// Who started the program, from the variables that launchers set.
#include "comm/launcher.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <string>

namespace sextant {
namespace {

class Launcher : public testing::Test {
 protected:
  static constexpr std::array kNames{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK",
                                     "SLURM_STEP_NUM_TASKS"};

  void SetUp() override {
    for (size_t i = 0; i < kNames.size(); ++i) {
      if (const char* value = std::getenv(kNames[i])) before_[i] = value;
      unsetenv(kNames[i]);
    }
  }
  void TearDown() override {
    for (size_t i = 0; i < kNames.size(); ++i)
      before_[i] ? setenv(kNames[i], before_[i]->c_str(), 1) : unsetenv(kNames[i]);
  }

 private:
  std::array<std::optional<std::string>, kNames.size()> before_;
};

TEST_F(Launcher, NoneMeansOneProcess) {
  EXPECT_EQ(launched_processes(), 1);
  EXPECT_FALSE(running_under_mpi());
}

TEST_F(Launcher, EachKindIsSeen) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    setenv(name, "4", 1);
    EXPECT_EQ(launched_processes(), 4) << name;
    EXPECT_TRUE(running_under_mpi()) << name;
    unsetenv(name);
  }
}

TEST_F(Launcher, OneProcessUnderALauncherIsOneProcess) {
  setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
  setenv("PMIX_RANK", "0", 1);
  EXPECT_FALSE(running_under_mpi());
}

TEST_F(Launcher, ALauncherThatDoesNotCountIsOneAllTheSame) {
  setenv("PMIX_RANK", "0", 1);
  EXPECT_EQ(launched_processes(), 0);
  EXPECT_TRUE(running_under_mpi());
}

}  // namespace
}  // namespace sextant
