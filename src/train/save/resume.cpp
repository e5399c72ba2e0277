#include "train/save/resume.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "ckpt/checkpoints.h"
#include "ckpt/manifest.h"
#include "ckpt/model_directory.h"
#include "train/save/run_checkpoint.h"
#include "train/save/share_hashing.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

// The checkpoints to try, best first. Several: those that follow stand in for one that is damaged.
std::vector<fs::path> candidates(const RunConfig& run, const fs::path& out) {
  std::vector<Checkpoint> own = list_checkpoints(out, kRunStateFile);
  std::vector<fs::path> found;
  if (run.checkpoint.resume == "auto") {
    for (auto at = own.rbegin(); at != own.rend(); ++at) found.push_back(at->path);
    return found;
  }
  std::string held = own.empty() ? "" : fmt::format("already holds a run, at step {}", own.back().step);
  if (run.checkpoint.resume == "never") {
    if (!own.empty())
      throw UserError({.place = out.string(),
                       .got = held,
                       .expected = "an empty directory for a new run",
                       .hint = "choose another --out, or remove this one"});
    return found;
  }
  fs::path named = find_model_directory(run.checkpoint.resume);
  bool inside = fs::weakly_canonical(named).parent_path() == fs::weakly_canonical(out);
  if (!own.empty() && !inside)
    throw UserError({.place = out.string(),
                     .got = held + fmt::format(", and {} is of another run", named.string()),
                     .expected = "a checkpoint of this directory, or an empty directory",
                     .hint = "checkpoint.resume=auto goes on with the run here; another --out starts a new branch"});
  return {named};
}

// What the leader finds before anything is hashed.
struct FirstLook {
  std::vector<std::string> damage;
  Manifest to_hash;
  RunState state;
};

FirstLook first_look(const fs::path& checkpoint) {
  FirstLook look;
  try {
    look.state = read_run_state(checkpoint);
    std::optional<int64_t> named = step_of_checkpoint(checkpoint);
    if (named && *named != look.state.step)
      look.damage.push_back(fmt::format("{} is of step {}", kRunStateFile, look.state.step));
    std::error_code ignored;
    fs::path manifest = checkpoint / kManifestFile;
    if (fs::exists(manifest, ignored)) {
      look.to_hash = parse_manifest(read_file(manifest), manifest.string());
      for (std::string& wrong : wrong_sizes(checkpoint, look.to_hash)) look.damage.push_back(std::move(wrong));
    } else if (look.state.identity) {
      look.damage.push_back(fmt::format("{} is missing", kManifestFile));
    }
  } catch (const UserError& error) {
    look.damage.push_back(error.complaints().front().text());
  }
  if (!look.damage.empty()) look.to_hash.files.clear();
  return look;
}

void compare_identity(const ResumeRequest& request, const fs::path& checkpoint, const RunIdentity& saved) {
  const std::vector<std::string>& accepted = request.run.checkpoint.accept_changed;
  auto differs = [&](std::string_view what, const std::string& before, const std::string& now) {
    return !before.empty() && !now.empty() && before != now && std::ranges::count(accepted, what) == 0;
  };
  auto refuse = [&](std::string_view key, std::string_view what) {
    throw UserError(
        {.place = request.run.place_of(key),
         .got = fmt::format("the {} of this run is not what {} was trained with", what, checkpoint.string()),
         .expected = fmt::format("the same {} as before", what),
         .hint = fmt::format("checkpoint.accept_changed={} goes on with the other one", what)});
  };
  if (differs("tokenizer", saved.tokenizer, request.identity.tokenizer)) refuse("data.tokenizer", "tokenizer");
  // Text under another tokenizer is another sequence of ids; that has been agreed to already.
  bool follows = saved.tokenizer != request.identity.tokenizer;
  if (!follows && differs("data", saved.data, request.identity.data)) refuse("data.train", "data");
}

[[noreturn]] void nothing_whole(const ResumeRequest& request, const fs::path& checkpoint,
                                const std::vector<std::string>& damage) {
  bool automatic = request.run.checkpoint.resume == "auto";
  throw UserError({.place = automatic ? request.out.string() : checkpoint.string(),
                   .got = automatic ? "no checkpoint here is whole"
                                    : fmt::format("the checkpoint is damaged: {}", fmt::join(damage, "; ")),
                   .expected = "a checkpoint as it was written",
                   .hint = automatic ? "restore one from a copy, or start in another --out"
                                     : "checkpoint.resume=auto takes the newest one that is whole"});
}

}  // namespace

bool starts_afresh(const RunConfig& run, const fs::path& out) {
  if (run.checkpoint.resume == "never") return true;
  return run.checkpoint.resume == "auto" && list_checkpoints(out, kRunStateFile).empty();
}

ResumePoint find_resume_point(const ResumeRequest& request, HostGroup& processes) {
  std::vector<fs::path> left;
  if (processes.leads()) left = candidates(request.run, request.out);
  std::vector<std::string> damage;
  fs::path last;
  for (size_t i = 0;; ++i) {
    fs::path checkpoint = processes.from_leader(i < left.size() ? left[i].string() : "");
    if (checkpoint.empty() && i > 0 && processes.leads()) nothing_whole(request, last, damage);
    if (checkpoint.empty()) return {};
    FirstLook look;
    if (processes.leads()) look = first_look(checkpoint);
    Manifest to_hash = parse_manifest(processes.from_leader(manifest_json(look.to_hash)), kManifestFile);
    damage = wrong_content(checkpoint, to_hash, share_among(processes, &request.team));
    damage.insert(damage.begin(), look.damage.begin(), look.damage.end());
    bool whole = processes.from_leader(damage.empty() ? "whole" : "damaged") == "whole";
    last = checkpoint;
    if (!whole) {
      request.say(fmt::format("{} is damaged: {}", checkpoint.string(), fmt::join(damage, "; ")));
      continue;
    }
    ResumePoint point{.checkpoint = checkpoint, .step = look.state.step, .changes = {}};
    if (!processes.leads()) return point;
    if (!look.state.identity) {
      request.say(fmt::format("{} was written by an earlier version: its files, tokenizer and data are not checked",
                              checkpoint.string()));
      return point;
    }
    compare_identity(request, checkpoint, *look.state.identity);
    point.changes = changes_between(look.state.identity->config, request.identity.config);
    return point;
  }
}

}  // namespace sextant
