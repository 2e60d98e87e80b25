// What the threads do that carry images between memory and storage. Both block for as long as the storage hangs, so nobody
// waits for them: `given_up` ends them at the next piece.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/core/error.h"
#include "sidecar/agent/transfer_threads.h"
#include "sidecar/storage/delta.h"
#include "sidecar/storage/image.h"
#include "sidecar/storage/storage.h"
#include "sidecar/transfer/stream.h"

namespace bsp::sidecar {

// A file that only this process has: on the pod's tmpfs, so that its volume's size limit counts it, and it ends with the process.
Result<Fd> memory_file(const std::string& directory);

struct ImageKeys {
  std::shared_ptr<const storage::Storage> storage;
  storage::ImageName name;
  std::string key;
  std::string key_file = {};  // that holds the key of an exported set; "": `key` is it
  std::uint64_t base = 0;     // of a new one: the set that it may build on; 0: none
};

struct StoredRank {
  storage::Sealed sealed;
  std::uint64_t built_on = 0;  // the set of the image without which this one is of no use; 0: it is whole
  std::shared_ptr<const storage::Base> base;  // on which the rank's next image may build; null: on none
};

// Writes `bytes` of the file into the storage, and frees the memory on the way; only what `base` doesn't have, if the image may
// build on that one, it saves half, and the storage still holds the base. Takes at most a quarter of a core, since the program
// computes meanwhile. `base`: the last one that this rank has stored, or null.
Result<StoredRank> store_image(const ImageKeys& image, int file, std::uint64_t bytes,
                               std::shared_ptr<const storage::Base> base, const std::atomic<bool>& given_up);

// Reads an image from the storage into the receiver. An image that is not listed yet is waited for.
Result<StreamEnd> load_image(const ImageKeys& image, const std::string& digest, transfer::Receiver& receiver,
                             const std::atomic<bool>& given_up);
// Whether the storage, after that error of load_image(), holds something else than the image, and always will.
bool is_damage(const Error& error);

// bsp-sidecar --remove-sets: removes what is stored of one job (BSP_JOB_UID) and ends. Its pod is made once the job is being deleted and
// none of its other pods is left (operator/reconcile/kernel/checkpoints/reclaim.h). 0: nothing of it is left. 1: the storage refuses. 2:
// the environment names no job or no storage. The container's termination message says why.
// bsp-sidecar --retain-sets: only takes off the mark by which they would be removed later (storage.h, Orphans).
int remove_sets(bool retain);

}  // namespace bsp::sidecar
