/* files GROUP: handles files as programs do, stops at two gates like gated.c, and checks after each whether all is as
 * before. Prints one line for each thing that is lost, and then exits with status 1. The working directory belongs to
 * the image (make_root.sh); /shared is a volume that all pods mount. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "gate.h"
#include "losses.h"

static void write_on(int fd, const char* text) { must(write(fd, text, strlen(text)) == (ssize_t)strlen(text), text); }
static void put(const char* path, int flags, const char* text) {
  int fd = open(path, O_WRONLY | O_CREAT | flags, 0644);
  must(fd >= 0, path);
  write_on(fd, text);
  must(close(fd) == 0, path);
}
static void expect_on(int fd, const char* what, const char* text) {
  char got[512] = "";
  const ssize_t n = pread(fd, got, sizeof(got) - 1, 0);
  got[n > 0 ? n : 0] = '\0';
  if (n < 0 || strcmp(got, text) != 0) loss(what, got);
}
static void expect(const char* path, const char* text) {
  int fd = open(path, O_RDONLY);
  if (fd < 0) {
    loss(path, "it can't be opened");
    return;
  }
  expect_on(fd, path, text);
  close(fd);
}
static struct stat of(const char* path) {
  struct stat info;
  memset(&info, 0, sizeof(info));
  if (lstat(path, &info)) loss(path, "it is not there");
  return info;
}
static void expect_absent(const char* path) {
  struct stat info;
  if (lstat(path, &info) == 0) loss(path, "it is there again");
  errno = 0;
}
static void expect_mode(const char* path, unsigned mode) {
  if ((of(path).st_mode & 07777) != mode) loss(path, "its mode is another one");
}

/* Round 0 is before the first gate; rounds 1 and 2 follow the first and the second. */

static void closed(int round) {
  if (round == 0) put("closed", O_EXCL, "one\n");
  if (round == 1) expect("closed", "one\n");
  if (round == 1) put("closed", O_APPEND, "two\n");
  if (round == 2) expect("closed", "one\ntwo\n");
  if (round == 0) put("/tmp/closed", O_EXCL, "in a tmpfs\n");
  if (round) expect("/tmp/closed", "in a tmpfs\n");
  static struct stat shared;
  if (round == 0) put("/shared/output", O_EXCL, "shared\n");
  if (round == 0) shared = of("/shared/output");
  if (round) expect("/shared/output", "shared\n");
  if (round &&
      (of("/shared/output").st_ino != shared.st_ino || of("/shared/output").st_ctim.tv_nsec != shared.st_ctim.tv_nsec))
    loss("/shared/output", "it was written again");
}

static void opened(int round) {
  static int written, appended, deleted, with_directory, renamed, read_only;
  if (round == 0) {
    must(mkdir("gone", 0755) == 0, "gone");
    written = open("written", O_RDWR | O_CREAT | O_EXCL, 0600);
    appended = open("appended", O_WRONLY | O_CREAT | O_APPEND, 0644);
    deleted = open("deleted", O_RDWR | O_CREAT, 0600);
    with_directory = open("gone/deleted", O_RDWR | O_CREAT, 0600);
    renamed = open("before", O_RDWR | O_CREAT, 0600);
    read_only = open("image/read", O_RDONLY);
    char first;
    must(written >= 0 && appended >= 0 && deleted >= 0 && with_directory >= 0 && renamed >= 0 && read_only >= 0,
         "open");
    must(!unlink("deleted") && !unlink("gone/deleted") && !rmdir("gone") && !rename("before", "after"), "remove");
    must(read(read_only, &first, 1) == 1, "read");
  }
  const char* before[] = {"", "round 0\n", "round 0\nround 1\n"};
  if (round) {
    char next = 0;
    expect_on(written, "written, by its descriptor", before[round]);
    expect("written", before[round]);
    expect("appended", before[round]);
    expect("after", before[round]);
    expect_on(deleted, "deleted", before[round]);
    expect_on(with_directory, "gone/deleted", before[round]);
    if (read(read_only, &next, 1) != 1 || next != "image"[round]) loss("image/read", "its position is another one");
    expect_absent("deleted");
    expect_absent("gone");
    expect_absent("before");
  }
  const int all[] = {written, appended, deleted, with_directory, renamed};
  for (int i = 0; i < 5; i++) write_on(all[i], round == 0 ? "round 0\n" : round == 1 ? "round 1\n" : "");
}

