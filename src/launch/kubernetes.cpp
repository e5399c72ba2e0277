#include <fmt/format.h>

#include "base/error.h"
#include "base/shell_quoted.h"
#include "launch/kubernetes_exec.h"
#include "launch/launchers.h"
#include "launch/quote.h"
#include "launch/stop_forwarding.h"

namespace sextant {

namespace {

// Lines of YAML with their depth.
class Yaml {
 public:
  void line(int depth, std::string_view text) {
    text_ += std::string(static_cast<size_t>(depth) * 2, ' ').append(text) + "\n";
  }
  std::string text() && { return std::move(text_); }

 private:
  std::string text_;
};

// A script on one line, as one word of a command.
std::string one_line(std::string_view script) {
  std::string line;
  for (char c : script) line += c == '\n' ? ';' : c;
  // A command that ends with & is ended already.
  for (size_t at = line.find("&;"); at != std::string::npos; at = line.find("&;", at)) line.replace(at, 2, "& ");
  return line;
}

// Before a worker's container ends (a node that is drained, a job that is deleted): the ranks in it are asked to save
// and stop, all others stop with them, and the container stays until they are gone. /proc, because images may have no
// pkill.
std::string leave_in_order(const std::string& binary) {
  std::string name = binary.substr(binary.rfind('/') + 1).substr(0, 15);  // so much of it the kernel keeps
  return fmt::format(
      "ranks() {{ for p in /proc/[0-9]*; do read -r name < $p/comm && [ \"$name\" = {} ] && echo ${{p#/proc/}}; done "
      "2> /dev/null; }}; "
      "for p in $(ranks); do kill -USR1 $p; done; while [ -n \"$(ranks)\" ]; do sleep 1; done",
      shell_quoted(name));
}

std::vector<std::string> mpirun_arguments(const LaunchRequest& r) {
  std::vector<std::string> words = {"/bin/sh",
                                    "-c",
                                    one_line(kStopForwarding),
                                    "sh",
                                    "mpirun",
                                    "--allow-run-as-root",
                                    "-n",
                                    fmt::format("{}", r.world_size),
                                    "--bind-to",
                                    "none"};  // a container's share of the cores is the cluster's affair
  if (r.remote_start == RemoteStart::without_ssh)
    words.insert(words.end(), {"--mca", "plm_rsh_agent", "/etc/sextant/agent.sh"});
  for (const std::string& word : program_words(r)) words.push_back(word);
  return words;
}

// A volume of a pod: its name, its mount path, and the YAML lines of its source, each with its depth below the name.
struct PodVolume {
  std::string name, mount;
  std::vector<std::pair<int, std::string>> source;
};

// Where the run reads and writes; none without --volume.
std::vector<PodVolume> run_volumes(const LaunchRequest& r) {
  if (r.kubernetes.volume.empty()) return {};
  VolumeSource volume = volume_source(r.kubernetes.volume);
  PodVolume run{.name = "run", .mount = volume.mount, .source = {}};
  if (!volume.claim.empty())
    run.source = {{0, "persistentVolumeClaim:"}, {1, "claimName: " + yaml_quoted(volume.claim)}};
  else
    run.source = {{0, "hostPath:"}, {1, "path: " + yaml_quoted(volume.host_path)}, {1, "type: Directory"}};
  return {run};
}

std::vector<PodVolume> launcher_volumes(const LaunchRequest& r) {
  std::vector<PodVolume> volumes = run_volumes(r);  // mpirun starts ranks in the folder it is in itself
  if (r.remote_start == RemoteStart::without_ssh)
    volumes.push_back({.name = "agent",
                       .mount = "/etc/sextant",
                       .source = {{0, "configMap:"}, {1, "name: " + exec_object_name(r)}, {1, "defaultMode: 0755"}}});
  return volumes;
}

std::vector<PodVolume> worker_volumes(const LaunchRequest& r) {
  std::vector<PodVolume> volumes = run_volumes(r);
  // Ranks of a node talk through it, and a container's default is 64 MiB.
  volumes.push_back(
      {.name = "shared-memory", .mount = "/dev/shm", .source = {{0, "emptyDir:"}, {1, "medium: Memory"}}});
  return volumes;
}

void put_mounts(Yaml& yaml, const std::vector<PodVolume>& volumes) {
  if (!volumes.empty()) yaml.line(7, "volumeMounts:");
  for (const PodVolume& volume : volumes) {
    yaml.line(8, "- name: " + volume.name);
    yaml.line(9, "mountPath: " + yaml_quoted(volume.mount));
  }
}

void put_volumes(Yaml& yaml, const std::vector<PodVolume>& volumes) {
  if (!volumes.empty()) yaml.line(5, "volumes:");
  for (const PodVolume& volume : volumes) {
    yaml.line(6, "- name: " + volume.name);
    for (const auto& [depth, text] : volume.source) yaml.line(7 + depth, text);
  }
}

std::string_view pull_policy_name(PullPolicy policy) {
  switch (policy) {
    case PullPolicy::by_tag:
      return "";
    case PullPolicy::always:
      return "Always";
    case PullPolicy::if_not_present:
      return "IfNotPresent";
    case PullPolicy::never:
      return "Never";
  }
  BUG("pull policy {}", static_cast<int>(policy));
}

void put_container(Yaml& yaml, std::string_view name, const LaunchRequest& r) {
  yaml.line(5, "containers:");
  yaml.line(6, fmt::format("- name: {}", name));
  yaml.line(7, "image: " + yaml_quoted(r.container));
  if (r.kubernetes.pull_policy != PullPolicy::by_tag)
    yaml.line(7, fmt::format("imagePullPolicy: {}", pull_policy_name(r.kubernetes.pull_policy)));
  if (!r.kubernetes.volume.empty())
    yaml.line(7, "workingDir: " + yaml_quoted(volume_source(r.kubernetes.volume).mount));
}

void put_launcher(Yaml& yaml, const LaunchRequest& r) {
  yaml.line(2, "Launcher:");
  yaml.line(3, "replicas: 1");
  yaml.line(3, "template:");
  yaml.line(4, "spec:");
  yaml.line(5, fmt::format("terminationGracePeriodSeconds: {}", kGraceSeconds));
  bool without_ssh = r.remote_start == RemoteStart::without_ssh;
  std::string account = without_ssh ? exec_account(r) : r.kubernetes.service_account;
  if (!account.empty()) yaml.line(5, "serviceAccountName: " + account);
  put_container(yaml, "launcher", r);
  yaml.line(7, "command:");
  for (const std::string& word : mpirun_arguments(r)) yaml.line(8, "- " + yaml_quoted(word));
  put_mounts(yaml, launcher_volumes(r));
  put_volumes(yaml, launcher_volumes(r));
}

void put_worker_resources(Yaml& yaml, const LaunchRequest& r) {
  int64_t ranks = ranks_on_a_node(r);
  if (r.cpus_per_rank == 0 && r.memory.empty() && r.gpus_per_rank == 0) return;
  yaml.line(7, "resources:");
  yaml.line(8, "limits:");  // what is requested is the same, unless said otherwise
  if (r.cpus_per_rank > 0) yaml.line(9, fmt::format("cpu: {}", ranks * r.cpus_per_rank));
  if (!r.memory.empty()) {
    MemoryAmount memory = memory_amount(r.memory);
    yaml.line(9, fmt::format("memory: {}{}i", memory.count, memory.unit));
  }
  if (r.gpus_per_rank > 0) yaml.line(9, fmt::format("nvidia.com/gpu: {}", ranks * r.gpus_per_rank));
}

void put_workers(Yaml& yaml, const LaunchRequest& r) {
  yaml.line(2, "Worker:");
  yaml.line(3, fmt::format("replicas: {}", nodes(r)));
  yaml.line(3, "template:");
  yaml.line(4, "spec:");
  yaml.line(5, fmt::format("terminationGracePeriodSeconds: {}", kGraceSeconds));
  if (!r.kubernetes.service_account.empty()) yaml.line(5, "serviceAccountName: " + r.kubernetes.service_account);
  if (!r.kubernetes.node_selector.empty()) yaml.line(5, "nodeSelector:");
  for (const std::string& label : r.kubernetes.node_selector) {
    size_t equals = label.find('=');
    yaml.line(6, label.substr(0, equals) + ": " + yaml_quoted(label.substr(equals + 1)));
  }
  put_container(yaml, "worker", r);
  if (r.remote_start == RemoteStart::without_ssh) yaml.line(7, "command: [\"sleep\", \"infinity\"]");
  yaml.line(7, "lifecycle:");
  yaml.line(8, "preStop:");
  yaml.line(9, "exec:");
  yaml.line(10, "command:");
  for (const std::string& word : {std::string("/bin/sh"), std::string("-c"), leave_in_order(r.binary)})
    yaml.line(11, "- " + yaml_quoted(word));
  put_worker_resources(yaml, r);
  put_mounts(yaml, worker_volumes(r));
  put_volumes(yaml, worker_volumes(r));
}

}  // namespace

std::string kubernetes_text(const LaunchRequest& r) {
  Yaml yaml;
  if (r.kubernetes.volume.empty())
    yaml.line(0, "# Checkpoints stay in the pods and are lost with them: --volume CLAIM:PATH keeps them.");
  yaml.line(0, "apiVersion: kubeflow.org/v2beta1");
  yaml.line(0, "kind: MPIJob");
  yaml.line(0, "metadata:");
  yaml.line(1, "name: " + r.name);
  if (!r.kubernetes.name_space.empty()) yaml.line(1, "namespace: " + r.kubernetes.name_space);
  yaml.line(0, "spec:");
  yaml.line(1, fmt::format("slotsPerWorker: {}", ranks_on_a_node(r)));
  yaml.line(1, "runPolicy:");
  yaml.line(2, "cleanPodPolicy: Running");
  yaml.line(2, "backoffLimit: 0");
  if (!r.time_limit.empty()) yaml.line(2, fmt::format("activeDeadlineSeconds: {}", time_limit_seconds(r.time_limit)));
  yaml.line(1, "mpiReplicaSpecs:");
  put_launcher(yaml, r);
  put_workers(yaml, r);
  return (r.remote_start == RemoteStart::without_ssh ? exec_objects(r) : "") + std::move(yaml).text();
}

}  // namespace sextant
