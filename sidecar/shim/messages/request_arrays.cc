// MPI_Waitall and its family: the calls that complete requests in an array.
#include "sidecar/shim/messages/request_arrays.h"

#include <sched.h>

#include <algorithm>
#include <initializer_list>

#include "sidecar/shim/handles/errors_after.h"
#include "sidecar/shim/messages/counters.h"
#include "sidecar/shim/messages/interruptible.h"

using namespace bsp::shim;  // NOLINT: this file speaks MPI

namespace {

MPI_Status empty_status() {
  MPI_Status status{};
  status.MPI_SOURCE = MPI_ANY_SOURCE;
  status.MPI_TAG = MPI_ANY_TAG;
  status.MPI_ERROR = MPI_SUCCESS;
  return status;
}

// The status of a request that had completed before the last gate, with MPI_ERROR.
MPI_Status early_status(const RequestArray& array, int i) {
  MPI_Status status = array.object(i)->status;
  status.MPI_ERROR = array.object(i)->error;
  return status;
}

// After MPI completed the whole array (or failed in parts of it).
int settle_all(RequestArray& array, int rc, MPI_Status* statuses) {
  KeptError kept;
  for (int i = 0; i < array.count(); ++i) {
    const bool early = array.completed(i);
    MPI_Status status = early ? early_status(array, i) : array.statuses()[i];
    if (early) kept.note(*array.object(i));
    restore_tag(array.object(i), status);
    // With MPI_ERR_IN_STATUS some requests may still be pending: they keep their handles.
    const bool done = early || rc == MPI_SUCCESS || array.real()[i] == pre.request_null ||
                      (array.object(i) != nullptr && array.object(i)->persistent);
    if (statuses != MPI_STATUSES_IGNORE) statuses[i] = status;
    if (done) array.settle_one(i, status, rc);
  }
  if (rc != MPI_SUCCESS || kept.error == MPI_SUCCESS) return rc;
  raise_error(kept.comm, kept.error);
  return MPI_ERR_IN_STATUS;
}

// The first request that had completed before the last gate; count() if there is none.
int early_one(const RequestArray& array) {
  int i = 0;
  while (i < array.count() && !array.completed(i)) ++i;
  return i;
}

// Request `index` has completed with `status` in a call that returns `rc`; returns the status for the program.
MPI_Status settle(RequestArray& array, int index, MPI_Status status, int rc) {
  const bool one = index >= 0 && index < array.count();  // otherwise the array held no active request
  if (one) restore_tag(array.object(index), status);
  if (one) array.settle_one(index, status, rc);
  return status;
}

void settle_any(RequestArray& array, int index, const MPI_Status& status, int rc, MPI_Status* out) {
  put(out, settle(array, index, status, rc));
}

// One of several that complete together: MPI_ERROR holds each one's result.
void settle_some(RequestArray& array, int index, const MPI_Status& status, int rc, MPI_Status* statuses, int i) {
  const MPI_Status seen = settle(array, index, status, rc);
  if (statuses != MPI_STATUSES_IGNORE) statuses[i] = seen;
}

int settle_early_any(RequestArray& array, int* index, MPI_Status* status) {
  *index = early_one(array);
  KeptError kept;
  kept.note(*array.object(*index));
  settle_any(array, *index, array.object(*index)->status, kept.error, status);
  raise_error(kept.comm, kept.error);
  return kept.error;
}

int settle_early_some(RequestArray& array, int* outcount, int* indices, MPI_Status* statuses) {
  *outcount = 0;
  KeptError kept;
  for (int i = 0; i < array.count(); ++i) {
    if (!array.completed(i)) continue;
    kept.note(*array.object(i));
    indices[*outcount] = i;
    settle_some(array, i, early_status(array, i), MPI_SUCCESS, statuses, *outcount);
    ++*outcount;
  }
  if (kept.error == MPI_SUCCESS) return MPI_SUCCESS;
  raise_error(kept.comm, kept.error);
  return MPI_ERR_IN_STATUS;
}

using SomeCall = int (*)(int, MPI_Request*, int*, int*, MPI_Status*);

// MPI_Waitsome or MPI_Testsome.
int some_of(SomeCall call_real, RequestArray& array, int* outcount, int* indices, MPI_Status* statuses) {
  if (array.any_completed()) return settle_early_some(array, outcount, indices, statuses);
  ErrorsAfter errors;
  const int rc = call_real(array.count(), array.real(), outcount, indices, array.statuses());
  if (*outcount == MPI_UNDEFINED) {
    if (array.any_withheld()) *outcount = 0;
    return errors.raised(rc);
  }
  for (int i = 0; i < *outcount; ++i) settle_some(array, indices[i], array.statuses()[i], rc, statuses, i);
  return errors.raised(rc);
}

int test_any(RequestArray& array, int* index, int* flag, MPI_Status* status) {
  if (array.any_completed()) {
    *flag = 1;
    return settle_early_any(array, index, status);
  }
  ErrorsAfter errors;
  MPI_Status own = empty_status();
  const int rc = real.Testany(array.count(), array.real(), index, flag, &own);
  if (*index == MPI_UNDEFINED && array.any_withheld()) *flag = 0;
  if (*flag) settle_any(array, *index, own, rc, status);
  return errors.raised(rc);
}

// MPI refuses the call without a look at any request, as an array is null, or the place of a result; or has none to look at.
bool needs_no_request(int count, const MPI_Request* requests, std::initializer_list<const void*> results = {}) {
  return count <= 0 || requests == nullptr || std::ranges::contains(results, nullptr);
}
// What MPI says to that. `rest`: the call's further arguments.
int without_requests(auto call_real, int count, MPI_Request* requests, auto... rest) {
  if (count <= 0 || requests == nullptr) return call_real(count, requests, rest...);
  RequestArray array(count, requests);
  return call_real(count, array.real(), rest...);
}

bool any_withheld(int count, const MPI_Request* requests) {
  for (int i = 0; i < count; ++i)
    if (Request* r = object_of_request(requests[i]); r != nullptr && withheld(*r)) return true;
  return false;
}

}  // namespace

