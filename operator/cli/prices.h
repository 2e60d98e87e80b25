// The option that says what nodes cost an hour, by Set or by instance type.
#pragma once

#include <map>
#include <string>

#include "operator/cli/command.h"

namespace bsp::cli {

// NAME=PRICE,… with each name once and prices above 0. `example` is one that is right.
Setter prices(std::map<std::string, double>& into, std::string example);

}  // namespace bsp::cli
