// The objects with which mpirun starts ranks through `kubectl exec`, for clusters whose images hold no ssh.
#pragma once

#include <string>

#include "launch/launch.h"

namespace sextant {

// A script in place of ssh, the account that the launcher's pod has, and its right to run commands in pods; YAML
// documents, each ended by ---.
std::string exec_objects(const LaunchRequest& request);
std::string exec_account(const LaunchRequest& request);      // of the launcher's pod
std::string exec_object_name(const LaunchRequest& request);  // of the script's ConfigMap, the Role and its binding

}  // namespace sextant
