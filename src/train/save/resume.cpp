#include "train/save/resume.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/path_error.h"
#include "ckpt/checkpoints.h"
#include "ckpt/manifest.h"
#include "ckpt/model_directory.h"
#include "config/microbatches.h"
#include "config/schema.h"
#include "run/data_kind.h"
#include "train/save/run_checkpoint.h"
#include "train/save/share_hashing.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

// The checkpoints to try, best first. Several: those that follow stand in for one that is damaged.
std::vector<fs::path> candidates(const RunConfig& run, const fs::path& out) {
  std::vector<Checkpoint> own = list_checkpoints(out, kRunStateFile);
  std::vector<fs::path> found;
  if (run.checkpoint.resume.is_latest()) {
    for (auto at = own.rbegin(); at != own.rend(); ++at) found.push_back(at->path);
    return found;
  }
  std::string held = own.empty() ? "" : fmt::format("already holds a run, at step {}", own.back().step);
  if (run.checkpoint.resume.is_never()) {
    if (!own.empty())
      throw UserError({.place = out.string(),
                       .got = held,
                       .expected = "an empty directory for a new run",
                       .hint = "choose another --out, or remove this one"});
    return found;
  }
  fs::path named = find_model_directory(run.checkpoint.resume.path());
  bool inside = fs::weakly_canonical(named).parent_path() == fs::weakly_canonical(out);
  if (!own.empty() && !inside)
    throw UserError({.place = out.string(),
                     .got = held + fmt::format(", and {} is of another run", named.string()),
                     .expected = "a checkpoint of this directory, or an empty directory",
                     .hint = "checkpoint.resume=auto goes on with the run here; another --out starts a new branch"});
  return {named};
}

// Findings of the leader before any file is hashed.
struct FirstLook {
  std::vector<std::string> damage;
  Manifest to_hash;
  RunState state;
  bool could_be_read = true;  // what it finds is of the files, and not of a disk that did not answer
};

FirstLook first_look(const fs::path& checkpoint) {
  FirstLook look;
  try {
    look.state = read_run_state(checkpoint);
    std::optional<int64_t> named = step_of_checkpoint(checkpoint);
    if (named && *named != look.state.step)
      look.damage.push_back(fmt::format("{} is of step {}", kRunStateFile, look.state.step));
    fs::path manifest = checkpoint / kManifestFile;
    if (is_there(manifest)) {
      look.to_hash = parse_manifest(read_file(manifest), manifest.string());
      for (std::string& wrong : wrong_sizes(checkpoint, look.to_hash)) look.damage.push_back(std::move(wrong));
    } else if (look.state.identity) {
      look.damage.push_back(fmt::format("{} is missing", kManifestFile));
    }
  } catch (const UserError& error) {
    look.damage.push_back(error.complaints().front().text());
  } catch (const RunError& error) {
    look.damage.push_back(error.what());
    look.could_be_read = false;
  }
  if (!look.damage.empty()) look.to_hash.files.clear();
  return look;
}

// The same on every rank; the leader's first look, and everybody's hashing.
std::vector<std::string> damage_in(const fs::path& checkpoint, const FirstLook& look, HostGroup& group,
                                   ThreadTeam* team) {
  Manifest to_hash = parse_manifest(group.from_leader(manifest_json(look.to_hash)), kManifestFile);
  std::vector<std::string> damage = wrong_content(checkpoint, to_hash, share_among(group, team));
  damage.insert(damage.begin(), look.damage.begin(), look.damage.end());
  return damage;
}

bool is_whole(const std::vector<std::string>& leaders_damage, HostGroup& group) {
  return group.from_leader(leaders_damage.empty() ? "whole" : "damaged") == "whole";
}

void compare_identity(const ResumeRequest& request, const fs::path& checkpoint, const RunIdentity& saved) {
  auto differs = [&](IdentityPart part, const std::string& before, const std::string& now) {
    return !before.empty() && !now.empty() && before != now && !request.run.checkpoint.accepts_changed(part);
  };
  auto refuse = [&](std::string_view key, std::string_view what) {
    throw UserError(
        {.place = request.run.place_of(key),
         .got = fmt::format("the {} of this run is not what {} was trained with", what, checkpoint.string()),
         .expected = fmt::format("the same {} as before", what),
         .hint = fmt::format("checkpoint.accept_changed={} goes on with the other one", what)});
  };
  if (differs(IdentityPart::tokenizer, saved.tokenizer, request.identity.tokenizer))
    refuse("data.tokenizer", "tokenizer");
  // Text under another tokenizer is another sequence of ids; that has been agreed to already.
  bool follows = saved.tokenizer != request.identity.tokenizer;
  if (!follows && differs(IdentityPart::data, saved.data, request.identity.data)) refuse("data.train", "data");
}

