// The known name a misspelt one was probably meant to be.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sextant {

// Edits (insert, delete, replace, swap neighbours) that turn one into the other.
int edit_distance(std::string_view a, std::string_view b);

// Nothing when all names are too far away to be a slip. Dotted names are also compared by their last part alone,
// which finds "optimizer.lr" for "train.lr".
std::optional<std::string_view> nearest(std::string_view name, std::span<const std::string_view> known);

// A hint: "did you mean train?", or of a name that was given in part, "did you mean h100-pcie or h100-sxm?". Empty when
// nothing is near.
std::string did_you_mean(std::string_view name, std::span<const std::string_view> known);
std::string did_you_mean(std::string_view name, std::span<const std::string> known);

}  // namespace sextant
