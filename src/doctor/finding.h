// Finding: what one check found on one machine, and what to do about it. Fact: something that machines of one run
// should have in common, compared between them in ranks.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

enum class Health : uint8_t {
  ok,
  warning,  // it will train, slower or at more risk than need be
  failure,  // it will not train, or what it computes cannot be trusted
  unknown,  // could not be read
};

std::string_view name_of(Health health);  // "ok"

struct Finding {
  std::string group;  // "memory", "gpu": findings are printed group by group
  std::string name;   // "open files"
  Health health = Health::ok;
  std::string found;       // "1,048,576"
  std::string advice;      // what to do; empty when all is well
  std::string where = {};  // "rank 3 (node7)"; empty: on every rank there is
};

struct Fact {
  std::string name;   // "driver"
  std::string value;  // "570.86.15"
};

// Results of the checks of one machine.
struct Examination {
  std::vector<Finding> findings;
  std::vector<Fact> facts;

  void ok(std::string group, std::string name, std::string found) {
    findings.push_back({std::move(group), std::move(name), Health::ok, std::move(found), {}, {}});
  }
  void unknown(std::string group, std::string name, std::string why) {
    findings.push_back({std::move(group), std::move(name), Health::unknown, std::move(why), {}, {}});
  }
  void add(Finding finding) { findings.push_back(std::move(finding)); }
  void fact(std::string name, std::string value) { facts.push_back({std::move(name), std::move(value)}); }
};

}  // namespace sextant
