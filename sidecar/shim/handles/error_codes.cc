#include "sidecar/shim/handles/error_codes.h"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

#include "sidecar/shim/library/real.h"
#include "sidecar/shim/measure/measure.h"
#include "sidecar/shim/process/message.h"
#include "sidecar/shim/process/state.h"

namespace bsp::shim {
namespace {

struct AddedError {
  enum class What { kClass, kCode, kString } what;
  int of = 0;      // the class of a code, the code of a string
  int number = 0;  // assigned by MPI
  std::string text;
};
std::recursive_mutex errors_lock;  // recursive: a user error handler may add error codes
std::vector<AddedError> added_errors;
int last_used_code = MPI_ERR_LASTCODE;

// The part of MPI_Add_error_class and MPI_Add_error_code below the attribute update: that would need MPI_Init's
// world, which a session doesn't have.
int add_class() {
  static const auto add = reinterpret_cast<int (*)()>(find_in_mpi("ompi_mpi_errclass_add"));
  int number = -1;
  return add != nullptr ? add() : real.Add_error_class(&number) == MPI_SUCCESS ? number : -1;
}
int add_code(int of_class) {
  static const auto add = reinterpret_cast<int (*)(int)>(find_in_mpi("ompi_mpi_errcode_add"));
  int number = -1;
  return add != nullptr ? add(of_class) : real.Add_error_code(of_class, &number) == MPI_SUCCESS ? number : -1;
}

int add(AddedError& error) {
  switch (error.what) {
    case AddedError::What::kClass:
      error.number = add_class();
      return error.number > 0 ? MPI_SUCCESS : MPI_ERR_INTERN;
    case AddedError::What::kCode:
      error.number = add_code(error.of);
      return error.number > 0 ? MPI_SUCCESS : MPI_ERR_INTERN;
    case AddedError::What::kString:
      return real.Add_error_string(error.of, error.text.c_str());
  }
  return MPI_ERR_INTERN;
}

// Open MPI's list of codes exists only while MPI is open, but a program may add and query codes at any time (MPI 4.1,
// 11.4.1).
bool is_open() { return state.initialized && !state.finalized; }

const AddedError* find_added(bool (*wanted)(const AddedError&, int), int number) {
  auto found = std::ranges::find_if(added_errors, [&](const AddedError& error) { return wanted(error, number); });
  return found == added_errors.end() ? nullptr : &*found;
}

bool is_number(const AddedError& error, int number) {
  return error.what != AddedError::What::kString && error.number == number;
}
bool is_text(const AddedError& error, int number) {
  return error.what == AddedError::What::kString && error.of == number;
}

int add_first_time(AddedError error, int* number) {
  std::lock_guard guard(errors_lock);
  int rc = MPI_SUCCESS;
  if (is_open())
    rc = add(error);
  else if (error.what != AddedError::What::kString)
    error.number = last_used_code + 1;
  if (rc != MPI_SUCCESS) return rc;
  if (number != nullptr) *number = error.number;
  if (error.number > last_used_code) last_used_code = error.number;
  added_errors.push_back(std::move(error));
  return rc;
}

}  // namespace

void repeat_error_codes() {
  static int* const last_used = static_cast<int*>(find_in_mpi("ompi_mpi_errcode_lastused"));
  // Open MPI 5.0 may keep its list from session to session. It replaces an entry that is added again without freeing
  // it, and counts from LASTCODE whenever it starts a new list.
  if (last_used != nullptr && last_used_code > MPI_ERR_LASTCODE && *last_used >= last_used_code) return;
  for (AddedError& error : added_errors) {
    const int before = error.number;
    if (last_used != nullptr && before > 0) *last_used = before - 1;
    if (add(error) != MPI_SUCCESS || error.number != before)
      die("the program's error code %d could not be re-added", before);
  }
}

int* last_used_error_code() { return &last_used_code; }

}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT: this part of the file speaks MPI

extern "C" {

int MPI_Add_error_class(int* errorclass) {
  Call call;
  return add_first_time({.what = AddedError::What::kClass, .text = {}}, errorclass);
}

int MPI_Add_error_code(int errorclass, int* errorcode) {
  Call call;
  return add_first_time({.what = AddedError::What::kCode, .of = errorclass, .text = {}}, errorcode);
}

int MPI_Add_error_string(int errorcode, const char* string) {
  Call call;
  return add_first_time({.what = AddedError::What::kString, .of = errorcode, .text = string}, nullptr);
}

int MPI_Error_class(int errorcode, int* errorclass) {
  Call call;
  {
    std::lock_guard guard(errors_lock);
    if (const AddedError* added = is_open() ? nullptr : find_added(is_number, errorcode)) {
      *errorclass = added->what == AddedError::What::kClass ? errorcode : added->of;
      return MPI_SUCCESS;
    }
  }
  return real.Error_class(errorcode, errorclass);
}

int MPI_Error_string(int errorcode, char* string, int* length) {
  Call call;
  {
    std::lock_guard guard(errors_lock);
    if (const AddedError* added = is_open() ? nullptr : find_added(is_text, errorcode)) {
      *length = std::snprintf(string, MPI_MAX_ERROR_STRING, "%s", added->text.c_str());
      return MPI_SUCCESS;
    }
  }
  return real.Error_string(errorcode, string, length);
}

}  // extern "C"
