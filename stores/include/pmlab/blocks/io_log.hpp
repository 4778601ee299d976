// The file that `recorded` writes and `pmlab verify --io-log` reads: each submission and completion of a device's
// requests, in an order in which they happened.
//
//   header: magic, version, geometry, checksum (64 bytes)
//   record: 48 bytes, then the data of a submitted write, or the text of a mark, padded to 8 bytes
//
// Each record has a checksum over itself and its data, so a reader tells a log that was cut off from a damaged one.
#pragma once

#include <pmlab/base/checksum.hpp>
#include <pmlab/base/durable_name.hpp>
#include <pmlab/blocks/device.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <istream>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

namespace pmlab::blocks {

// The kinds of records.
enum class io_event : std::uint8_t {
  submitted = 1,  // before the inner device was given the request
  completed = 2,  // after the inner device returned its completion
  mark = 3        // a text of the program, for example what it has acknowledged
};

// One event. The data of a submitted write, or the text of a mark, follows it.
struct io_record {
  std::uint64_t checksum = 0;            // checksum of the record, with 0 here, and its data
  std::uint64_t id = 0;                  // the request's; a completion has its submission's
  std::uint64_t first = 0;               // block
  std::uint32_t count = 0;               // blocks
  std::uint32_t data_bytes = 0;          // that follow, without the padding
  std::uint32_t queue = 0;               // which queue of the device
  std::int32_t error = 0;                // error of a completion: a std::errc
  io_event event = io_event::submitted;  // its kind
  operation what = operation::read;      // what the request does
  stream of = stream::data;              // stream of the request
  std::uint8_t unused[5] = {};           // zeros
};
static_assert(sizeof(io_record) == 48 && std::is_trivially_copyable_v<io_record>);

// The beginning of a log: the geometry of its device.
struct io_log_header {
  static constexpr std::array<char, 8> right_magic{'P', 'M', 'L', 'B', 'I', 'O', 'L', 'G'};  // beginning of every log
  static constexpr std::uint32_t current_version = 1;                                        // version of the format

  std::array<char, 8> magic = right_magic;  // right_magic
  std::uint32_t version = current_version;  // version of the log's format
  std::uint32_t block_bytes = 0;            // bytes of a block of the device
  std::uint64_t blocks = 0;                 // blocks of the device
  std::uint32_t atomic_bytes = 0;           // bytes that the device writes atomically
  std::uint32_t volatile_cache = 0;         // 0 or 1
  std::uint64_t unused[3] = {};             // zeros
  std::uint64_t checksum = 0;               // checksum of all before
};
static_assert(sizeof(io_log_header) == 64);

namespace detail {

inline constexpr std::size_t io_log_padding = 8;

// `sum`: checksum, or hash_of_bytes for a log of an earlier release.
template <class Sum>
[[nodiscard]] std::uint64_t io_checksum(io_record r, const void* data, Sum&& sum) noexcept {
  r.checksum = 0;
  return sum(data, r.data_bytes, sum(&r, sizeof r, 0));
}

}  // namespace detail

// Appends records. A record is with the kernel when `add` returns: it survives the end of the process, but not the end
// of the machine. Thread safety: any thread.
class io_log_writer {
 public:
  // Makes the file `path`, in place of an older one. Throws pmlab::error.
  io_log_writer(const std::string& path, const geometry& shape)
      : path_(path), file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
    if (!file_.is_open()) fail("make");
    io_log_header header;
    header.block_bytes = shape.block_bytes;
    header.blocks = shape.blocks;
    header.atomic_bytes = shape.atomic_bytes;
    header.volatile_cache = shape.volatile_cache ? 1 : 0;
    header.checksum = checksum(&header, offsetof(io_log_header, checksum));
    const iovec part{&header, sizeof header};
    write({&part, 1});
  }

  // `record.data_bytes` bytes of `data` follow the record. Throws pmlab::error if the log cannot grow.
  void add(io_record record, const void* data) {
    static constexpr std::array<char, detail::io_log_padding> zeros{};
    record.checksum = detail::io_checksum(record, data, checksum);
    const std::size_t padding =
        (detail::io_log_padding - record.data_bytes % detail::io_log_padding) % detail::io_log_padding;
    const std::array<iovec, 3> parts{{{&record, sizeof record},
                                      {const_cast<void*>(data), record.data_bytes},
                                      {const_cast<char*>(zeros.data()), padding}}};
    const std::scoped_lock lock(mutex_);
    write(parts);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw error("cannot " + what + " the log " + path_ + ": " + std::strerror(errno), "check its folder and its space");
  }

