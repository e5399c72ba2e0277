// Collects what is wrong with a config, so that all of it is reported together. Inside config/ only.
#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/run_config.h"

namespace sextant {

class Complaints {
 public:
  void add(Complaint complaint) { list_.push_back(std::move(complaint)); }
  void add(const std::vector<Complaint>& more) { list_.insert(list_.end(), more.begin(), more.end()); }

  // A key whose value could not be read: what would follow from it is not worth saying.
  void distrust(std::string_view key) { distrusted_.emplace(key); }
  bool trusts(std::string_view key) const { return !distrusted_.contains(key); }

  // A complaint about how keys go together, placed at the first of them that was given. Dropped when one of them
  // could not be read.
  void add(const RunConfig& run, const std::vector<std::string>& keys, Complaint complaint) {
    const std::string* blamed = &keys.front();
    for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
      if (!trusts(*key)) return;
      if (run.given(*key)) blamed = &*key;
    }
    complaint.place = run.place_of(*blamed);
    list_.push_back(std::move(complaint));
  }

  const std::vector<Complaint>& list() const { return list_; }
  void throw_if_any() const {
    if (!list_.empty()) throw UserError(list_);
  }

 private:
  std::vector<Complaint> list_;
  std::set<std::string, std::less<>> distrusted_;
};

}  // namespace sextant