std::string value_of(const ConfigValues& config, std::string_view key) {
  auto at = config.find(key);
  return at == config.end() ? "" : at->second;
}

// A run resumes from its checkpoint: what another model.from names would be in its config.toml and nowhere else.
void compare_source_model(const ResumeRequest& request, const fs::path& checkpoint, const RunIdentity& saved) {
  constexpr std::string_view kKey = "model.from";
  const RunConfig& run = request.run;
  if (run.checkpoint.accepts_changed(IdentityPart::model)) return;
  std::string before = value_of(saved.config, kKey), now = value_of(request.identity.config, kKey);
  bool hashed = saved.model && request.identity.model;
  if (hashed ? *saved.model == *request.identity.model : before == now) return;
  auto named = [](const std::string& from) { return from.empty() ? "drawn weights" : from; };
  throw UserError(
      {.place = run.place_of(kKey),
       .got =
           before == now
               ? fmt::format("the weights in {} are not those that the run in {} began from", now, checkpoint.string())
               : fmt::format("{}, but the run in {} began from {}", named(now), checkpoint.string(), named(before)),
       .expected = before == now    ? "the same weights as before"
                   : before.empty() ? fmt::format("no {}", kKey)
                                    : fmt::format("{} = {}", kKey, before),
       .hint =
           "choose another --out to start from other weights; checkpoint.accept_changed=model goes on with those of "
           "the checkpoint"});
}

// The seed chooses the documents that are held out: with another one, documents that were trained on are measured.
void compare_split(const ResumeRequest& request, const RunIdentity& saved) {
  const RunConfig& run = request.run;
  bool by_documents = run.data.holds_out_documents() && !is_stories(run.data.train);
  auto seed = saved.config.find("train.seed"), fraction = saved.config.find("data.validation_fraction");
  bool began_so = fraction != saved.config.end() && fraction->second != "0";
  if (!by_documents || !began_so || seed == saved.config.end() || seed->second == std::to_string(run.train.seed))
    return;
  if (run.checkpoint.accepts_changed(IdentityPart::data)) return;
  throw UserError({.place = run.place_of("train.seed"),
                   .got = fmt::format("the run began with seed {}, which chose its validation documents", seed->second),
                   .expected = "the same seed",
                   .hint = "checkpoint.accept_changed=data goes on with other validation documents, of which most have "
                           "been trained on"});
}

// The bits depend on one rank's part of a microbatch and on how ranks that share a microbatch add up.
void compare_units(const ResumeRequest& request, const RunIdentity& saved) {
  if (!is_reproducible_on_meshes(request.run)) return;
  constexpr std::string_view kKeys[] = {"batch.microbatch", "mesh.tp", "mesh.cp", "mesh.context",
                                        "mesh.sequence_parallel"};
  auto mode = saved.config.find("train.reproducible");
  if (mode == saved.config.end() || mode->second != toml_text(std::string(word_of(Reproducible::mesh)))) return;
  for (const ConfigChange& change : changes_between(saved.config, request.identity.config))
    if (std::ranges::count(kKeys, change.key) > 0)
      throw UserError(
          {.place = request.run.place_of(change.key),
           .got = fmt::format("{}: train.reproducible = \"mesh\" holds for data-parallel, ZeRO and pipeline "
                              "layouts, not for this key",
                              change.text()),
           .expected = fmt::format("{}, with which the run began", change.before),
           .hint = "train.reproducible=none goes on with the other one, and other bits"});
}

// UserError where the run may not go on from what has this identity; else what of the config has changed since.
std::vector<ConfigChange> checked_changes(const ResumeRequest& request, const fs::path& place,
                                          const RunIdentity& saved) {
  compare_source_model(request, place, saved);
  compare_identity(request, place, saved);
  compare_split(request, saved);
  compare_units(request, saved);
  return changes_between(saved.config, request.identity.config);
}

[[noreturn]] void nothing_whole(const ResumeRequest& request, const fs::path& checkpoint,
                                const std::vector<std::string>& damage) {
  bool automatic = request.run.checkpoint.resume.is_latest();
  throw UserError({.place = automatic ? request.out.string() : checkpoint.string(),
                   .got = automatic ? "no checkpoint here is whole"
                                    : fmt::format("the checkpoint is damaged: {}", fmt::join(damage, "; ")),
                   .expected = "a checkpoint as it was written",
                   .hint = automatic ? "restore one from a copy, or start in another --out"
                                     : "checkpoint.resume=auto takes the newest one that is whole"});
}

}  // namespace

bool starts_afresh(const RunConfig& run, const fs::path& out) {
  if (run.checkpoint.resume.is_never()) return true;
  return run.checkpoint.resume.is_latest() && list_checkpoints(out, kRunStateFile).empty();
}