  void write(std::span<const iovec> parts) {
    std::array<iovec, 3> left{};
    std::copy(parts.begin(), parts.end(), left.begin());
    auto* first = left.data();
    auto* const end = first + parts.size();
    while (first != end) {
      ssize_t done = ::writev(file_.get(), first, static_cast<int>(end - first));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) fail("write");
      for (; first != end && static_cast<std::size_t>(done) >= first->iov_len; ++first)
        done -= static_cast<ssize_t>(first->iov_len);
      if (first == end) break;
      first->iov_base = static_cast<char*>(first->iov_base) + done;
      first->iov_len -= static_cast<std::size_t>(done);
    }
  }

  std::string path_;
  descriptor file_;
  std::mutex mutex_;
};

// Reads a log from its beginning. Not thread-safe.
class io_log_reader {
 public:
  // A record with its data.
  struct entry {
    io_record record;             // the event
    std::vector<std::byte> data;  // that followed it

    // The text of a mark.
    [[nodiscard]] std::string_view text() const noexcept {
      return {reinterpret_cast<const char*>(data.data()), data.size()};
    }
  };

  // Throws pmlab::error: no such file, no log, a damaged header, another version.
  explicit io_log_reader(const std::string& path) : path_(path), file_(path, std::ios::binary) {
    if (!file_) throw error("cannot read the log " + path + ": " + std::strerror(errno), "check its path");
    io_log_header header;
    file_.read(reinterpret_cast<char*>(&header), sizeof header);
    if (file_.gcount() != sizeof header || header.magic != io_log_header::right_magic)
      throw error(path + " is no log of a block device", "give a file that blocks::recorded has written");
    if (header.version != io_log_header::current_version)
      throw error(path + " is a log of version " + std::to_string(header.version) + ", this program reads version " +
                      std::to_string(io_log_header::current_version),
                  "record it again with this version");
    if (!is_checksum(header.checksum, &header, offsetof(io_log_header, checksum))) throw damaged("header", 0);
    shape_ = {header.blocks, header.block_bytes, header.atomic_bytes, header.volatile_cache != 0};
    check_geometry(shape_, path);
  }

  // The geometry of the recorded device.
  [[nodiscard]] const geometry& shape() const noexcept { return shape_; }

  // The next entry; nothing at the end. A record that the log ends within is not returned, and `cut_off` is true then:
  // the process was killed in the middle of a write. Throws pmlab::error for a damaged record.
  [[nodiscard]] std::optional<entry> next() {
    entry e;
    const std::uint64_t at = position_;
    const std::size_t got = read(&e.record, sizeof e.record);
    cut_off_ = got != 0;
    if (got != sizeof e.record) return std::nullopt;
    const std::size_t most = std::size_t{e.record.count} * shape_.block_bytes;
    if (e.record.event != io_event::mark && e.record.data_bytes > most) throw damaged("record", at);
    const std::size_t padded = (std::size_t{e.record.data_bytes} + detail::io_log_padding - 1) /
                               detail::io_log_padding * detail::io_log_padding;
    if (!read_all(e.data, padded)) return std::nullopt;
    cut_off_ = false;
    const bool padded_with_zeros =
        std::all_of(e.data.begin() + e.record.data_bytes, e.data.end(), [](std::byte b) { return b == std::byte{0}; });
    e.data.resize(e.record.data_bytes);
    const bool is_right = e.record.checksum == detail::io_checksum(e.record, e.data.data(), checksum) ||
                          e.record.checksum == detail::io_checksum(e.record, e.data.data(), hash_of_bytes);
    if (!padded_with_zeros || !is_right) throw damaged("record", at);
    return e;
  }

  // True if the log ended within a record.
  [[nodiscard]] bool cut_off() const noexcept { return cut_off_; }
  // Bytes read so far.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

 private:
  [[nodiscard]] error damaged(const std::string& what, std::uint64_t at) const {
    return {"the log " + path_ + " has a damaged " + what + " at byte " + std::to_string(at), "record it again"};
  }

  // In steps, so that a damaged length ends in "cut off" and not in a huge allocation.
  [[nodiscard]] bool read_all(std::vector<std::byte>& data, std::size_t bytes) {
    constexpr std::size_t step = std::size_t{1} << 20;
    while (data.size() < bytes) {
      const std::size_t had = data.size();
      data.resize(std::min(bytes, had + step));
      if (read(data.data() + had, data.size() - had) != data.size() - had) return false;
    }
    return true;
  }

  // How many bytes there were.
  [[nodiscard]] std::size_t read(void* to, std::size_t bytes) {
    file_.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
    const auto got = static_cast<std::size_t>(file_.gcount());
    position_ += got;
    return got;
  }

  std::string path_;
  std::ifstream file_;
  geometry shape_;
  std::uint64_t position_ = sizeof(io_log_header);
  bool cut_off_ = false;
};

}  // namespace pmlab::blocks
