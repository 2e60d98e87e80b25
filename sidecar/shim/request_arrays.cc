// MPI_Waitall and its family: the calls that complete some of an array of requests.
#include "sidecar/shim/request_arrays.h"

#include "sidecar/shim/counters.h"

using namespace bsp::shim;  // NOLINT: this file speaks MPI

namespace {

MPI_Status empty_status() {
  MPI_Status status{};
  status.MPI_SOURCE = MPI_ANY_SOURCE;
  status.MPI_TAG = MPI_ANY_TAG;
  status.MPI_ERROR = MPI_SUCCESS;
  return status;
}

// After MPI completed the whole array (or failed in parts of it).
int settle_all(RequestArray& array, int rc, MPI_Status* statuses) {
  for (int i = 0; i < array.count(); ++i) {
    const bool early = array.completed(i);
    const MPI_Status status = early ? array.object(i)->status : array.statuses()[i];
    // With MPI_ERR_IN_STATUS some requests may still be pending: they keep their handles.
    const bool done = early || rc == MPI_SUCCESS || array.real()[i] == pre.request_null ||
                      (array.object(i) != nullptr && array.object(i)->persistent);
    if (statuses != MPI_STATUSES_IGNORE) statuses[i] = status;
    if (done) array.settle_one(i, status);
  }
  return rc;
}

// The first request that had completed before the last gate; count() if there is none.
int early_one(const RequestArray& array) {
  int i = 0;
  while (i < array.count() && !array.completed(i)) ++i;
  return i;
}

int settle_early_any(RequestArray& array, int* index, MPI_Status* status) {
  *index = early_one(array);
  const MPI_Status outcome = array.object(*index)->status;
  const int rc = array.object(*index)->error;
  if (status != MPI_STATUS_IGNORE) *status = outcome;
  array.settle_one(*index, outcome);
  return rc;
}

int settle_early_some(RequestArray& array, int* outcount, int* indices, MPI_Status* statuses) {
  *outcount = 0;
  for (int i = 0; i < array.count(); ++i) {
    if (!array.completed(i)) continue;
    const MPI_Status outcome = array.object(i)->status;
    if (statuses != MPI_STATUSES_IGNORE) statuses[*outcount] = outcome;
    indices[(*outcount)++] = i;
    array.settle_one(i, outcome);
  }
  return MPI_SUCCESS;
}

int settle_some(RequestArray& array, int rc, const int* outcount, const int* indices,
                MPI_Status* statuses) {
  if (*outcount == MPI_UNDEFINED) return rc;
  for (int i = 0; i < *outcount; ++i) {
    if (statuses != MPI_STATUSES_IGNORE) statuses[i] = array.statuses()[i];
    array.settle_one(indices[i], array.statuses()[i]);
  }
  return rc;
}

}  // namespace

extern "C" {

int MPI_Waitall(int count, MPI_Request array_of_requests[], MPI_Status* array_of_statuses) {
  Call call;
  RequestArray array(count, array_of_requests);
  const int rc = real.Waitall(count, array.real(), array.statuses());
  return settle_all(array, rc, array_of_statuses);
}

int MPI_Testall(int count, MPI_Request array_of_requests[], int* flag,
                MPI_Status array_of_statuses[]) {
  Call call;
  RequestArray array(count, array_of_requests);
  const int rc = real.Testall(count, array.real(), flag, array.statuses());
  if (rc == MPI_SUCCESS && !*flag) return rc;
  return settle_all(array, rc, array_of_statuses);
}

int MPI_Waitany(int count, MPI_Request array_of_requests[], int* index, MPI_Status* status) {
  Call call;
  RequestArray array(count, array_of_requests);
  if (array.any_completed()) return settle_early_any(array, index, status);
  MPI_Status own = empty_status();
  const int rc = real.Waitany(count, array.real(), index, &own);
  if (status != MPI_STATUS_IGNORE) *status = own;
  if (*index != MPI_UNDEFINED && *index >= 0 && *index < array.count())
    array.settle_one(*index, own);
  return rc;
}

int MPI_Testany(int count, MPI_Request array_of_requests[], int* index, int* flag,
                MPI_Status* status) {
  Call call;
  RequestArray array(count, array_of_requests);
  if (array.any_completed()) {
    *flag = 1;
    return settle_early_any(array, index, status);
  }
  MPI_Status own = empty_status();
  const int rc = real.Testany(count, array.real(), index, flag, &own);
  if (!*flag) return rc;
  if (status != MPI_STATUS_IGNORE) *status = own;
  if (*index != MPI_UNDEFINED && *index >= 0 && *index < array.count())
    array.settle_one(*index, own);
  return rc;
}

int MPI_Waitsome(int incount, MPI_Request array_of_requests[], int* outcount,
                 int array_of_indices[], MPI_Status array_of_statuses[]) {
  Call call;
  RequestArray array(incount, array_of_requests);
  if (array.any_completed())
    return settle_early_some(array, outcount, array_of_indices, array_of_statuses);
  const int rc =
      real.Waitsome(incount, array.real(), outcount, array_of_indices, array.statuses());
  return settle_some(array, rc, outcount, array_of_indices, array_of_statuses);
}

int MPI_Testsome(int incount, MPI_Request array_of_requests[], int* outcount,
                 int array_of_indices[], MPI_Status array_of_statuses[]) {
  Call call;
  RequestArray array(incount, array_of_requests);
  if (array.any_completed())
    return settle_early_some(array, outcount, array_of_indices, array_of_statuses);
  const int rc =
      real.Testsome(incount, array.real(), outcount, array_of_indices, array.statuses());
  return settle_some(array, rc, outcount, array_of_indices, array_of_statuses);
}

}  // extern "C"