static void mapped(int round) {
  static char *shared, *own, *deleted, *of_image;
  if (round == 0) {
    char zeros[8192] = "";
    int fd = open("mapped", O_RDWR | O_CREAT, 0600), gone = open("unmapped", O_RDWR | O_CREAT, 0600);
    int image = open("image/read", O_RDONLY);
    must(fd >= 0 && gone >= 0 && image >= 0 && write(fd, zeros, 8192) == 8192 && write(gone, zeros, 8192) == 8192,
         "map");
    shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    own = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    deleted = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, gone, 0);
    of_image = mmap(NULL, 4, PROT_READ, MAP_PRIVATE, image, 0);
    must(shared != MAP_FAILED && own != MAP_FAILED && deleted != MAP_FAILED && of_image != MAP_FAILED, "mmap");
    close(fd), close(gone), close(image);
    must(unlink("unmapped") == 0, "unmapped");
    strcpy(own + 4096, "own 0");
  }
  const char *was[] = {"", "round 0", "round 1"}, *is[] = {"round 0", "round 1", "round 2"};
  if (round) {
    if (strcmp(shared, was[round])) loss("mapped", shared);
    expect("mapped", was[round]);
    if (strcmp(deleted, was[round])) loss("unmapped", deleted);
    if (strcmp(own + 4096, "own 0")) loss("mapped, private", own + 4096);
    if (memcmp(of_image, "imag", 4)) loss("image/read, mapped", "changed");
  }
  strcpy(shared, is[round]);
  strcpy(deleted, is[round]);
  expect("mapped", is[round]);
}

static const gid_t kGroup = 2222;
static void tree(int round) {
  static struct stat was;
  if (round == 0) {
    const struct timespec times[2] = {{1000000000, 123456789}, {1000000001, 987654321}};
    must(!mkdir("made", 0750) && !mkdir("made/deep", 0700) && !mkdir("made/deep/er", 02770), "mkdir");
    must(!mkdir("old-name", 0755) && !mkdir("made/empty", 0711), "mkdir");
    put("old-name/file", O_EXCL, "renamed\n");
    must(!rename("old-name", "new-name"), "rename");
    put("made/deep/file", O_EXCL, "deep\n");
    put("made/\xc3\xa4 name with = and\nline", O_EXCL, "odd\n");
    must(!chown("made/deep/er", -1, kGroup) && !chmod("made/deep/er", 02770), "chown");
    must(!chmod("made/deep/file", 04751) && !utimensat(AT_FDCWD, "made/deep/file", times, 0), "chmod");
    must(!symlink("deep/file", "made/relative") && !symlink("/nowhere", "made/dangling"), "symlink");
    must(!link("made/deep/file", "made/deep/er/second"), "link");
    must(!mkfifo("made/fifo", 0620) && !chmod("made/fifo", 0620), "mkfifo");
    must(!setxattr("made/deep/file", "user.unit", "kelvin", 6, 0), "setxattr");
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "made/left"};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    must(fd >= 0 && !bind(fd, (struct sockaddr*)&address, sizeof(address)) && !close(fd), "bind");
    put("made/deep/locked", O_EXCL, "locked\n");
    must(!mkdir("made/sealed", 0700), "sealed");
    put("made/sealed/file", O_EXCL, "sealed\n");
    must(!chmod("made/deep/locked", 0400) && !chmod("made/sealed", 0500), "chmod");
    was = of("made/deep/file");
    must(chdir("made/deep/er") == 0, "chdir");
    return;
  }
  char where[512] = "", unit[16] = "", target[64] = "";
  if (!getcwd(where, sizeof(where)) || strcmp(where, "/work/made/deep/er")) loss("the working directory", where);
  expect("../file", "deep\n");
  must(chdir("/work") == 0, "chdir");
  const struct stat is = of("made/deep/file");
  if (is.st_mtim.tv_sec != was.st_mtim.tv_sec || is.st_mtim.tv_nsec != was.st_mtim.tv_nsec)
    loss("made/deep/file", "its time is another one");
  if (is.st_ino != of("made/deep/er/second").st_ino || is.st_nlink != 2) loss("made/deep/er/second", "no hard link");
  if (of("made/deep/er").st_gid != kGroup) loss("made/deep/er", "its group is another one");
  if (is.st_uid != was.st_uid || is.st_gid != was.st_gid) loss("made/deep/file", "its owner is another one");
  expect_mode("made", 0750);
  expect_mode("made/deep", 0700);
  expect_mode("made/deep/er", 02770);
  expect_mode("made/empty", 0711);
  expect_mode("made/deep/file", 04751);
  expect_mode("made/deep/locked", 0400);
  expect_mode("made/sealed", 0500);
  expect("made/sealed/file", "sealed\n");
  expect("new-name/file", "renamed\n");
  expect("made/\xc3\xa4 name with = and\nline", "odd\n");
  expect_absent("old-name");
  if (!S_ISFIFO(of("made/fifo").st_mode)) loss("made/fifo", "no fifo");
  expect_mode("made/fifo", 0620);
  if (!S_ISSOCK(of("made/left").st_mode)) loss("made/left", "no socket");
  if (readlink("made/relative", target, 63) < 0 || strcmp(target, "deep/file")) loss("made/relative", target);
  memset(target, 0, sizeof(target));
  if (readlink("made/dangling", target, 63) < 0 || strcmp(target, "/nowhere")) loss("made/dangling", target);
  if (getxattr("made/deep/file", "user.unit", unit, 15) != 6 || strcmp(unit, "kelvin")) loss("made/deep/file", "xattr");
  must(chdir("made/deep/er") == 0, "chdir");
}

