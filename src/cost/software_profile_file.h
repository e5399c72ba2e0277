// Profiles as a file: machines/software.toml, one table per profile. Leaves: all of them, or one UserError with
// everything that is wrong, each at its line; and which of them a published run was made with.
#pragma once

#include <string_view>
#include <vector>

#include "cost/software_profile.h"

namespace sextant {

// From $SEXTANT_MACHINES, else the ones that come with the program.
std::vector<SoftwareProfile> load_profiles();

std::vector<SoftwareProfile> parse_profiles(std::string_view text, std::string_view place);

// The profile with the longest entry of `matches` that fits; null when none does. An entry "S" fits sources that begin
// with S; "S :: T :: U" those that have T and U in what else is said of the run.
const SoftwareProfile* profile_for_source(const std::vector<SoftwareProfile>& profiles, std::string_view source,
                                          std::string_view said = "");

// By name; a UserError lists what there is.
const SoftwareProfile& profile_named(const std::vector<SoftwareProfile>& profiles, std::string_view name);

}  // namespace sextant