extern "C" {

int MPI_Waitall(int count, MPI_Request array_of_requests[], MPI_Status* array_of_statuses) {
  Call call;
  if (needs_no_request(count, array_of_requests))
    return without_requests(real.Waitall, count, array_of_requests, array_of_statuses);
  if (is_interruptible())
    return poll_until([&](int* flag) { return MPI_Testall(count, array_of_requests, flag, array_of_statuses); });
  for (int i = 0; i < count; ++i)
    if (Request* r = object_of_request(array_of_requests[i])) wait_while_withheld(*r);
  RequestArray array(count, array_of_requests);
  ErrorsAfter errors;
  const int rc = real.Waitall(count, array.real(), array.statuses());
  return errors.raised(settle_all(array, rc, array_of_statuses));
}

int MPI_Testall(int count, MPI_Request array_of_requests[], int* flag, MPI_Status array_of_statuses[]) {
  Call call;
  if (needs_no_request(count, array_of_requests, {flag}))
    return without_requests(real.Testall, count, array_of_requests, flag, array_of_statuses);
  RequestArray array(count, array_of_requests);
  if (array.any_withheld()) {  // the others may wait: nothing in the array may change now
    *flag = 0;
    return MPI_SUCCESS;
  }
  ErrorsAfter errors;
  const int rc = real.Testall(count, array.real(), flag, array.statuses());
  if (rc == MPI_SUCCESS && !*flag) return rc;
  return errors.raised(settle_all(array, rc, array_of_statuses));
}

int MPI_Waitany(int count, MPI_Request array_of_requests[], int* index, MPI_Status* status) {
  Call call;
  if (needs_no_request(count, array_of_requests, {index}))
    return without_requests(real.Waitany, count, array_of_requests, index, status);
  if (is_interruptible())
    return poll_until([&](int* flag) { return MPI_Testany(count, array_of_requests, index, flag, status); });
  for (; any_withheld(count, array_of_requests); sched_yield()) {
    RequestArray array(count, array_of_requests);
    int flag = 0;
    const int rc = test_any(array, index, &flag, status);
    if (rc != MPI_SUCCESS || flag) return rc;
  }
  RequestArray array(count, array_of_requests);
  if (array.any_completed()) return settle_early_any(array, index, status);
  ErrorsAfter errors;
  MPI_Status own = empty_status();
  const int rc = real.Waitany(count, array.real(), index, &own);
  settle_any(array, *index, own, rc, status);
  return errors.raised(rc);
}

int MPI_Testany(int count, MPI_Request array_of_requests[], int* index, int* flag, MPI_Status* status) {
  Call call;
  if (needs_no_request(count, array_of_requests, {index, flag}))
    return without_requests(real.Testany, count, array_of_requests, index, flag, status);
  RequestArray array(count, array_of_requests);
  return test_any(array, index, flag, status);
}

int MPI_Waitsome(int incount, MPI_Request array_of_requests[], int* outcount, int array_of_indices[],
                 MPI_Status array_of_statuses[]) {
  Call call;
  if (needs_no_request(incount, array_of_requests, {outcount, array_of_indices}))
    return without_requests(real.Waitsome, incount, array_of_requests, outcount, array_of_indices, array_of_statuses);
  if (is_interruptible())
    return poll_until([&](int* flag) {
      const int rc = MPI_Testsome(incount, array_of_requests, outcount, array_of_indices, array_of_statuses);
      *flag = *outcount != 0 ? 1 : 0;
      return rc;
    });
  for (; any_withheld(incount, array_of_requests); sched_yield()) {
    RequestArray array(incount, array_of_requests);
    const int rc = some_of(real.Testsome, array, outcount, array_of_indices, array_of_statuses);
    if (rc != MPI_SUCCESS || *outcount != 0) return rc;
  }
  RequestArray array(incount, array_of_requests);
  return some_of(real.Waitsome, array, outcount, array_of_indices, array_of_statuses);
}

int MPI_Testsome(int incount, MPI_Request array_of_requests[], int* outcount, int array_of_indices[],
                 MPI_Status array_of_statuses[]) {
  Call call;
  if (needs_no_request(incount, array_of_requests, {outcount, array_of_indices}))
    return without_requests(real.Testsome, incount, array_of_requests, outcount, array_of_indices, array_of_statuses);
  RequestArray array(incount, array_of_requests);
  return some_of(real.Testsome, array, outcount, array_of_indices, array_of_statuses);
}

}  // extern "C"