static void of_the_image(int round) {
  if (round == 0) {
    put("image/changed", O_APPEND, "+\n");
    put("image/truncated", O_TRUNC, "short\n");
    put("/roots/writable", O_APPEND, "+\n");
    must(!unlink("image/deleted") && !chmod("image/mode", 0600), "image");
    must(!unlink("image/directory/a") && !unlink("image/directory/b") && !rmdir("image/directory"), "directory");
    must(!unlink("image/replaced/a") && !rmdir("image/replaced"), "replaced");
    put("image/replaced", O_EXCL, "now a file\n");
    must(!unlink("image/file") && !mkdir("image/file", 0755), "file");
    put("image/file/in", O_EXCL, "now a directory\n");
    must(!unlink("image/emptied/a"), "emptied");
    must(!rename("image/moved", "image/moved-away"), "moved");
    put("image/deep/er/added", O_EXCL, "added\n");
    return;
  }
  expect("image/changed", "changed\n+\n");
  expect("image/truncated", "short\n");
  expect("/roots/writable", "writable\n+\n");
  if (of("/roots/writable").st_uid != 0) loss("/roots/writable", "it is no longer root's");
  expect_mode("image/mode", 0600);
  expect("image/mode", "mode\n");
  expect_absent("image/deleted");
  expect_absent("image/directory");
  expect("image/replaced", "now a file\n");
  expect("image/file/in", "now a directory\n");
  expect_absent("image/emptied/a");
  expect("image/emptied/b", "b\n");
  expect_absent("image/moved");
  expect("image/moved-away", "moved\n");
  expect("image/deep/er/added", "added\n");
  expect("image/deep/er/there", "there\n");
  expect("image/untouched", "untouched\n");
}

/* As root, but without its capabilities, like the program of an image that names no user. */
static void of_root(int round) {
  if (round == 0) {
    must(!mkdir("/roots/output", 0755), "mkdir");
    must(!rename("/etc/group", "/etc/groups"), "rename");
    must(!unlink("/roots/writable"), "unlink");
    put("/roots/beside", O_EXCL, "beside\n");
    put("/roots/output/file", O_EXCL, "file\n");
    put("/etc/passwd", O_APPEND, "new:x:7:7:::\n");
    must(!mkdir("/dev/made", 0700) && !symlink("made/file", "/dev/link"), "/dev");
    put("/dev/made/file", O_EXCL, "in /dev\n");
    put("/dev/null", 0, "nothing\n");
    must(!chdir("/roots/output"), "chdir");
    return;
  }
  expect("/dev/link", "in /dev\n");
  expect_mode("/dev/made", 0700);
  if (!S_ISCHR(of("/dev/null").st_mode)) loss("/dev/null", "no device");
  expect("/roots/beside", "beside\n");
  expect("file", "file\n");
  expect_absent("/etc/group");
  expect_absent("/roots/writable");
  expect("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nuser:x:1001:100:User:/home/user:/bin/sh\nnew:x:7:7:::\n");
  expect("/etc/groups", "root:x:0:\nusers:x:100:\n");
}

