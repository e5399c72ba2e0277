#include <fmt/format.h>

#include "launch/launchers.h"
#include "launch/quote.h"
#include "launch/stop_forwarding.h"

namespace sextant {

namespace {

// Called by mpirun in place of ssh, as AGENT [-o OPTION] HOST COMMAND…; a worker's host is POD.SERVICE.
constexpr std::string_view kExecAgent = R"(apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}-exec
data:
  agent.sh: |
    #!/bin/sh
    while true; do
      case "$1" in
        -o) shift 2 ;;
        -*) shift ;;
        *) break ;;
      esac
    done
    host="$1"
    shift
    exec kubectl exec "${{host%%.*}}" -- /bin/sh -c "$*"
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {name}-exec
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {name}-exec
rules:
  - apiGroups: [""]
    resources: ["pods"]
    verbs: ["get", "list", "watch"]
  - apiGroups: [""]
    resources: ["pods/exec"]
    verbs: ["create"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {name}-exec
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {name}-exec
subjects:
  - kind: ServiceAccount
    name: {name}-exec
---
)";

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

void put_launcher(Yaml& yaml, const LaunchRequest& r) {
  bool without_ssh = r.remote_start == RemoteStart::without_ssh;
  yaml.line(2, "Launcher:");
  yaml.line(3, "replicas: 1");
  yaml.line(3, "template:");
  yaml.line(4, "spec:");
  yaml.line(5, fmt::format("terminationGracePeriodSeconds: {}", kGraceSeconds));
  if (without_ssh) yaml.line(5, fmt::format("serviceAccountName: {}-exec", r.name));
  yaml.line(5, "containers:");
  yaml.line(6, "- name: launcher");
  yaml.line(7, "image: " + yaml_quoted(r.container));
  yaml.line(7, "command:");
  for (const std::string& word : mpirun_arguments(r)) yaml.line(8, "- " + yaml_quoted(word));
  if (!without_ssh) return;
  yaml.line(7, "volumeMounts:");
  yaml.line(8, "- name: agent");
  yaml.line(9, "mountPath: /etc/sextant");
  yaml.line(5, "volumes:");
  yaml.line(6, "- name: agent");
  yaml.line(7, "configMap:");
  yaml.line(8, fmt::format("name: {}-exec", r.name));
  yaml.line(8, "defaultMode: 0755");
}

void put_workers(Yaml& yaml, const LaunchRequest& r) {
  int64_t ranks = ranks_on_a_node(r);
  yaml.line(2, "Worker:");
  yaml.line(3, fmt::format("replicas: {}", nodes(r)));
  yaml.line(3, "template:");
  yaml.line(4, "spec:");
  yaml.line(5, fmt::format("terminationGracePeriodSeconds: {}", kGraceSeconds));
  yaml.line(5, "containers:");
  yaml.line(6, "- name: worker");
  yaml.line(7, "image: " + yaml_quoted(r.container));
  if (r.remote_start == RemoteStart::without_ssh) yaml.line(7, "command: [\"sleep\", \"infinity\"]");
  yaml.line(7, "lifecycle:");
  yaml.line(8, "preStop:");
  yaml.line(9, "exec:");
  yaml.line(10, "command:");
  for (const std::string& word : {std::string("/bin/sh"), std::string("-c"), leave_in_order(r.binary)})
    yaml.line(11, "- " + yaml_quoted(word));
  yaml.line(7, "resources:");
  yaml.line(8, "limits:");
  yaml.line(9, fmt::format("cpu: {}", ranks * r.cpus_per_rank));
  if (r.gpus_per_rank > 0) yaml.line(9, fmt::format("nvidia.com/gpu: {}", ranks * r.gpus_per_rank));
  yaml.line(7, "volumeMounts:");
  yaml.line(8, "- name: shared-memory");
  yaml.line(9, "mountPath: /dev/shm");
  yaml.line(5, "volumes:");
  yaml.line(6, "- name: shared-memory");  // ranks of a node talk through it, and a container's default is 64 MiB
  yaml.line(7, "emptyDir:");
  yaml.line(8, "medium: Memory");
}

}  // namespace

std::string kubernetes_text(const LaunchRequest& r) {
  Yaml yaml;
  yaml.line(0, "apiVersion: kubeflow.org/v2beta1");
  yaml.line(0, "kind: MPIJob");
  yaml.line(0, "metadata:");
  yaml.line(1, "name: " + r.name);
  yaml.line(0, "spec:");
  yaml.line(1, fmt::format("slotsPerWorker: {}", ranks_on_a_node(r)));
  yaml.line(1, "runPolicy:");
  yaml.line(2, "cleanPodPolicy: Running");
  yaml.line(2, "backoffLimit: 0");
  if (!r.time_limit.empty()) yaml.line(2, fmt::format("activeDeadlineSeconds: {}", time_limit_seconds(r.time_limit)));
  yaml.line(1, "mpiReplicaSpecs:");
  put_launcher(yaml, r);
  put_workers(yaml, r);
  std::string before;
  if (r.remote_start == RemoteStart::without_ssh) before = fmt::format(kExecAgent, fmt::arg("name", r.name));
  return before + std::move(yaml).text();
}

}  // namespace sextant
