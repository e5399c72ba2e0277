// Messages about a directory that is given as a model and holds none.
#include "ckpt/model_directory.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "scratch.h"

namespace sextant {
namespace {

using ModelDirectory = Scratch;

TEST_F(ModelDirectory, AnAdapterIsNotAModel) {
  write_text(root / "adapter_config.json", R"({"peft_type": "LORA", "base_model_name_or_path": "owner/base", "r": 8})");
  try {
    find_model_directory(root);
    FAIL() << "accepted";
  } catch (const UserError& error) {
    const std::string said = error.what();
    for (const char* part : {"an adapter (LORA) of owner/base, without that model's weights", "merge_and_unload"})
      EXPECT_NE(said.find(part), std::string::npos) << said;
  }
  write_text(root / "config.json", "{}");
  EXPECT_EQ(find_model_directory(root), root);
}

}  // namespace
}  // namespace sextant
