// How a long benchmark is stopped, and reports its progress.
#pragma once

#include <functional>
#include <string>

namespace sextant {

// Asked between measurements; true: end now and report what there is.
using StopAsked = std::function<bool()>;
// A line about what is being measured, which takes the place of the one before.
using Progress = std::function<void(const std::string& line)>;

struct Watch {
  StopAsked stop = [] { return false; };
  Progress say = [](const std::string&) {};
};

}  // namespace sextant
