// `explain`: why no rank moves, or why ranks moved, in one screen. Pure.
#pragma once

#include "operator/screens/words.h"

namespace bsp::screens {

std::vector<std::string> explain(const Shown& shown, Time now, Size size = {});

}  // namespace bsp::screens
