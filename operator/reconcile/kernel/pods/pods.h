// The pod of one rank, made from the user's template without harming it.
//
// What is added: the runtime at /bsp (an image volume, or a copy), /run/bsp on tmpfs, the sidecar as a native
// sidecar (init container with restartPolicy Always) with the pod's certificate, bsp-init in front of the
// user's command, the capabilities that criu needs, labels and an owner. What the user wrote stays:
// environment, resources, volumes, further containers. Our own containers pass the restricted Pod Security
// Standard; the app container does not, for bsp-init's sake.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "crds/bspjob.h"
#include "operator/reconcile/kernel/start/placement.h"

namespace bsp::reconcile {

// A pod to be created. `target`: it waits for a checkpoint instead of starting the program.
struct PodRequest {
  std::uint32_t rank = 0;  // in seat 0; the pod is named after it
  std::uint32_t generation = 0;
  std::uint32_t attempt = 0;
  std::string set = {};
  std::string node = {};    // as planned
  bool pinned = false;      // a person named that node
  std::string not_on = {};  // the node that the rank leaves for another one of the same Set; "": any will do
  std::vector<std::string> unfit = {};  // nodes on which its ranks can't be restored
  std::string rather_not_on = {};       // a node where that has failed; "": none
  bool target = false;
  bool resumes = false;                    // it waits for the images of a checkpoint set, one for each rank
  std::string migration = {};              // of a target
  std::string pod_group = {};              // "": none (gang.h)
  std::vector<std::uint32_t> beside = {};  // ranks in its further seats
  std::string runtime_image = {};          // of the attempt's other pods; "": PodOptions's

  [[nodiscard]] std::vector<std::uint32_t> ranks() const;  // by seat
};

std::string pod_name(const std::string& job, std::uint32_t rank, std::uint32_t generation);
// The Secret that holds a pod's key: of a target its own; those of an attempt's first pods lie together, kPodsPerSecret
// in one, since each object costs a request. A pod mounts only its own part. The name holds the job's uid, so a Secret of
// that name is this job's, and the operator never has to read it.
inline constexpr std::uint32_t kPodsPerSecret = 32;
struct JobId {
  std::string name, uid;
};
std::string name_of_job(const JobId& job);  // of what the operator makes for it and never reads
std::string secret_name(const JobId& job, const PodRequest& request);
PodRequest request_of(const nlohmann::json& pod);  // by its labels and annotations
// The reference by which other pods get the very image that a container has: the repository of `reference`, under which it was
// pulled, with the digest in `image_id`, its imageID. `reference` itself where the imageID names another repository or has no
// digest, as of an image that was loaded onto the node. Local mode's imageID, podman://<id>, is such a reference already.
std::string image_by_digest(const std::string& reference, const std::string& image_id);
// The names in it of a pod's certificate and key; "ca.pem" is common to all.
std::string certificate_file(const std::string& pod);
std::string key_file(const std::string& pod);
// <job>-w<wave>-r<rank>
std::string migration_name(const crds::ObjectMeta& job, std::uint32_t wave, std::uint32_t rank);

// `command` of the app container, or what the image itself would run if the template names none.
struct ImageDefaults {
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::string user;  // of the image's configuration; "": root
};
// The seccomp profile that the template names for the program; null: none, or Unconfined.
nlohmann::json asked_seccomp(const crds::BspJobSpec& spec);
// criu can't dump a process under any filter without CAP_SYS_ADMIN outside of all user namespaces (it asks the kernel for
// PTRACE_O_SUSPEND_SECCOMP), whatever the filter lets through. So the profile stays only where no rank is to move.
bool keeps_seccomp(const crds::BspJobSpec& spec);
// Of a job that makes checkpoint sets: where its sidecars put them, or the credentials of a bucket, and its server's CA.
inline constexpr const char* kSetsVolume = "bsp-sets";
inline constexpr const char* kSetsCaVolume = "bsp-sets-ca";
// Of a job that begins with an exported set: its key.
inline constexpr const char* kSetKeyVolume = "bsp-set-key";
nlohmann::json make_pod(const crds::BspJob& job, const PodRequest& request, const ImageDefaults& image,
                        const PodOptions& options = {});
// `files`: names and PEM texts.
nlohmann::json make_secret(const crds::BspJob& job, const std::string& name,
                           const std::map<std::string, std::string>& files);
// Of any object that goes with the job.
nlohmann::json owner_reference(const crds::BspJob& job);
// The metadata of an object beside the pods that belongs to the job: its Secrets, NetworkPolicy, PodDisruptionBudget.
nlohmann::json metadata_of_object(const crds::BspJob& job, const std::string& name);

}  // namespace bsp::reconcile