static void large(int round) {
  const off_t hole = (off_t)8 << 30;
  enum { kBig = 48 << 20 };
  char* big = malloc(kBig);
  must(big != NULL, "memory");
  for (int i = 0; i < kBig; i++) big[i] = (char)(i * 2654435761u >> 11);
  if (round == 0) {
    int fd = open("sparse", O_RDWR | O_CREAT, 0600);
    must(fd >= 0 && pwrite(fd, "middle", 6, hole / 2) == 6 && !ftruncate(fd, hole) && !close(fd), "sparse");
    fd = open("hollow", O_RDWR | O_CREAT, 0600);
    must(fd >= 0 && !ftruncate(fd, hole) && !close(fd), "hollow");
    fd = open("big", O_RDWR | O_CREAT, 0600);
    must(fd >= 0 && write(fd, big, kBig) == kBig && !close(fd), "big");
  } else {
    char got[8] = "";
    const struct stat sparse = of("sparse");
    int fd = open("sparse", O_RDONLY);
    if (sparse.st_size != hole || pread(fd, got, 6, hole / 2) != 6 || strcmp(got, "middle")) loss("sparse", got);
    if (sparse.st_blocks > 1024 || of("hollow").st_blocks > 1024) loss("sparse", "its holes are filled");
    if (of("hollow").st_size != hole) loss("hollow", "its size is another one");
    close(fd);
    char* read_back = calloc(1, kBig);
    fd = open("big", O_RDONLY);
    if (!read_back || read(fd, read_back, kBig) != kBig || memcmp(big, read_back, kBig)) loss("big", "changed");
    close(fd);
    free(read_back);
  }
  free(big);
}

/* What can't be carried: the program runs on, and its rank stays. */
static void unreadable(int round) {
  if (round > 0) return;
  put("unreadable", O_EXCL, "secret\n");
  must(!chmod("unreadable", 0), "chmod");
}
static void sealed_writer(int round) {
  static int fd;
  if (round == 0) must((fd = open("sealed", O_WRONLY | O_CREAT, 0400)) >= 0, "sealed");
  write_on(fd, "more\n");
}
static void linked(int round) {
  if (round > 0) return;
  must(open("first", O_RDWR | O_CREAT, 0600) >= 0 && !link("first", "second") && !unlink("first"), "linked");
}
/* Working directories that the user may not enter, or not list, any more. */
static void unenterable(int round) {
  if (round == 0) must(!mkdir("shut", 0700) && !chdir("shut") && !chmod("../shut", 0600), "shut");
}
static void unlistable(int round) {
  if (round == 0) must(!mkdir("shut", 0700) && !chdir("shut") && !chmod("../shut", 0311), "shut");
}
static void too_much(int round) {
  char piece[1 << 20];
  memset(piece, 7, sizeof(piece));
  int fd = open("too-much", O_WRONLY | O_CREAT, 0600);
  must(fd >= 0, "too-much");
  for (int i = 0; round == 0 && i < 40; i++) must(write(fd, piece, sizeof(piece)) == sizeof(piece), "too-much");
  close(fd);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(int round);
  } kGroups[] = {{"closed", closed},        {"opened", opened}, {"mapped", mapped},     {"tree", tree},
                 {"image", of_the_image},   {"large", large},   {"root", of_root},      {"unreadable", unreadable},
                 {"sealed", sealed_writer}, {"linked", linked}, {"too-much", too_much}, {"unenterable", unenterable},
                 {"unlistable", unlistable}};
  umask(022);
  for (size_t i = 0; i < sizeof(kGroups) / sizeof(*kGroups); i++) {
    if (argc != 2 || strcmp(argv[1], kGroups[i].name) != 0) continue;
    for (int round = 0; round < 3; round++) {
      if (round) stop_until_next_epoch();
      kGroups[i].run(round);
    }
    return lost;
  }
  return 98;
}
