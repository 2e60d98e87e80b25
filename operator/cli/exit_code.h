// How bsp-operator and bsp-simulate end.
#pragma once

#include "base/core/error.h"

namespace bsp::cli {

enum ExitCode : int {
  kDone = 0,
  kFailed = 1,       // the reason is on stderr
  kUsage = 2,        // wrong command line, or wrong input that it names; the mistake and the remedy are on stderr
  kCannotServe = 3,  // only from local run's inner process: the operator can't start, and a retry wouldn't help
  kRebuild = 4,  // only from convert: the job is printed, but its program has to be built anew, as stderr says first
  kSignalled = 128,  // plus the signal's number: interrupted, for example 130 by Ctrl-C
};

// Prints "PROGRAM: …" to stderr. Returns kUsage for kInvalid, otherwise kFailed.
int report_error(const Error& error, const char* program = "bsp-operator");

// Before anything else: opens what the caller has closed of standard input, output and error, for reading, so that no file of ours
// gets its number. What is written there is still an error.
void keep_standard_streams();
// How a program ends whose command has returned `code`: kFailed, with a word, instead of kDone if standard output could not be
// written. Quietly, as by SIGPIPE, if nobody reads it any more.
int ended(int code, const char* program = "bsp-operator");

}  // namespace bsp::cli
