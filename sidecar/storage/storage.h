// Where the images of checkpoint sets lie: a mounted directory (directory.h) or a bucket (bucket.h).
//
//   <place>/<job uid>/set-<set>/rank-<rank>      an image, complete
//   <place>/<job uid>/set-<set>/whole-<rank>     it doesn't build on the group's first set, nor do the rank's later ones
//   <place>/<job uid>/of-<owner>                 the job takes its sets along when it is deleted (Orphans)
//
// An image may build on that of the same rank in the first set of its group (wire::base_of, delta.h), and on no other. So a set
// that nobody needs for itself stays as long as one of its group does, whoever asks for its removal. Only marks let go of an image
// earlier: where storage lists late, something stays too long, and never too short. A rank whose image was whole once builds on
// none until the next group.
//
// Whoever else can write there is not trusted: what a file says is believed only as far as image.h authenticates it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "sidecar/storage/image.h"

namespace bsp::storage {

// As the operator's environment variables say it (crds/names.h).
struct Location {
  std::string place = {};  // an absolute directory, or s3://bucket[/prefix]; "": there is none
  // Of a bucket:
  std::string endpoint = {};  // http[s]://host[:port]
  std::string region = {};    // that requests are signed for
  std::string credentials =
      {};               // directory of the files AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and perhaps AWS_SESSION_TOKEN
  std::string ca = {};  // file with the certificates to trust; "": the usual ones
  std::string client = {};                                       // path of rclone
  std::chrono::milliseconds patience = std::chrono::minutes(2);  // without any progress
};

// Sets of jobs that are gone without them: the storage was away, or a node that was lost has stored more since. Whoever else uses the
// place has an owner of another name, so nobody takes another's sets for orphans.
struct Orphans {
  std::string owner;              // an operator, and a namespace of its jobs
  std::vector<std::string> jobs;  // whose sets stay: they exist, or others go on from them
  std::chrono::seconds age;       // nothing of an orphan was written for so long
};
inline constexpr std::size_t kMostOrphans = 20;  // that go at once; the others have to wait

// Set by another thread to end a call that waits for the storage; null: nothing ends it.
using GivenUp = const std::atomic<bool>*;

// A new image. The destructor removes it unless publish() has succeeded.
class NewImage {
 public:
  NewImage() = default;
  NewImage(const NewImage&) = delete;
  NewImage& operator=(const NewImage&) = delete;
  virtual ~NewImage() = default;

  virtual Result<void> write(std::span<const std::byte> bytes) = 0;
  // Once it returns, the image is durable and has its name. kConflict if an image of that name exists: it is never replaced.
  virtual Result<void> publish() = 0;
  // That others have used for it.
  [[nodiscard]] virtual std::chrono::nanoseconds cpu_time() const { return {}; }
};

class StoredImage {
 public:
  StoredImage() = default;
  StoredImage(const StoredImage&) = delete;
  StoredImage& operator=(const StoredImage&) = delete;
  virtual ~StoredImage() = default;

  // The number of bytes read; 0: the file has ended, as it is stored.
  virtual Result<std::size_t> read(std::span<std::byte> into) = 0;
};

// For several threads. Every call may block for as long as the storage hangs. An error says what the storage has to allow, and
// whom; kNotFound, kRefused and kInvalid are about the image, all others about the storage.
class Storage {
 public:
  Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  virtual ~Storage() = default;

  // `bytes`: of the file, at most.
  [[nodiscard]] virtual Result<std::unique_ptr<NewImage>> create(const ImageName& name, std::uint64_t bytes,
                                                                 GivenUp given_up) const = 0;
  // kNotFound: it isn't there.
  [[nodiscard]] virtual Result<std::unique_ptr<StoredImage>> open(const ImageName& name, GivenUp given_up) const = 0;
  // The same for who has one open that builds on it.
  [[nodiscard]] virtual Result<std::unique_ptr<StoredImage>> open_base(const ImageName& name, GivenUp given_up) const {
    return open(name, given_up);
  }
  // The rank's image is whole, and the later ones of its group will be: puts the mark.
  [[nodiscard]] virtual Result<void> mark_whole(const ImageName& name, GivenUp given_up) const = 0;
  // Removes the job's sets below `below`, but for those in `keep` and the images on which those may build; and returns the numbers of
  // those of which nothing is left. What can't be removed stays for the next call.
  [[nodiscard]] virtual Result<std::vector<std::uint64_t>> remove_sets(const std::string& job_uid, std::uint64_t below,
                                                                       const std::vector<std::uint64_t>& keep,
                                                                       GivenUp given_up) const = 0;
  // Puts the owner's mark on what is stored of a job, with the storage's present time; owner "": takes off all marks.
  [[nodiscard]] virtual Result<void> mark_job(const std::string& job_uid, const std::string& owner,
                                              GivenUp given_up) const = 0;
  // Removes the orphans of the owner whose mark that job has, and returns the uids of their jobs. The storage's own times are compared,
  // with that of the job's mark for the present one. What isn't listed, or has a file whose time can't be read, stays.
  [[nodiscard]] virtual Result<std::vector<std::string>> remove_orphans(const std::string& job_uid,
                                                                        const Orphans& orphans,
                                                                        GivenUp given_up) const = 0;
  // Removes all that is stored of a job, whatever it is, and nothing else. Success: nothing of it is left.
  [[nodiscard]] virtual Result<void> remove_job(const std::string& job_uid, GivenUp given_up) const = 0;
};

// Does no I/O. Null: there is no storage.
std::shared_ptr<const Storage> open_storage(const Location& location);

// The names in a place, for both kinds of it.
bool is_name(std::string_view text);  // a uid becomes one
std::string set_name(std::uint64_t set);
std::string file_name(const ImageName& name);
std::optional<std::uint64_t> set_of(std::string_view directory);  // of set_name()
inline constexpr std::string_view kOwner = "of-";                 // begins the name of an owner's mark
std::string mark_name(const ImageName& name);

// The files of a set.
using ListFiles = std::function<Result<std::vector<std::string>>(std::uint64_t set)>;
// What goes of a set that isn't in `keep`. An image that is being stored builds on a base only while one that is kept may.
struct Removable {
  bool all = false;                // nobody builds on it
  std::vector<std::string> files;  // else: these, all of which were listed, and nothing that is listed later
};
Result<Removable> removable(std::uint64_t set, std::vector<std::uint64_t> keep, const ListFiles& list);

}  // namespace bsp::storage
