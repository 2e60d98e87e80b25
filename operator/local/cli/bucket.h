// A bucket that a job of local mode stores in. A cluster has Secrets for it, and pods that remove what a deleted job has left; here the
// keys come from the variables that S3's clients read, and a container of the runtime's image removes.
#pragma once

#include <set>
#include <string>

#include "crds/bspjob.h"
#include "operator/local/cli/one_job.h"

namespace bsp::local {

// Whether --checkpoints names one: s3://BUCKET[/PREFIX]. kInvalid: neither that nor a directory.
Result<bool> names_bucket(const std::string& place);

// The bucket of that name, at the address that AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL says, in AWS_REGION or AWS_DEFAULT_REGION, with
// AWS_CA_BUNDLE if that is set. kInvalid: what is missing, and where it belongs.
Result<crds::S3Source> bucket_of(const std::string& place);

// Where this machine keeps the seed of the keys of what is stored there, which a bucket's other readers must not get: a directory of the
// user's, below XDG_STATE_HOME.
Result<std::string> own_directory_of(const std::string& place);

// The Secrets that the job names, of AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and the file AWS_CA_BUNDLE, which
// leave this process's environment: no program that it starts gets them.
Result<OneJob::Secrets> secrets_of(const crds::S3Source& s3);

// Removes all that is stored of jobs with these uids, and nothing else.
Result<void> remove_from_bucket(const crds::S3Source& s3, const OneJob::Secrets& secrets,
                                const std::set<std::string>& uids);

}  // namespace bsp::local
