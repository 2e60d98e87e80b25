// A condition of a job whose status may be what can't be read: the object is edited as it is, and keeps all the rest.
#pragma once

#include <string>

#include "operator/reconcile/shell/job/job_parts.h"

namespace bsp::reconcile {

struct RawCondition {
  const char* type;
  bool on = true;
  std::string reason;
  std::string message;
};

// False: nothing has changed. A status that is no object is left alone, since a condition would take its place.
bool edit_condition(kube::Object& object, const RawCondition& condition);
// Stores it, with its remedy at the message's end while it is on, and an event if it is news.
void write_condition(const JobParts& parts, RawCondition condition);

}  // namespace bsp::reconcile
