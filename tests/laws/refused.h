// That a call is refused with a UserError whose text holds a part.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace sextant {

template <class Call>
void expect_refused(const Call& call, const std::string& part) {
  try {
    call();
    ADD_FAILURE() << "was not refused; expected: " << part;
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

}  // namespace sextant
