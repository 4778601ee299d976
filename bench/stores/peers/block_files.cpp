#include "bench/stores/peers/block_files.hpp"

#include <pmlab/base/checksum.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

namespace pmlab::stores {
namespace {

constexpr std::uint64_t magic = 0x53454c49464b4c42;  // "BLKFILES"
constexpr std::uint64_t directory_bytes = std::uint64_t{1} << 20;
constexpr std::size_t write_unit = std::size_t{1} << 20;     // a file's data waits in memory for so much
constexpr std::size_t extent_unit = std::size_t{1} << 18;    // a file's space grows by multiples of this
constexpr std::size_t log_unit = std::size_t{1} << 16;       // that of a log which grows
constexpr std::size_t request_bytes = std::size_t{1} << 17;  // a larger transfer is several requests at once
constexpr unsigned queue_depth = 8;

struct directory_header {
  std::uint64_t magic = 0;
  std::uint64_t sequence = 0;
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;  // checksum of the text, seeded with the sequence
};

struct extent {
  std::uint64_t first;
  std::uint64_t count;
};

class text_writer {
 public:
  void number(std::uint64_t n) {
    const auto* const at = reinterpret_cast<const std::byte*>(&n);
    text_.insert(text_.end(), at, at + sizeof n);
  }
  void name(const std::string& s) {
    number(s.size());
    const auto* const at = reinterpret_cast<const std::byte*>(s.data());
    text_.insert(text_.end(), at, at + s.size());
  }
  [[nodiscard]] std::vector<std::byte> take() { return std::move(text_); }

 private:
  std::vector<std::byte> text_;
};

// Reads a text whose checksum was right: it is as text_writer wrote it.
class text_reader {
 public:
  explicit text_reader(std::span<const std::byte> text) : left_(text) {}
  [[nodiscard]] bool at_end() const { return left_.empty(); }
  [[nodiscard]] std::uint64_t number() {
    std::uint64_t n = 0;
    std::memcpy(&n, left_.data(), sizeof n);
    left_ = left_.subspan(sizeof n);
    return n;
  }
  [[nodiscard]] std::string name() {
    const std::size_t bytes = number();
    std::string s(reinterpret_cast<const char*>(left_.data()), bytes);
    left_ = left_.subspan(bytes);
    return s;
  }

