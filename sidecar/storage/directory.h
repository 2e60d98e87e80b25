// Images in a directory: a mounted volume, or in local mode a directory of the host.
//
//   <root>/<job uid>/set-<set>/rank-<rank>      a whole image: it gets its name only once it is complete and synced
//   <root>/<job uid>/set-<set>/.rank-<rank>.*   one that is being written, or was when its writer died
//
// Whoever else writes there is not trusted: names are opened without following links, and what a file says is believed only
// as far as image.h authenticates it. All calls block for as long as the storage hangs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/core/error.h"
#include "base/core/fd.h"
#include "sidecar/storage/image.h"

namespace bsp::storage {

// A new image. The destructor removes it unless publish() has succeeded.
class NewImage {
 public:
  NewImage(NewImage&& other) noexcept = default;
  NewImage& operator=(NewImage&&) = delete;
  ~NewImage();

  Result<void> write(std::span<const std::byte> bytes);
  // kConflict if an image of that name exists: it is never replaced.
  Result<void> publish();

 private:
  friend class Directory;
  NewImage(Fd directory, Fd file, std::string temporary, std::string name)
      : directory_(std::move(directory)),
        file_(std::move(file)),
        temporary_(std::move(temporary)),
        name_(std::move(name)) {}
  Fd directory_, file_;
  std::string temporary_, name_;
};

class Directory {
 public:
  explicit Directory(std::string root) : root_(std::move(root)) {}

  // An error says what the directory has to allow, and whom.
  [[nodiscard]] Result<NewImage> create(const ImageName& name) const;
  // kNotFound: it isn't there.
  [[nodiscard]] Result<Fd> open(const ImageName& name) const;
  // Removes the job's sets below `below`, but for those in `keep`, and returns their numbers. What can't be removed stays for
  // the next call.
  [[nodiscard]] Result<std::vector<std::uint64_t>> remove_sets(const std::string& job_uid, std::uint64_t below,
                                                               const std::vector<std::uint64_t>& keep) const;

 private:
  std::string root_;
};

}  // namespace bsp::storage
