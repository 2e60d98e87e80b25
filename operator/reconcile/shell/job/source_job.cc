#include "operator/reconcile/shell/job/source_job.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <format>

#include "base/core/hex.h"
#include "base/net/pki.h"
#include "crds/sets/set_keys.h"
#include "operator/kube/client.h"

namespace bsp::reconcile {

Result<std::string> own_sets(std::string_view seed, const std::string& uid) {
  return net::derive_key(seed, crds::sets_of_job(uid));
}

Result<std::string> grant_of(std::string_view seed, const std::string& name_space, const std::string& uid) {
  BSP_TRY(const std::string code,
          net::derive_key(seed, std::format("grant of {} {} in namespace {}", uid.size(), uid, name_space)));
  return hex_of(code);
}

Result<std::string> granted_sets(std::string_view seed, const std::string& name_space, const std::string& uid,
                                 const std::string& grant) {
  BSP_TRY(const std::string due, grant_of(seed, name_space, uid));
  if (grant.size() != due.size() || CRYPTO_memcmp(grant.data(), due.data(), due.size()) != 0)
    return fail(ErrorCode::kRefused,
                std::format("nothing grants jobs of namespace {} the checkpoint sets of job {}", name_space, uid));
  return own_sets(seed, uid);
}

bool awaits_source(const crds::BspJob& job) {
  const auto& c = job.status.checkpoint;
  return job.spec.restore_from && job.spec.restore_from->exported.empty() &&
         job.metadata.deletion_timestamp == Time{} && (!c || c->ids_used == 0);
}

SourceJob read_source(kube::Client& client, const crds::BspJob& job,
                      const std::function<Result<std::string>(const std::string& uid)>& grant) {
  SourceJob source;
  const std::string& name = job.spec.restore_from->job;
  const std::string& own = job.metadata.name_space;
  const std::string& wanted = job.spec.restore_from->name_space;
  const std::string& at = wanted.empty() ? own : wanted;
  const bool elsewhere = at != own;
  // Who isn't allowed to read a job doesn't learn whether there is one.
  const std::string not_found =
      elsewhere ? std::format("there is no job {} in namespace {} whose spec.checkpoint.allowedNamespaces names {}",
                              name, at, own)
                : std::format("there is no job {} in namespace {}", name, at);
  const auto object = client.get({kBspJob, at, name});
  if (!object) {
    source.trouble = object.error().code == ErrorCode::kNotFound ? not_found : object.error().message;
    return source;
  }
  const auto read = crds::bsp_job_from_json(*object);
  if (elsewhere && (!read || !std::ranges::contains(read->spec.checkpoint.allowed_namespaces, own))) {
    source.trouble = not_found;
    return source;
  }
  if (!read) {
    source.trouble = std::format("job {} can't be read: {}", name, read.error().message);
    return source;
  }
  if (read->metadata.name != name || read->metadata.name_space != at || read->metadata.uid.empty()) {
    source.trouble = not_found;
    return source;
  }
  if (read->metadata.deletion_timestamp != Time{} &&
      read->spec.checkpoint.reclaim_policy == crds::ReclaimPolicy::kDelete) {
    source.trouble = std::format("job {} is being deleted, and with it its checkpoint sets", name);
    return source;
  }
  if (read->status.checkpoint) source.sets = read->status.checkpoint->sets;
  if (elsewhere && std::erase_if(source.sets, [](const crds::StoredSet& set) { return !set.of_job.empty(); }) > 0 &&
      source.sets.empty()) {
    source.trouble =
        std::format("job {} has only the set with which it began, of another job, and none of its own yet", name);
    return source;
  }
  const auto granted = grant(read->metadata.uid);
  if (!granted) {
    source.sets.clear();
    source.trouble = granted.error().message;
    return source;
  }
  source.uid = read->metadata.uid;
  source.epochs_used = read->status.epochs_used;
  source.grant = *granted;
  return source;
}

}  // namespace bsp::reconcile
