// Reads and writes segments, wherever they are.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include <pmlab/stores/tiered/layout.hpp>
#include <pmlab/stores/tiered/read_cache.hpp>
#include <pmlab/stores/tiered/segments.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::tiered {

// The drives of a store, and how they are divided.
template <blocks::device Device>
struct drive_pair {
  std::array<Device*, classes> devices;  // nullptr: there is none
  store_areas where;
};

// For one thread. Throws pmlab::error if a drive fails.
template <blocks::device Device>
class segment_io {
 public:
  explicit segment_io(const drive_pair<Device>& on) : where_(on.where) {
    for (std::size_t c = 0; c < classes; ++c)
      if (on.devices[c] != nullptr) drives_[c].emplace(*on.devices[c]);
  }

  // `offset`: a multiple of a block.
  void read(std::uint32_t segment, std::uint32_t offset, std::span<std::byte> data, blocks::stream of) {
    drives_[index_of(class_of(segment))]->read(where_.block_at(segment, offset), data, of);
  }
  void write(std::uint32_t segment, std::uint32_t offset, std::span<const std::byte> data, blocks::stream of) {
    const std::size_t c = index_of(class_of(segment));
    is_dirty_[c] = true;
    drives_[c]->write(where_.block_at(segment, offset), data, of);
  }
  // All that was written here is durable on return.
  void flush(blocks::stream of) {
    for (std::size_t c = 0; c < classes; ++c) {
      if (!is_dirty_[c]) continue;
      drives_[c]->flush(of);
      is_dirty_[c] = false;
    }
  }
  // All that was ever written, by any thread or process, is durable on return.
  void flush_all(blocks::stream of) {
    for (auto& d : drives_)
      if (d) d->flush(of);
  }

 private:
  store_areas where_;
  std::array<std::optional<blocks::synchronous<Device>>, classes> drives_{};
  std::array<bool, classes> is_dirty_{};
};

// Queues for readers: a queue belongs to one thread, so each read takes a Reader, made of the drives.
template <blocks::device Device, class Reader>
class reader_pool {
 public:
  explicit reader_pool(const drive_pair<Device>& on) : on_(on) {}
  template <class Function>
  void with(Function&& function) {
    std::unique_ptr<Reader> one;
    {
      const std::scoped_lock lock(mutex_);
      if (!free_.empty()) {
        one = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (one == nullptr) one = std::make_unique<Reader>(on_);
    function(*one);
    const std::scoped_lock lock(mutex_);
    free_.push_back(std::move(one));
  }

 private:
  drive_pair<Device> on_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Reader>> free_;
};

template <blocks::device Device>
class value_reader;

// Where sets are, and the readers of them. Outlives them.
template <blocks::device Device>
struct set_context {
  store_areas where;
  std::size_t page_bytes;
  segment_map& segments;
  reader_pool<Device, segment_io<Device>>& readers;
  reader_pool<Device, value_reader<Device>>& value_readers;
  read_cache& cache;

  [[nodiscard]] std::size_t pages_per_segment() const noexcept { return where.segment_bytes / page_bytes; }
};

// Fills one segment after the other with pages or values. It has a reference to each of them while it exists.
template <blocks::device Device>
class segment_writer {
 public:
  // `keep`: segments that it leaves free.
  segment_writer(const set_context<Device>& context, segment_io<Device>& io, media_class preferred,
                 const kept_segments& keep, blocks::stream of)
      : context_(context),
        io_(io),
        preferred_(preferred),
        keep_(keep),
        of_(of),
        buffer_(std::min<std::size_t>(context.where.segment_bytes,
                                      round_up(std::size_t{1} << 18, context.where.block_bytes))) {}
  segment_writer(const segment_writer&) = delete;
  segment_writer& operator=(const segment_writer&) = delete;
  ~segment_writer() {
    for (const std::uint32_t s : taken_) context_.segments.drop(s);
  }

  // Returns the place of the bytes, all in one segment, or std::nullopt if none is free. REQUIRES: they fit into one.
  [[nodiscard]] std::optional<value_place> append(std::span<const std::byte> bytes) {
    if (taken_.empty() || offset_ + bytes.size() > context_.where.segment_bytes) {
      finish();
      taken_.push_back(no_segment);  // before a segment is taken: it may throw
      const std::optional<std::uint32_t> next = context_.segments.take(preferred_, keep_);
      if (!next) {
        taken_.pop_back();
        return std::nullopt;
      }
      taken_.back() = *next;
      offset_ = begin_ = 0;
    }
    const value_place at{taken_.back(), offset_};
    offset_ += static_cast<std::uint32_t>(bytes.size());
    while (!bytes.empty()) {
      const std::size_t now = std::min(bytes.size(), buffer_.size() - filled_);
      std::memcpy(buffer_.data() + filled_, bytes.data(), now);
      filled_ += now;
      bytes = bytes.subspan(now);
      if (filled_ == buffer_.size()) write();
    }
    return at;
  }
  // The drives have all bytes on return; they are durable after a flush of them. Bytes that are appended later begin at
  // a block.
  void finish() {
    if (filled_ > 0) write();
    offset_ = begin_;
  }

 private:
  void write() {
    const std::size_t whole = round_up(filled_, context_.where.block_bytes);
    std::memset(buffer_.data() + filled_, 0, whole - filled_);
    io_.write(taken_.back(), begin_, buffer_.bytes().first(whole), of_);
    begin_ += static_cast<std::uint32_t>(whole);
    filled_ = 0;
  }

  set_context<Device> context_;
  segment_io<Device>& io_;
  media_class preferred_;
  kept_segments keep_;
  blocks::stream of_;
  blocks::buffer buffer_;
  std::vector<std::uint32_t> taken_;
  std::uint32_t offset_ = 0;  // in the last segment
  std::uint32_t begin_ = 0;   // begin of the buffer, there
  std::size_t filled_ = 0;
};

}  // namespace pmlab::stores::detail::tiered
