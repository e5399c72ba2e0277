#include "launch/kubernetes_exec.h"

#include <fmt/format.h>

namespace sextant {

namespace {

// Called by mpirun in place of ssh, as AGENT [-o OPTION] HOST COMMAND…; a worker's host is POD.SERVICE.
constexpr std::string_view kExecAgent = R"(apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
  namespace: {namespace}
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
)";

constexpr std::string_view kExecAccount = R"(apiVersion: v1
kind: ServiceAccount
metadata:
  name: {account}
  namespace: {namespace}
---
)";

constexpr std::string_view kExecRight = R"(apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {name}
  namespace: {namespace}
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
  name: {name}
  namespace: {namespace}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {name}
subjects:
  - kind: ServiceAccount
    name: {account}
    namespace: {namespace}
---
)";

}  // namespace

std::string exec_object_name(const LaunchRequest& r) {
  return r.name + "-exec";
}

std::string exec_account(const LaunchRequest& r) {
  return r.kubernetes.service_account.empty() ? exec_object_name(r) : r.kubernetes.service_account;
}

std::string exec_objects(const LaunchRequest& r) {
  auto filled = [&](std::string_view objects) {
    return fmt::format(fmt::runtime(objects), fmt::arg("name", exec_object_name(r)),
                       fmt::arg("account", exec_account(r)), fmt::arg("namespace", r.kubernetes.name_space));
  };
  bool own_account = r.kubernetes.service_account.empty();
  return filled(kExecAgent) + (own_account ? filled(kExecAccount) : "") + filled(kExecRight);
}

}  // namespace sextant