void keep_validation_split(RunConfig& run, const fs::path& out, const std::function<void(std::string_view line)>& say) {
  constexpr std::string_view kKey = "data.validation_split";
  if (!run.data.holds_out_part() || is_stories(run.data.train)) return;
  for (const fs::path& checkpoint : candidates(run, out)) {
    RunState state;
    try {
      state = read_run_state(checkpoint);
    } catch (const std::runtime_error&) {
      continue;  // damaged: find_resume_point says so, and takes another
    }
    auto saved = state.identity ? state.identity->config.find(kKey) : ConfigValues::iterator();
    const std::string by_documents = toml_text(std::string(word_of(ValidationSplit::documents)));
    const bool documents = state.identity && saved->second == by_documents;
    const ValidationSplit began = documents ? ValidationSplit::documents : ValidationSplit::tail;
    if (run.data.validation_split == began) return;
    if (!run.given(kKey)) {
      run.data.validation_split = began;
      run.places.emplace(kKey, checkpoint.string());
      say(fmt::format("validation: this run began with {} held out, and keeps to it",
                      documents ? "a sample of documents" : "the last tokens of its files"));
    } else if (!run.checkpoint.accepts_changed(IdentityPart::data)) {
      throw UserError(
          {.place = run.place_of(kKey),
           .got = fmt::format("{}, but the run began with {}", word_of(run.data.validation_split), word_of(began)),
           .expected = std::string(word_of(began)),
           .hint = "checkpoint.accept_changed=data goes on with the other; most of what it holds out has "
                   "been trained on"});
    }
    return;
  }
}

ResumePoint find_resume_point(const ResumeRequest& request, HostGroup& processes) {
  std::vector<fs::path> left;
  if (processes.leads()) left = candidates(request.run, request.out);
  std::vector<std::string> damage;
  fs::path last;
  bool all_could_be_read = true;
  for (size_t i = 0;; ++i) {
    fs::path checkpoint = processes.from_leader(i < left.size() ? left[i].string() : "");
    if (checkpoint.empty() && i > 0 && processes.leads() && !all_could_be_read)
      throw RunError(last.string(), fmt::format("no checkpoint could be read this time: {}", fmt::join(damage, "; ")));
    if (checkpoint.empty() && i > 0 && processes.leads()) nothing_whole(request, last, damage);
    if (checkpoint.empty()) return {};
    FirstLook look;
    if (processes.leads()) look = first_look(checkpoint);
    all_could_be_read = all_could_be_read && look.could_be_read;
    damage = damage_in(checkpoint, look, processes, &request.team);
    last = checkpoint;
    if (!is_whole(damage, processes)) {
      request.say(fmt::format("{} is damaged: {}", checkpoint.string(), fmt::join(damage, "; ")));
      continue;
    }
    ResumePoint point{.checkpoint = checkpoint, .step = look.state.step, .changes = {}, .local = {}};
    if (!processes.leads()) return point;
    if (!look.state.identity) {
      request.say(fmt::format("{} was written by an earlier version: its files, tokenizer and data are not checked",
                              checkpoint.string()));
      return point;
    }
    point.changes = checked_changes(request, checkpoint, *look.state.identity);
    return point;
  }
}

std::optional<ResumePoint> find_local_resume_point(const ResumeRequest& request, const LocalSearch& search,
                                                   HostGroup& processes) {
  if (search.folder.empty() || !request.run.checkpoint.resume.is_latest()) return std::nullopt;
  std::optional<Checkpoint> durable;
  if (processes.leads()) durable = latest_checkpoint(request.out, kRunStateFile);
  std::vector<int64_t> oldest{durable ? durable->step : 0};
  if (!processes.leads()) oldest[0] = 0;
  processes.sum(oldest);
  LocalSearch wanted = search;
  wanted.oldest = std::max<int64_t>(1, oldest[0]);
  std::optional<LocalPoint> found = find_local_point(wanted, processes);
  if (!found) return std::nullopt;
  ResumePoint point{.checkpoint = processes.from_leader(durable ? durable->path.string() : ""),
                    .step = found->step,
                    .changes = {},
                    .local = std::move(found)};
  if (processes.leads() && point.local->state.identity)
    point.changes = checked_changes(request, search.folder, *point.local->state.identity);
  return point;
}

fs::path first_whole(const std::vector<fs::path>& wanted, HostGroup& group) {
  for (size_t i = 0;; ++i) {
    fs::path checkpoint = group.from_leader(i < wanted.size() ? wanted[i].string() : "");
    if (checkpoint.empty()) return {};
    FirstLook look;
    if (group.leads()) look = first_look(checkpoint);
    if (is_whole(damage_in(checkpoint, look, group, nullptr), group)) return checkpoint;
  }
}

}  // namespace sextant
