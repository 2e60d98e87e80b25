// The keys of a bucket that a job stores in. A cluster has a Secret; here they come from the variables that S3's clients read.
#pragma once

#include "crds/bspjob.h"
#include "operator/local/cli/one_job.h"

namespace bsp::local {

// The Secrets that the job names, of AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and the file AWS_CA_BUNDLE, which
// leave this process's environment: no program that it starts gets them.
Result<OneJob::Secrets> secrets_of(const crds::S3Source& s3);

}  // namespace bsp::local
