// Where a run resumes from: the newest checkpoint that is whole, or the one that is named; and whether it may.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "base/threads.h"
#include "comm/host_group.h"
#include "config/run_config.h"
#include "run/run_identity.h"
#include "train/save/local_resume.h"

namespace sextant {

struct ResumePoint {
  std::filesystem::path checkpoint;   // empty: a new run
  int64_t step = 0;                   // known to the leader, as is what follows
  std::vector<ConfigChange> changes;  // of the config since it was written
  // Set where weights and states come from local checkpoints of this step; `checkpoint` is then the durable one before
  // it, for the files that describe the model.
  std::optional<LocalPoint> local = {};
};

struct ResumeRequest {
  const RunConfig& run;
  const std::filesystem::path& out;
  const RunIdentity& identity;  // the leader's is the one that counts
  ThreadTeam& team;             // to hash with
  const std::function<void(std::string_view line)>& say;
};

// Whether there is nothing to resume from: the weights are drawn, or those of model.from. For checks before any work is
// done.
bool starts_afresh(const RunConfig& run, const std::filesystem::path& out);

// Sets data.validation_split to what the run began with, where there is one to resume and the config does not say
// otherwise: tokens that were held out stay so. UserError where the config asks for another split, and
// checkpoint.accept_changed does not have "data". Writes nothing.
void keep_validation_split(RunConfig& run, const std::filesystem::path& out,
                           const std::function<void(std::string_view line)>& say);

// Called by all processes; the leader decides, all share the work of hashing. Writes nothing. UserError when nothing
// whole is there to go on from, or the tokenizer or the data are others than the checkpoint's.
ResumePoint find_resume_point(const ResumeRequest& request, HostGroup& processes);

// The same from local checkpoints, where those of all ranks are there and of no earlier step than the newest durable
// one; nothing where not. Durable ones are not read.
std::optional<ResumePoint> find_local_resume_point(const ResumeRequest& request, const LocalSearch& search,
                                                   HostGroup& processes);

// The first of these checkpoints that is whole; empty where none is. Called by all of the group; the leader's list
// counts.
std::filesystem::path first_whole(const std::vector<std::filesystem::path>& wanted, HostGroup& group);

}  // namespace sextant
