// `bsp-operator advise`: what another heuristic, or other parameters, would have done in a run that was recorded.
//
// Exit status: 0; 1 if a line could not be read, or a plan under the recorded parameters is another one than recorded;
// 2 the call was wrong.
#pragma once

#include <span>
#include <string>

namespace bsp::advise {

int run(std::span<const std::string> words);

}  // namespace bsp::advise
