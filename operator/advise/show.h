// Advice as text and as JSON. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

#include "operator/advise/advice.h"

namespace bsp::advise {

// One record: the recorded plan, the new one, both for every rank that either of them moves, and the reasons.
std::string text_of(const Advice& advice, bool brief);
std::string text_of(const Totals& totals);

nlohmann::json json_of(const Advice& advice);
nlohmann::json json_of(const Totals& totals);

}  // namespace bsp::advise
