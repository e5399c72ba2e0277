#include "passes/pass_list.h"

#include <array>

#include "passes/lower.h"

namespace sextant {

namespace {

constexpr std::array kPassInfos{
    PassInfo{"build", "the model as written: forward only, global shapes, no communication"},
    PassInfo{"infer", "every value has a layout on the mesh; a redistribute stands where two differ"},
    PassInfo{"autodiff", "backward ops are added"},
    PassInfo{"quantize", "linears are products of fp8 operands (train.precision); those that are not say why"},
    PassInfo{"recompute", "backward reads values computed again in place of saved ones (train.recompute)"},
    PassInfo{"update", "gradient norm, clipping and the optimizer's step are added"},
    PassInfo{"localize", "ops whose work on a shard is different become the ops that do it"},
    PassInfo{"partition", "one pipeline rank: local shapes, regions, messages, schedule"},
    PassInfo{"fuse", "neighbours become one op where the device has a kernel for both"},
    PassInfo{"overlap", "messages that can travel during computation go to the comm lane"},
    PassInfo{"offload", "what is kept on the host is copied there and back, and the update runs there (offload)"},
    PassInfo{"join_lanes", "ops say which messages they wait for"},
    PassInfo{"check_gemms", "matrix products that may be checked have the share that is drawn (train.check_gemms)"},
    PassInfo{"memory", "every value has a buffer, every buffer an offset"},
    PassInfo{"freeze", "the program that runs"},
};

}  // namespace

std::span<const PassInfo> pass_list() {
  return kPassInfos;
}

std::vector<std::string_view> pass_names() {
  std::vector<std::string_view> names;
  for (const PassInfo& pass : kPassInfos) names.push_back(pass.name);
  return names;
}

}  // namespace sextant
