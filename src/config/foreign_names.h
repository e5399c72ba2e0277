// The names of other programs for what our keys do: docs/glossary.md, compiled in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

struct ForeignName {
  std::vector<std::string> keys;  // ours, as config keys; empty where an option does it
  std::string ours;               // the whole cell of the glossary, as text: "batch.sequences, of all ranks …"
};

enum class ForeignMatch : uint8_t { whole, last_part };

// Our equivalent of another program's `name`: "--global-batch-size", "gradient_accumulation_steps", "training.steps",
// with dashes or underscores; last_part finds num_train_epochs for train.num_train_epochs. `ours` is empty when the
// name is unknown.
ForeignName find_foreign_name(std::string_view name, ForeignMatch match = ForeignMatch::whole);

// "here it is optimizer.lr"; empty when the name is unknown.
std::string answer_for_foreign_name(std::string_view name, ForeignMatch match = ForeignMatch::whole);

}  // namespace sextant
