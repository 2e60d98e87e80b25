// `top`: one frame of a job's live screen, with a bar for each Set and each rank. Pure.
#pragma once

#include "operator/screens/words.h"

namespace bsp::screens {

// If not all ranks fit, the slowest are shown.
std::vector<std::string> top(const Shown& shown, Time now, Size size = {});

}  // namespace bsp::screens
