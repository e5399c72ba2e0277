#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "launch/launchers.h"

namespace sextant {

namespace {

std::string in_quotes(const std::string& text) {
  return fmt::format("\"{}\"", text);
}

void check_counts(const LaunchRequest& r) {
  if (r.world_size < 1) refuse_request("world size", fmt::format("{}", r.world_size), "at least 1");
  if (r.ranks_per_node < 1) refuse_request("ranks per node", fmt::format("{}", r.ranks_per_node), "at least 1");
  if (r.gpus_per_rank < 0) refuse_request("GPUs per rank", fmt::format("{}", r.gpus_per_rank), "0 or more");
  if (r.cpus_per_rank < 0) refuse_request("CPUs per rank", fmt::format("{}", r.cpus_per_rank), "0 or more");
  if (r.world_size > r.ranks_per_node && r.world_size % r.ranks_per_node != 0)
    refuse_request("ranks per node",
                   fmt::format("{} does not divide the world of {} ranks", r.ranks_per_node, r.world_size),
                   "a divisor, so that all nodes are alike");
  // mpirun outside a container hands out nothing: a rank takes the GPU of its place on the node.
  bool hands_out_gpus =
      r.launcher != Launcher::mpi || r.remote_start == RemoteStart::without_ssh || !r.container.empty();
  if (r.needs_gpus && r.gpus_per_rank == 0 && hands_out_gpus)
    refuse_request("GPUs per rank", "0, but the config has device = \"cuda\"", "at least 1",
                   "Add --gpus-per-rank 1, or device=cpu to train without GPUs.");
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
  refuse_request(field, in_quotes(name),
                 fmt::format("up to {} {}letters, digits and dashes, none of them at an end", kLongest,
                             r.launcher == Launcher::kubernetes ? "small " : ""));
}

void check_word(std::string field, const std::string& word) {
  if (std::ranges::any_of(word, [](unsigned char c) { return c < ' ' || c == 0x7f; }))
    refuse_request(field, "there is a control character in it", "one line of text");
  if (word.starts_with('-'))
    refuse_request(field, fmt::format("\"{}\" reads as an option", word), "a first letter other than -");
}

// A value on a line that begins with #SBATCH, where it stands within double quotes.
void check_batch_value(std::string field, const std::string& value) {
  check_word(field, value);
  if (value.find_first_of("\"'\\`$") != std::string::npos)
    refuse_request(field, in_quotes(value), "a text without quotes, backslashes and $");
}

bool kubernetes_name(const std::string& name, size_t longest, bool dots) {
  auto fits = [&](unsigned char c) { return std::islower(c) || std::isdigit(c) || c == '-' || (dots && c == '.'); };
  auto end_fits = [](unsigned char c) { return std::islower(c) || std::isdigit(c); };
  return !name.empty() && name.size() <= longest && std::ranges::all_of(name, fits) && end_fits(name.front()) &&
         end_fits(name.back());
}

void check_kubernetes_name(std::string field, const std::string& name) {
  if (!name.empty() && !kubernetes_name(name, 253, true))
    refuse_request(field, in_quotes(name), "small letters, digits, dashes and dots, a letter or digit at both ends");
}

// "KEY=VALUE", as labels of nodes are written: kubernetes.io/arch=arm64.
void check_label(const std::string& label) {
  auto fits = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; };
  size_t equals = label.find('=');
  if (equals != std::string::npos && equals > 0) {
    std::string key = label.substr(0, equals), value = label.substr(equals + 1);
    auto slashes = std::erase(key, '/');
    if (slashes <= 1 && !key.empty() && value.size() <= 63 && std::ranges::all_of(key, fits) &&
        std::ranges::all_of(value, fits))
      return;
  }
  refuse_request("node selector", in_quotes(label), "KEY=VALUE, a label of the nodes",
                 "kubectl get nodes --show-labels lists them.");
}

void check_slurm(const SlurmOptions& o, const LaunchRequest& r) {
  if (!o.partition.empty()) check_name("partition", o.partition, r);
  check_batch_value("account", o.account);
  check_batch_value("qos", o.qos);
  check_batch_value("constraint", o.constraint);
  check_batch_value("output", o.output);
}

void check_kubernetes(const KubernetesOptions& o, const LaunchRequest& r) {
  if (r.container.empty())
    refuse_request("container", "no image is given", "--container IMAGE",
                   "Kubernetes runs nothing outside a container.");
  if (!o.name_space.empty() && !kubernetes_name(o.name_space, 63, false))
    refuse_request("namespace", in_quotes(o.name_space),
                   "up to 63 small letters, digits and dashes, a letter or digit at both ends");
  if (r.remote_start == RemoteStart::without_ssh && o.name_space.empty())
    refuse_request("namespace", "none is given", "--namespace NAME beside --without-ssh",
                   "Kubernetes asks for the namespace of an account that is given a right.");
  check_kubernetes_name("service account", o.service_account);
  for (const std::string& label : o.node_selector) check_label(label);
  if (!o.volume.empty()) check_kubernetes_name("volume", volume_source(o.volume).claim);
}

void check_launcher(const LaunchRequest& r) {
  if (r.launcher == Launcher::slurm)
    check_slurm(r.slurm, r);
  else if (r.slurm != SlurmOptions{})
    refuse_request("Slurm's options", "partition, account, qos, constraint, output, exclusive or requeue is given",
                   "none of them", "Only Slurm has them.");
  if (r.launcher == Launcher::kubernetes)
    check_kubernetes(r.kubernetes, r);
  else if (r.kubernetes != KubernetesOptions{})
    refuse_request("Kubernetes' options", "namespace, volume, node selector, service account or pull policy is given",
                   "none of them", "Only Kubernetes has them.");
  if (!r.memory.empty() && r.launcher == Launcher::mpi)
    refuse_request("memory", "mpirun and srun set no limit", "no memory");
  if (r.preflight && r.launcher != Launcher::slurm &&
      (r.launcher != Launcher::mpi || r.remote_start != RemoteStart::without_ssh))
    refuse_request("preflight", "only srun runs a step before the run", "no preflight",
                   "Start sextant doctor by mpirun instead.");
  if (!r.hostfile.empty() && (r.launcher != Launcher::mpi || r.remote_start == RemoteStart::without_ssh))
    refuse_request("hostfile", "only mpirun over ssh reads one", "no hostfile",
                   "Slurm and Kubernetes know their hosts.");
  if (r.launcher == Launcher::mpi && r.remote_start == RemoteStart::ssh && !r.container.empty() &&
      r.container_runtime == ContainerRuntime::pyxis)
    refuse_request("container", "pyxis is a part of Slurm, mpirun does not know it", "the runtime apptainer");
}

}  // namespace

void refuse_request(std::string field, std::string got, std::string expected, std::string hint) {
  throw UserError(Complaint{
      .place = "launch: " + field, .got = std::move(got), .expected = std::move(expected), .hint = std::move(hint)});
}

void check_request(const LaunchRequest& request) {
  check_counts(request);
  check_name("name", request.name, request);
  check_word("binary", request.binary);
  check_word("config", request.config);
  check_word("container", request.container);
  check_word("hostfile", request.hostfile);
  for (const std::string& override : request.overrides) check_word("overrides", override);
  if (request.binary.empty()) refuse_request("binary", "no path is given", "the path of sextant");
  if (request.config.empty()) refuse_request("config", "no path is given", "the path of a config file");
  check_word("srun's MPI plugin", request.srun_mpi);
  if (request.srun_mpi.empty()) refuse_request("srun's MPI plugin", "no name is given", "a name, such as pmix");
  check_launcher(request);
}

}  // namespace sextant
