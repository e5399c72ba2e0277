// Faults as text, and the page that lists them.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "checkout.h"
#include "train/faults/fault.h"

namespace sextant {
namespace {

TEST(FaultText, IsRead) {
  Fault kill = parse_fault("kill@30:1", "--inject"), slow = parse_fault("slow=200@7", "--inject");
  EXPECT_EQ(kill, (Fault{.kind = FaultKind::is_killed, .step = 30, .rank = 1, .text = "kill@30:1"}));
  EXPECT_EQ(slow, (Fault{.kind = FaultKind::is_slow, .step = 7, .rank = 0, .amount = 200, .text = "slow=200@7"}));
  EXPECT_EQ(parse_fault("disk_full@2", "--inject").amount, 1);
  EXPECT_EQ(parse_fault("nan_op=layers.7.mlp.gelu@123:2", "--inject").op, "layers.7.mlp.gelu");
}

TEST(FaultText, IsRefused) {
  for (const char* text :
       {"", "kill", "kill@", "kill@0", "kill@-1", "kill@3:", "kill@3:-1", "kill@3:1:1", "kill=2@3", "slow=@3",
        "slow=0@3", "nan_op@3", "nan_op=@3", "fall@3", "@3", "kill@3x", "kill@99999999999999999999"})
    EXPECT_THROW(parse_fault(text, "--inject"), UserError) << text;
}

TEST(FaultText, EveryKindIsInTheTableOfRunning) {
  std::string page = read_file(fmt::format("{}/docs/running.md", checkout::kSources));
  for (const FaultKindInfo& info : fault_kinds()) {
    std::string name(info.name);
    if (!info.unit.empty()) name += fmt::format("={}", info.unit);
    EXPECT_NE(page.find(fmt::format("| `{}` | {} |", name, info.effect)), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace sextant
