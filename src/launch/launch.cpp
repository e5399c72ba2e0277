#include "launch/launch.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "launch/launchers.h"
#include "launch/quote.h"

namespace sextant {

namespace {

[[noreturn]] void refuse(std::string field, std::string got, std::string expected, std::string hint = "") {
  throw UserError(Complaint{
      .place = "launch: " + field, .got = std::move(got), .expected = std::move(expected), .hint = std::move(hint)});
}

void check_counts(const LaunchRequest& r) {
  if (r.world_size < 1) refuse("world size", fmt::format("{}", r.world_size), "at least 1");
  if (r.ranks_per_node < 1) refuse("ranks per node", fmt::format("{}", r.ranks_per_node), "at least 1");
  if (r.gpus_per_rank < 0) refuse("GPUs per rank", fmt::format("{}", r.gpus_per_rank), "0 or more");
  if (r.cpus_per_rank < 1) refuse("CPUs per rank", fmt::format("{}", r.cpus_per_rank), "at least 1");
  if (r.world_size > r.ranks_per_node && r.world_size % r.ranks_per_node != 0)
    refuse("ranks per node", fmt::format("{} does not divide the world of {} ranks", r.ranks_per_node, r.world_size),
           "a divisor, so that all nodes are alike");
}

// Names become job names, pod names and batch options, where quoting differs from place to place or is not to be had.
void check_name(std::string field, const std::string& name, const LaunchRequest& r) {
  auto fits = [&](unsigned char c) {
    bool letter = r.launcher == Launcher::kubernetes ? std::islower(c) : std::isalpha(c);
    return letter || std::isdigit(c) || c == '-' || (c == '_' && r.launcher != Launcher::kubernetes);
  };
  bool ends_well = !name.empty() && std::isalnum(static_cast<unsigned char>(name.front())) &&
                   std::isalnum(static_cast<unsigned char>(name.back()));
  constexpr size_t kLongest = 40;  // a pod's name adds to it, and may have 63 characters
  if (ends_well && name.size() <= kLongest && std::ranges::all_of(name, fits)) return;
  refuse(field, fmt::format("\"{}\"", name),
         fmt::format("up to {} {}letters, digits and dashes, none of them at an end", kLongest,
                     r.launcher == Launcher::kubernetes ? "small " : ""));
}

void check_word(std::string field, const std::string& word) {
  if (std::ranges::any_of(word, [](unsigned char c) { return c < ' ' || c == 0x7f; }))
    refuse(field, "there is a control character in it", "one line of text");
  if (word.starts_with('-'))
    refuse(field, fmt::format("\"{}\" reads as an option", word), "a first letter other than -");
}

void check_launcher(const LaunchRequest& r) {
  if (!r.partition.empty() && r.launcher != Launcher::slurm)
    refuse("partition", "only Slurm has partitions", "no partition");
  if (!r.hostfile.empty() && (r.launcher != Launcher::mpi || r.remote_start == RemoteStart::without_ssh))
    refuse("hostfile", "only mpirun over ssh reads one", "no hostfile", "Slurm and Kubernetes know their hosts.");
  if (r.launcher == Launcher::kubernetes && r.container.empty())
    refuse("container", "no image is given", "--container IMAGE", "Kubernetes runs nothing outside a container.");
  if (r.launcher == Launcher::mpi && r.remote_start == RemoteStart::ssh && !r.container.empty() &&
      r.container_runtime == ContainerRuntime::pyxis)
    refuse("container", "pyxis is a part of Slurm, mpirun does not know it", "the runtime apptainer");
}

}  // namespace

int nodes(const LaunchRequest& r) {
  return (r.world_size + r.ranks_per_node - 1) / r.ranks_per_node;
}

int ranks_on_a_node(const LaunchRequest& r) {
  return std::min(r.world_size, r.ranks_per_node);
}

std::vector<std::string> program_words(const LaunchRequest& r) {
  std::vector<std::string> words = {r.binary, "train", r.config};
  words.insert(words.end(), r.overrides.begin(), r.overrides.end());
  return words;
}

std::vector<std::string> apptainer_words(const LaunchRequest& r) {
  if (r.container.empty() || r.container_runtime != ContainerRuntime::apptainer) return {};
  std::vector<std::string> words = {"apptainer", "exec"};
  if (r.gpus_per_rank > 0) words.push_back("--nv");
  for (const char* option : {"--bind", "--pwd"}) {
    words.push_back(option);
    words.push_back("\"$PWD\"");
  }
  words.push_back(shell_quoted(r.container));
  return words;
}

std::string launch_text(const LaunchRequest& request) {
  check_counts(request);
  check_name("name", request.name, request);
  if (!request.partition.empty()) check_name("partition", request.partition, request);
  check_word("binary", request.binary);
  check_word("config", request.config);
  check_word("container", request.container);
  check_word("hostfile", request.hostfile);
  for (const std::string& override : request.overrides) check_word("overrides", override);
  if (request.binary.empty()) refuse("binary", "no path is given", "the path of sextant");
  if (request.config.empty()) refuse("config", "no path is given", "the path of a config file");
  check_launcher(request);
  switch (request.launcher) {
    case Launcher::slurm:
      return slurm_text(request);
    case Launcher::mpi:
      return mpi_text(request);
    case Launcher::kubernetes:
      return kubernetes_text(request);
  }
  BUG("launcher {}", static_cast<int>(request.launcher));
}

}  // namespace sextant
