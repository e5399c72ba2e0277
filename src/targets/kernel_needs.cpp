#include "targets/kernel_needs.h"

namespace sextant {

const KernelNeeds* KernelTable::find(const OpDef& def) const {
  auto found = needs_.find(&def);
  return found == needs_.end() ? nullptr : &found->second;
}

Grouping KernelTable::grouping(const OpDef& def) const {
  const KernelNeeds* needs = find(def);
  return needs ? needs->grouping : Grouping::alone;
}

Elements KernelTable::elements(const OpDef& def) const {
  const KernelNeeds* needs = find(def);
  return needs ? needs->elements : Elements::computed;
}

uint32_t KernelTable::bf16_inputs(const OpDef& def) const {
  const KernelNeeds* needs = find(def);
  return needs ? needs->bf16_inputs : 0;
}

Bytes KernelTable::workspace(const OpDef& def, const KernelQuery& query) const {
  const KernelNeeds* needs = find(def);
  return needs && needs->workspace ? needs->workspace(query) : Bytes{0};
}

bool KernelTable::can_check(const OpDef& def) const {
  const KernelNeeds* needs = find(def);
  return needs && needs->check;
}

Bytes KernelTable::check(const OpDef& def, const KernelQuery& query) const {
  return can_check(def) ? find(def)->check(query) : Bytes{0};
}

}  // namespace sextant
