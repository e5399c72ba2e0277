// The JSON schema of the config beside a validator that is not ours, where Python has one.
#include <gtest/gtest.h>

#include <cstdlib>

#include "checkout.h"
#include "command.h"
#include "expectations.h"

namespace sextant {
namespace {

constexpr std::string_view kValidate = R"py(
import json, sys, tomllib
from pathlib import Path
import jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
files = sorted(Path(sys.argv[2]).rglob("*.toml"))
wrong = [str(f) for f in files if not validator.is_valid(tomllib.load(open(f, "rb")))]
refused = [{"model": {"hiden": 1}}, {"device": "gpu"}, {"mesh": {"tp": 0}}, {"train": {"steps": "ten"}},
           {"model": {"rope_scaling": {"factor": 0.5}}}, {"data": {"train": [1]}}]
accepted = [case for case in refused if validator.is_valid(case)]
print(len(files), "files", "wrong:", wrong, "accepted:", accepted)
)py";

TEST(SchemaVerb, AgreesWithJsonschema) {
  if (std::system("python3 -c 'import tomllib, jsonschema' > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "Python's tomllib or jsonschema is not installed";
  ScratchPlace place("schema");
  write_text(place / "validate.py", kValidate);
  ASSERT_EQ(run_command("schema > " + place / "schema.json").code, 0);
  Outcome outcome = run_command(fmt::format("--version > /dev/null; python3 {} {} {}/configs", place / "validate.py",
                                            place / "schema.json", checkout::kSources));
  EXPECT_NE(outcome.output.find("files wrong: [] accepted: []"), std::string::npos) << outcome.output;
  EXPECT_FALSE(outcome.output.starts_with("0 files")) << outcome.output;
}

}  // namespace
}  // namespace sextant
