// A change of a question: "machine=b200", "network=x2", "price=3", "devices=128", or a key of the config,
// "batch.seq=16384".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "answers/asked_run.h"

namespace sextant {

struct QuestionChange {
  std::string what, value;
  std::string text() const { return what + "=" + value; }
};

// "batch.seq=8192,16384" is two. UserError names `place` for what is no change.
std::vector<QuestionChange> changes_of(const std::vector<std::string>& texts, std::string_view place);

// A question with a change made to it.
struct ChangedQuestion {
  AskedRun asked;
  AskedPlace place;
  int64_t devices = 1;
  std::string remark;  // what follows from the change, such as another number of sequences; or empty
};

struct ChangeableQuestion {
  std::string model;
  std::vector<std::string> overrides;
  const AskedPlace& place;
  int64_t devices = 1;
};

// UserError for a change that cannot be made. Another batch.seq keeps the tokens of a step.
ChangedQuestion with_change(const ChangeableQuestion& question, const QuestionChange& change);

// The override that gives the model positions for this sequence length: "model.max_seq=16384". Empty where the model
// has them already or cannot have them.
std::string positions_for(const ModelSpec& spec, int64_t seq);

// Of a machine with a network beyond its node: "x2" is twice as fast, "400" so many GB/s of a node.
Machine with_network(Machine machine, const std::string& value);

}  // namespace sextant