 private:
  std::span<const std::byte> left_;
};

[[nodiscard]] std::uint64_t round_up(std::uint64_t n, std::uint64_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

// `bytes` is the file's size. `tail` has the bytes from `tail_at` on that were appended; all others are on the device.
class block_files::file {
 public:
  std::string name;
  blocks::stream of = blocks::stream::data;
  bool removed = false;
  std::uint64_t bytes = 0;
  std::uint64_t on_device = 0;  // bytes that were written to the device
  std::vector<extent> extents;
  std::mutex writing;           // guards all below, and appends
  std::uint64_t tail_at = 0;    // where the tail begins: a multiple of a block
  std::vector<std::byte> tail;  // appended bytes from tail_at on: to the end of the file, or of what a log has so far
};

// Queues that threads borrow: opening one is slow on a real device.
class block_files::queue_pool {
 public:
  explicit queue_pool(blocks::any_device& device) : device_(device) {}

  class borrowed {
   public:
    explicit borrowed(queue_pool& from) : pool_(from), queue_(from.take()) {}
    borrowed(const borrowed&) = delete;
    borrowed& operator=(const borrowed&) = delete;
    ~borrowed() { pool_.give_back(std::move(queue_)); }

    // Performs all of them; throws pmlab::error if one fails, when all have ended.
    void perform(std::span<const blocks::request> requests) {
      std::array<blocks::completion, queue_depth> done{};
      std::errc failed{};
      const auto reap = [&] {
        const std::size_t count = queue_->reap(done, 1);
        for (std::size_t i = 0; i < count; ++i)
          if (!done[i].succeeded()) failed = done[i].error;
      };
      while (!requests.empty()) {
        requests = requests.subspan(queue_->submit(requests));
        reap();
      }
      while (queue_->in_flight() > 0) reap();
      if (failed != std::errc{})
        throw error("device " + pool_.device_.name() + " failed a request: " + blocks::describe(failed),
                    pool_.device_.failure().empty() ? "check the drive" : pool_.device_.failure());
    }
    void flush(blocks::stream of) {
      const blocks::request r{blocks::operation::flush, of, 0, 0, nullptr, 0};
      perform({&r, 1});
    }
    // `data` is a whole number of blocks.
    void transfer(blocks::operation what, blocks::stream of, std::uint64_t first, std::span<std::byte> data,
                  std::uint32_t block_bytes) {
      std::vector<blocks::request> requests;
      for (std::size_t at = 0; at < data.size(); at += request_bytes) {
        const std::size_t part = std::min(request_bytes, data.size() - at);
        requests.push_back(
            {what, of, static_cast<std::uint32_t>(part / block_bytes), first + at / block_bytes, data.data() + at, 0});
      }
      perform(requests);
    }

   private:
    queue_pool& pool_;
    std::unique_ptr<blocks::any_device::queue> queue_;
  };

 private:
  std::unique_ptr<blocks::any_device::queue> take() {
    {
      const std::scoped_lock lock(mutex_);
      if (!free_.empty()) {
        auto last = std::move(free_.back());
        free_.pop_back();
        return last;
      }
    }
    return std::make_unique<blocks::any_device::queue>(device_, queue_depth);
  }
  void give_back(std::unique_ptr<blocks::any_device::queue> queue) {
    const std::scoped_lock lock(mutex_);
    free_.push_back(std::move(queue));
  }

  blocks::any_device& device_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<blocks::any_device::queue>> free_;
};

block_files::block_files(blocks::any_device& device, bool format)
    : device_(device),
      shape_(device.shape()),
      directory_blocks_(static_cast<std::uint32_t>(directory_bytes / shape_.block_bytes)),
      queues_(std::make_unique<queue_pool>(device)) {
  if (shape_.blocks < 4 * std::uint64_t{directory_blocks_})
    throw error("device " + device.name() + " is too small for files", "give it at least 4 MiB");
  free_[2 * directory_blocks_] = shape_.blocks - 2 * directory_blocks_;
  if (!format) {
    load();
    return;
  }
  // Both places, so that no older directory is left.
  changed_ = 1;
  commit(1);
  changed_ = 2;
  commit(2);
}

block_files::~block_files() = default;

void block_files::load() {
  std::array<std::uint64_t, 2> sequences{};
  for (unsigned place = 0; place < 2; ++place) {
    blocks::buffer block(shape_.block_bytes);
    queue_pool::borrowed(*queues_).transfer(blocks::operation::read, blocks::stream::other,
                                            place * std::uint64_t{directory_blocks_}, block.bytes(),
                                            shape_.block_bytes);
    directory_header header;
    std::memcpy(&header, block.data(), sizeof header);
    sequences[place] = header.magic == magic ? header.sequence : 0;
  }
  const unsigned newer = sequences[1] > sequences[0] ? 1 : 0;
  if (!load_place(newer) && !load_place(1 - newer))
    throw error("device " + device_.name() + " has no valid directory of files", "format it, or give another device");
}

bool block_files::load_place(unsigned place) {
  blocks::buffer all(directory_bytes);
  queue_pool::borrowed(*queues_).transfer(blocks::operation::read, blocks::stream::other,
                                          place * std::uint64_t{directory_blocks_}, all.bytes(), shape_.block_bytes);
  directory_header header;
  std::memcpy(&header, all.data(), sizeof header);
  if (header.magic != magic || header.bytes > directory_bytes - sizeof header) return false;
  const std::span<const std::byte> text = all.bytes().subspan(sizeof header, header.bytes);
  if (!is_checksum(header.checksum, text.data(), text.size(), header.sequence)) return false;
  sequence_ = header.sequence;
  parse(text);
  return true;
}

void block_files::parse(std::span<const std::byte> text) {
  text_reader reader(text);
  while (!reader.at_end()) {
    auto f = std::make_shared<file>();
    f->name = reader.name();
    f->of = static_cast<blocks::stream>(reader.number());
    f->bytes = reader.number();
    const std::uint64_t count = reader.number();
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t first = reader.number();
      f->extents.push_back({first, reader.number()});
      mark_used(first, f->extents.back().count);
    }
    f->on_device = f->bytes;
    // The last block goes on in memory.
    f->tail_at = f->bytes / shape_.block_bytes * shape_.block_bytes;
    f->tail.resize(f->bytes - f->tail_at);
    if (!f->tail.empty()) static_cast<void>(read_blocks(*f, f->tail_at, f->tail));
    files_[f->name] = std::move(f);
  }
}

void block_files::mark_used(std::uint64_t first, std::uint64_t count) {
  auto at = free_.upper_bound(first);
  --at;
  const auto [start, length] = *at;
  free_.erase(at);
  if (first > start) free_[start] = first - start;
  if (start + length > first + count) free_[first + count] = start + length - first - count;
}

std::shared_ptr<block_files::file> block_files::create(const std::string& name, blocks::stream of) {
  auto f = std::make_shared<file>();
  f->name = name;
  f->of = of;
  const std::scoped_lock lock(mutex_);
  auto& place = files_[name];
  if (place != nullptr) release(*place);
  place = f;
  ++changed_;
  return f;
}

std::shared_ptr<block_files::file> block_files::open(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  const auto at = files_.find(name);
  return at == files_.end() ? nullptr : at->second;
}

bool block_files::exists(const std::string& name) const {
  const std::scoped_lock lock(mutex_);
  return files_.contains(name);
}

// Open files of a removed name can be read no more: their extents may have another owner.
void block_files::release(file& of) {
  of.removed = true;
  for (const extent& e : of.extents) freed_.emplace_back(e.first, e.count);
  of.extents.clear();
}

bool block_files::remove(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  const auto at = files_.find(name);
  if (at == files_.end()) return false;
  release(*at->second);
  files_.erase(at);
  ++changed_;
  return true;
}

bool block_files::rename(const std::string& from, const std::string& to) {
  const std::scoped_lock lock(mutex_);
  const auto at = files_.find(from);
  if (at == files_.end()) return false;
  if (from == to) return true;
  std::shared_ptr<file> moved = at->second;
  files_.erase(at);
  auto& place = files_[to];
  if (place != nullptr) release(*place);
  moved->name = to;
  place = std::move(moved);
  ++changed_;
  return true;
}

// With writing. Appends overwrite the file.
void block_files::begin_again(file& log) {
  write_out(log, true);
  log.tail.clear();
  const std::scoped_lock lock(mutex_);
  log.tail_at = 0;
}

void block_files::append_zeros(file& to, std::uint64_t bytes) {
  const std::vector<std::byte> zeros(write_unit);
  for (std::uint64_t left = bytes; left > 0; left -= std::min<std::uint64_t>(left, write_unit))
    append(to, std::span(zeros).first(std::min<std::uint64_t>(left, write_unit)));
  const std::scoped_lock writing(to.writing);
  begin_again(to);
}

std::shared_ptr<block_files::file> block_files::create_log(const std::string& name, std::uint64_t bytes) {
  std::shared_ptr<file> f = create(name, blocks::stream::log);
  append_zeros(*f, bytes);
  return f;
}

bool block_files::clear_log(const std::string& from, const std::string& to) {
  if (!rename(from, to)) return false;
  const std::shared_ptr<file> f = open(to);
  std::uint64_t written = 0;
  {
    const std::scoped_lock writing(f->writing);
    written = f->tail_at + f->tail.size();
    begin_again(*f);
  }
  append_zeros(*f, written);
  return true;
}

std::vector<std::string> block_files::names() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> all;
  for (const auto& [name, f] : files_) all.push_back(name);
  return all;
}

std::vector<std::string> block_files::children(std::string folder) const {
  if (!folder.ends_with('/')) folder += '/';
  std::set<std::string> all;
  for (const std::string& name : names())
    if (name.starts_with(folder)) all.insert(name.substr(folder.size(), name.find('/', folder.size()) - folder.size()));
  return {all.begin(), all.end()};
}

std::uint64_t block_files::size(const file& of) const {
  const std::scoped_lock lock(mutex_);
  return of.bytes;
}

std::uint64_t block_files::free_bytes() const {
  const std::scoped_lock lock(mutex_);
  std::uint64_t blocks = 0;
  for (const auto& [first, count] : free_) blocks += count;
  for (const auto& [first, count] : freed_) blocks += count;
  return blocks * shape_.block_bytes;
}

std::uint64_t block_files::used_bytes() const {
  return (shape_.blocks - 2 * std::uint64_t{directory_blocks_}) * shape_.block_bytes - free_bytes();
}

void block_files::append(file& to, std::span<const std::byte> data) {
  const std::scoped_lock writing(to.writing);
  to.tail.insert(to.tail.end(), data.begin(), data.end());
  bool grows = false;
  {
    const std::scoped_lock lock(mutex_);
    grows = to.tail_at + to.tail.size() > to.bytes;
    to.bytes = std::max(to.bytes, to.tail_at + to.tail.size());
  }
  // A log that is not synced with each record may be removed soon: a kernel writes its dirty pages back before.
  const std::size_t unit = grows && to.of == blocks::stream::log ? log_unit : write_unit;
  if (to.tail.size() >= unit) write_out(to, false);
}

// With mutex_. In extents of a unit and more, so that a file has few.
void block_files::allocate(file& to, std::uint64_t blocks_needed) {
  std::uint64_t have = 0;
  for (const extent& e : to.extents) have += e.count;
  const std::uint64_t unit = extent_unit / shape_.block_bytes;
  const std::vector<extent> before = to.extents;
  while (have < blocks_needed) {
    const std::uint64_t wanted = round_up(blocks_needed - have, unit);
    // The end of the file's last extent, if it is free; else the first place that is large enough, else the largest.
    auto best = to.extents.empty() ? free_.end() : free_.find(to.extents.back().first + to.extents.back().count);
    if (best == free_.end()) best = std::ranges::find_if(free_, [&](const auto& f) { return f.second >= wanted; });
    if (best == free_.end()) best = std::ranges::max_element(free_, {}, [](const auto& f) { return f.second; });
    if (best == free_.end()) {
      for (std::size_t i = 0; i < to.extents.size(); ++i) {
        const std::uint64_t kept = i < before.size() ? before[i].count : 0;
        if (to.extents[i].count > kept) free_[to.extents[i].first + kept] = to.extents[i].count - kept;
      }
      to.extents = before;
      throw no_room("no room for a file on device " + device_.name(), "use a larger device, or less data");
    }
    const std::uint64_t first = best->first;
    const std::uint64_t count = std::min(wanted, best->second);
    mark_used(first, count);
    if (!to.extents.empty() && to.extents.back().first + to.extents.back().count == first)
      to.extents.back().count += count;
    else
      to.extents.push_back({first, count});
    have += count;
  }
}

// With to.writing. Writes whole blocks of the tail, or all of it; keeps the bytes of the last block in memory.
void block_files::write_out(file& to, bool all) {
  const std::uint64_t block_bytes = shape_.block_bytes;
  const std::size_t out = all ? to.tail.size() : to.tail.size() / block_bytes * block_bytes;
  if (out == 0) return;
  blocks::buffer data(round_up(out, block_bytes));
  std::memcpy(data.data(), to.tail.data(), out);
  std::vector<extent> extents;
  {
    const std::scoped_lock lock(mutex_);
    if (to.removed) return;
    const std::size_t had = to.extents.size();
    allocate(to, (to.tail_at + data.size()) / block_bytes);
    if (to.extents.size() != had) ++changed_;
    extents = to.extents;
  }
  queue_pool::borrowed queue(*queues_);
  std::uint64_t skip = to.tail_at / block_bytes;
  std::span<std::byte> left = data.bytes();
  for (const extent& e : extents) {
    if (skip >= e.count) {
      skip -= e.count;
      continue;
    }
    const std::size_t part = std::min<std::size_t>(left.size(), (e.count - skip) * block_bytes);
    if (part > 0) queue.transfer(blocks::operation::write, to.of, e.first + skip, left.first(part), shape_.block_bytes);
    left = left.subspan(part);
    skip = 0;
  }
  const std::scoped_lock lock(mutex_);
  if (to.tail_at + out > to.on_device) {
    to.on_device = to.tail_at + out;
    ++changed_;
  }
  const std::size_t kept = out % block_bytes;
  to.tail_at += out - kept;
  to.tail.erase(to.tail.begin(), to.tail.begin() + static_cast<std::ptrdiff_t>(out - kept));
}

std::size_t block_files::read_blocks(const file& from, std::uint64_t offset, std::span<std::byte> data) {
  const std::uint64_t block_bytes = shape_.block_bytes;
  const std::uint64_t begin = offset / block_bytes;
  const std::uint64_t end = round_up(offset + data.size(), block_bytes) / block_bytes;
  blocks::buffer bounce((end - begin) * block_bytes);
  queue_pool::borrowed queue(*queues_);
  std::uint64_t block = 0;  // block of the file, where the extent begins
  for (const extent& e : from.extents) {
    const std::uint64_t from_block = std::max(begin, block);
    const std::uint64_t to_block = std::min(end, block + e.count);
    if (from_block < to_block)
      queue.transfer(blocks::operation::read, from.of, e.first + from_block - block,
                     bounce.bytes().subspan((from_block - begin) * block_bytes, (to_block - from_block) * block_bytes),
                     shape_.block_bytes);
    block += e.count;
  }
  std::memcpy(data.data(), bounce.data() + (offset - begin * block_bytes), data.size());
  return data.size();
}

std::size_t block_files::read(file& from, std::uint64_t offset, std::span<std::byte> data) {
  std::size_t done = 0;
  while (done < data.size()) {
    const std::uint64_t at = offset + done;
    file on_device;
    std::size_t left = 0;
    std::size_t below = 0;  // how many of these lie in whole blocks on the device
    {
      const std::scoped_lock lock(mutex_);
      if (from.removed) throw error("file " + from.name + " was removed", "open files only while they exist");
      if (at >= from.bytes) break;
      left = std::min<std::size_t>(data.size() - done, from.bytes - at);
      below = at >= from.tail_at ? 0 : std::min<std::size_t>(left, from.tail_at - at);
      on_device.extents = from.extents;
      on_device.of = from.of;
    }
    if (below > 0) {
      done += read_blocks(on_device, at, data.subspan(done, below));
      continue;
    }
    // An append may write the tail out between the two locks: look again then.
    const std::scoped_lock writing(from.writing);
    if (at < from.tail_at) continue;
    const std::uint64_t end = from.tail_at + from.tail.size();
    if (at >= end) {  // a log: its content before
      done += read_blocks(on_device, at, data.subspan(done, left));
      continue;
    }
    left = std::min<std::size_t>(left, end - at);
    std::memcpy(data.data() + done, from.tail.data() + (at - from.tail_at), left);
    done += left;
  }
  return done;
}

void block_files::truncate(file& which, std::uint64_t bytes) {
  const std::scoped_lock writing(which.writing);
  const std::uint64_t had = size(which);
  if (bytes >= had) return;
  const std::uint64_t begin = bytes / shape_.block_bytes * shape_.block_bytes;
  if (begin < which.tail_at) {
    std::vector<std::byte> tail(bytes - begin);
    if (!tail.empty()) static_cast<void>(read_blocks(which, begin, tail));
    which.tail = std::move(tail);
    which.tail_at = begin;
  } else {
    which.tail.resize(std::min<std::size_t>(which.tail.size(), bytes - which.tail_at));
  }
  const std::scoped_lock lock(mutex_);
  which.bytes = bytes;
  which.on_device = std::min(which.on_device, bytes);
  ++changed_;
}

void block_files::sync(file& which) {
  version wanted = 0;
  {
    const std::scoped_lock writing(which.writing);
    write_out(which, true);
    const std::scoped_lock lock(mutex_);
    wanted = changed_;
  }
  commit(wanted);
}

void block_files::sync_names() {
  version wanted = 0;
  {
    const std::scoped_lock lock(mutex_);
    wanted = changed_;
  }
  commit(wanted);
}

// With mutex_. Sizes are those of the data on the device.
std::vector<std::byte> block_files::directory_text() const {
  text_writer text;
  for (const auto& [name, f] : files_) {
    text.name(name);
    text.number(static_cast<std::uint64_t>(f->of));
    text.number(f->on_device);
    text.number(f->extents.size());
    for (const extent& e : f->extents) {
      text.number(e.first);
      text.number(e.count);
    }
  }
  return text.take();
}

void block_files::commit(version at_least) {
  const std::scoped_lock committing(commit_mutex_);
  queue_pool::borrowed queue(*queues_);
  if (committed_ >= at_least) {
    // No name and no size has changed: the data alone.
    if (shape_.volatile_cache) queue.flush(blocks::stream::other);
    return;
  }
  std::vector<std::byte> text;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> freed;
  version now = 0;
  {
    const std::scoped_lock lock(mutex_);
    text = directory_text();
    freed.swap(freed_);
    now = changed_;
  }
  const auto give_back = [&] {
    const std::scoped_lock lock(mutex_);
    freed_.insert(freed_.end(), freed.begin(), freed.end());
  };
  if (text.size() > directory_bytes - sizeof(directory_header)) {
    give_back();
    throw no_room("too many files or extents on device " + device_.name(), "use fewer or larger files");
  }
  const std::uint64_t next = sequence_ + 1;
  const directory_header header{magic, next, text.size(), checksum(text.data(), text.size(), next)};
  blocks::buffer data(round_up(sizeof header + text.size(), shape_.block_bytes));
  std::memcpy(data.data(), &header, sizeof header);
  std::copy(text.begin(), text.end(), data.data() + sizeof header);
  try {
    if (shape_.volatile_cache) queue.flush(blocks::stream::other);  // (W1)
    queue.transfer(blocks::operation::write_durable, blocks::stream::other, next % 2 * directory_blocks_, data.bytes(),
                   shape_.block_bytes);  // (W2)
  } catch (...) {
    give_back();
    throw;
  }
  sequence_ = next;
  committed_ = now;
  for (const auto& [first, count] : freed) {
    const blocks::request r{
        blocks::operation::discard, blocks::stream::other, static_cast<std::uint32_t>(count), first, nullptr, 0};
    queue.perform({&r, 1});
  }
  const std::scoped_lock lock(mutex_);
  for (auto [first, count] : freed) {  // (W3)
    auto after = free_.lower_bound(first);
    if (after != free_.end() && after->first == first + count) {
      count += after->second;
      after = free_.erase(after);
    }
    if (after != free_.begin() && std::prev(after)->first + std::prev(after)->second == first)
      std::prev(after)->second += count;
    else
      free_[first] = count;
  }
}

}  // namespace pmlab::stores
