// The job from whose checkpoint set another begins (spec.restoreFrom).
//
// A set's key follows from the uid of the job that made it, so whoever says for which uid a key is wanted gets at that job's memory.
// Users may write their jobs' status. So a set that another job has made is used by a grant only: a code that follows from the
// operator's seed, the namespace and that uid, which the operator makes when it has read a job with this uid in this namespace, or in
// another one whose job allows this namespace (spec.checkpoint.allowedNamespaces). In any other namespace it is worth nothing.
#pragma once

#include <functional>
#include <string>

#include "base/core/error.h"
#include "operator/kinds.h"
#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

// In hexadecimal.
Result<std::string> grant_of(std::string_view seed, const std::string& name_space, const std::string& uid);
// The seed of the keys of the sets of the job with this uid, for one in this namespace that has the grant. kRefused: it hasn't.
Result<std::string> granted_sets(std::string_view seed, const std::string& name_space, const std::string& uid,
                                 const std::string& grant);
// The same of a job's own.
Result<std::string> own_sets(std::string_view seed, const std::string& uid);

// Whether the job has yet to take a set over.
bool awaits_source(const crds::BspJob& job);
// Of a job of another namespace only the sets that it has made itself: who had made the others has allowed its namespace alone.
SourceJob read_source(kube::Client& client, const crds::BspJob& job,
                      const std::function<Result<std::string>(const std::string& uid)>& grant);

}  // namespace bsp::reconcile
