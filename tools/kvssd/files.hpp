// The files of a device: its drive PATH and its memory PATH.memory; and PATH.unfinished/, in which they are made.
//
// A name is free only where the system reports that nothing has it (ENOENT). A link that leads nowhere, a folder that
// may not be entered, a failing drive: the user's data may be behind each. Nothing is made in place of a name that
// cannot be reached, and rebuild=yes is no remedy for it.
//
// PATH may be a link to the drive, and PATH.memory one to the memory. A memory behind a link is made again where it
// lies, as that may be another file system: in MEMORY.making/, which is there only while PATH.unfinished/ is.
//
// A making that was killed leaves the folder. Order of the last steps:
//   (R1) the memory has its name  (R2) the drive has its name
//   (R1) < (R2): a drive without a memory was never made here. Between them the new drive is in the folder, and its
//   memory is not; the next `making` does the rest.
// A memory for a drive that has its name already, of a rebuilding or of a block device, is the drive's only one when it
// is complete, though it has no name yet: the next `making` gives it one.
#pragma once

#include <pmlab/base/durable_name.hpp>

#include <string>
#include <vector>

namespace pmlab::kvssd {

struct device_files {
  // Throws pmlab::error: PATH.memory cannot be reached.
  explicit device_files(const std::string& path);
  // The files of the device that `path` names, through links. Two names of a drive are one device: its memory is beside
  // the file behind the links. Releases before made it beside a link; that of a block device always is, as the folder
  // of such a device keeps no file. Where there are several memories, the one that fits is the device's. Throws
  // pmlab::error: too many links; no memory fits, and one cannot be reached.
  [[nodiscard]] static device_files named_by(const std::string& path);

  // Both throw pmlab::error: the name cannot be reached.
  [[nodiscard]] bool has_drive() const;
  [[nodiscard]] bool has_memory() const;
  // False: nothing was ever acknowledged that is in it. REQUIRES: has_memory. Throws pmlab::error: it is no pool.
  [[nodiscard]] bool has_whole_memory() const;
  // The file is the complete memory of the drive, and of its moment. Throws pmlab::error: it is there, and cannot be
  // judged, since it or the drive cannot be opened.
  [[nodiscard]] bool fits(const std::string& other) const { return fit(other, drive); }
  [[nodiscard]] static bool fit(const std::string& of_memory, const std::string& of_drive);
  // The same. False: or it cannot be judged.
  [[nodiscard]] bool surely_fits(const std::string& other) const;
  // The drive has the header of a device that was never opened. Throws pmlab::error: it cannot be read.
  [[nodiscard]] bool drive_was_made_only() const;
  [[nodiscard]] bool drive_is_block_device() const;
  // False: it is there, and cannot be a drive, as a pipe or /dev/null. Such a node is never replaced.
  [[nodiscard]] bool drive_is_file_or_block_device() const;
  // It begins with the header of a device. Throws pmlab::error: it cannot be read.
  [[nodiscard]] bool drive_has_header() const;
  // It has no byte but zeros: releases before made the drive under its name. Reads all of it.
  [[nodiscard]] bool drive_is_blank() const;

  // Gives the new files their names, durably; the drive only if it is new, too. Throws pmlab::error: none has its name
  // then.
  void name_new_ones(bool with_drive) const;
  // Completes that where a crash interrupted it, and a rebuilding. Removes what a making left behind it. True: the
  // memory of a rebuilding got its name. Throws pmlab::error.
  bool finish() const;
  void remove_memory() const;
  // Throws pmlab::error: the memory is there, and another file cannot replace it.
  void check_that_memory_is_a_file() const;

  std::string drive, memory, folder, memory_folder, lock, new_drive, new_memory, rebuilt;
  // Memories beside other names of the drive.
  std::vector<std::string> other_memories;
};

// The right to make files in the folder. Its beginning names those that are complete. It and its end remove the other
// files in the folder, and the folder. The lock of a process ends with it.
class making {
 public:
  // Throws pmlab::error: another one makes this device; the folder cannot be made.
  explicit making(const device_files& at);
  making(const making&) = delete;
  making& operator=(const making&) = delete;
  ~making();
  // Its beginning gave the memory of a rebuilding its name.
  [[nodiscard]] bool has_ended_rebuilding() const noexcept { return has_ended_rebuilding_; }

 private:
  void name_complete_ones();
  void give_back_folder() const noexcept;
  void remove_files() const noexcept;

  const device_files& at_;
  descriptor lock_;
  bool has_ended_rebuilding_ = false;
};

}  // namespace pmlab::kvssd
