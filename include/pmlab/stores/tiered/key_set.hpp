// A key/value set of the root: sorted pages of keys, written once; values stay in the log segments that they are in.
//
// In DRAM: the first version of each page (fences), and a Bloom filter of 10 bits a key. Both are rebuilt when the set is
// opened, by reading its pages.
#pragma once

#include <pmlab/base/hash.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include <pmlab/stores/tiered/manifest.hpp>
#include <pmlab/stores/tiered/pages.hpp>
#include <pmlab/stores/tiered/segments.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::tiered {

[[nodiscard]] inline std::uint64_t hash_of(std::uint16_t table, std::string_view key) noexcept {
  return checksum(key.data(), key.size(), 16 + table);
}

// May answer yes for a key that was not added, one in a hundred.
class bloom_filter {
 public:
  void build(const std::vector<std::uint64_t>& hashes) {
    words_.assign(hashes.size() * bits_per_key / 64 + 1, 0);
    for (const std::uint64_t h : hashes)
      for_each_bit(h, [&](std::uint64_t bit) {
        words_[bit / 64] |= std::uint64_t{1} << bit % 64;
        return true;
      });
  }
  [[nodiscard]] bool may_have(std::uint64_t hash) const {
    return for_each_bit(hash, [&](std::uint64_t bit) { return (words_[bit / 64] >> bit % 64 & 1) != 0; });
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return words_.size() * sizeof(std::uint64_t); }

 private:
  static constexpr std::size_t bits_per_key = 10;
  template <class Function>
  bool for_each_bit(std::uint64_t hash, Function&& function) const {
    const std::uint64_t step = mix_bits(hash) | 1;
    for (unsigned i = 0; i < 6; ++i, hash += step)
      if (!function(hash % (words_.size() * 64))) return false;
    return true;
  }
  std::vector<std::uint64_t> words_ = std::vector<std::uint64_t>(1, 0);
};

// Drives of readers: a queue belongs to one thread, so each read takes one of them.
template <blocks::device Device>
class reader_pool {
 public:
  explicit reader_pool(Device& device) : device_(device) {}
  template <class Function>
  void with(Function&& function) {
    std::unique_ptr<blocks::synchronous<Device>> one;
    {
      const std::scoped_lock lock(mutex_);
      if (!free_.empty()) {
        one = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (one == nullptr) one = std::make_unique<blocks::synchronous<Device>>(device_);
    function(*one);
    const std::scoped_lock lock(mutex_);
    free_.push_back(std::move(one));
  }

 private:
  Device& device_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<blocks::synchronous<Device>>> free_;
};

// Where sets are, and who reads them. Outlives them.
template <blocks::device Device>
struct set_context {
  areas where;
  std::size_t page_bytes;
  segment_map& segments;
  reader_pool<Device>& readers;

  [[nodiscard]] std::size_t pages_per_segment() const noexcept { return where.segment_bytes / page_bytes; }
};

template <blocks::device Device>
class key_set {
 public:
  // Has a reference to each of its segments.
  key_set(const set_context<Device>& context, set_description described)
      : context_(context), described_(std::move(described)) {
    for (const auto* list : {&described_.key_segments, &described_.value_segments})
      for (const std::uint32_t s : *list) context_.segments.refer(s);
  }
  key_set(const key_set&) = delete;
  key_set& operator=(const key_set&) = delete;
  ~key_set() {
    for (const auto* list : {&described_.key_segments, &described_.value_segments})
      for (const std::uint32_t s : *list) context_.segments.drop(s);
  }

  [[nodiscard]] const set_description& described() const noexcept { return described_; }
  // Of DRAM.
  [[nodiscard]] std::size_t memory() const noexcept { return memory_; }
  [[nodiscard]] bool may_have(std::uint64_t hash) const { return filter_.may_have(hash); }

  // Reads all pages: fences and filter. Throws pmlab::error: a page is damaged, the drive fails.
  void load() {
    std::vector<std::uint64_t> hashes;
    for (std::uint32_t p = 0; p < described_.pages; ++p) {
      const std::shared_ptr<const page> one = read(p);
      add_fence(one->name(0));
      for (std::size_t i = 0; i < one->count(); ++i) hashes.push_back(hash_of(one->name(i).table, one->name(i).key));
    }
    finish(hashes);
  }

  [[nodiscard]] std::shared_ptr<const page> read(std::uint32_t number) const {
    const std::size_t per_segment = context_.pages_per_segment();
    const std::uint64_t first =
        context_.where.block_at(described_.key_segments[number / per_segment],
                                static_cast<std::uint32_t>(number % per_segment * context_.page_bytes));
    blocks::buffer bytes(context_.page_bytes);
    context_.readers.with([&](auto& drive) { drive.read(first, bytes.bytes(), blocks::stream::keys); });
    return std::make_shared<const page>(std::move(bytes), described_.last, number);
  }

  // The page that holds the last version before `name`, if there is one; else 0.
  [[nodiscard]] std::uint32_t page_before(const version_name& name) const {
    const auto behind =
        std::partition_point(fences_.begin(), fences_.end(), [&](const fence& f) { return f.name() < name; });
    return static_cast<std::uint32_t>(behind == fences_.begin() ? 0 : behind - fences_.begin() - 1);
  }

 private:
  template <blocks::device>
  friend class set_writer;

  struct fence {
    std::uint16_t table;
    std::string key;
    std::uint64_t sequence;
    [[nodiscard]] version_name name() const noexcept { return {table, key, sequence}; }
  };
  void add_fence(const version_name& name) { fences_.push_back({name.table, std::string(name.key), name.sequence}); }
  void finish(const std::vector<std::uint64_t>& hashes) {
    filter_.build(hashes);
    memory_ = filter_.bytes();
    for (const fence& f : fences_) memory_ += sizeof f + f.key.capacity();
  }

  set_context<Device> context_;
  set_description described_;
  std::vector<fence> fences_;
  bloom_filter filter_;
  std::size_t memory_ = 0;
};

// The versions of a set, with the page that was read last. Thread safety: none.
template <blocks::device Device>
class set_source {
 public:
  explicit set_source(std::shared_ptr<const key_set<Device>> of) : of_(std::move(of)) {}

  [[nodiscard]] std::optional<found_version> at_least(const version_name& name) {
    std::uint32_t number = of_->page_before(name);
    const std::size_t i = load(number).before(name);
    if (i < page_->count()) return page_->at(i);
    if (number + 1 >= of_->described().pages) return std::nullopt;
    return load(number + 1).at(0);
  }
  [[nodiscard]] std::optional<found_version> less(const version_name& name) {
    const std::size_t i = load(of_->page_before(name)).before(name);
    if (i == 0) return std::nullopt;
    return page_->at(i - 1);
  }

 private:
  const page& load(std::uint32_t number) {
    if (page_ == nullptr || number_ != number) {
      page_ = of_->read(number);
      number_ = number;
    }
    return *page_;
  }
  std::shared_ptr<const key_set<Device>> of_;
  std::shared_ptr<const page> page_;
  std::uint32_t number_ = 0;
};

// Writes a set; versions are added in their order.
template <blocks::device Device>
class set_writer {
 public:
  set_writer(const set_context<Device>& context, blocks::synchronous<Device>& drive, std::uint64_t first,
             std::uint64_t last)
      : context_(context), drive_(drive), builder_(context.page_bytes, last) {
    described_.first = first;
    described_.last = last;
  }
  set_writer(const set_writer&) = delete;
  set_writer& operator=(const set_writer&) = delete;
  ~set_writer() {
    for (const std::uint32_t s : described_.key_segments) context_.segments.drop(s);
  }

  // False: there is no free segment for its keys.
  [[nodiscard]] bool add(const found_version& v) {
    if (!builder_.add(v)) {
      if (!write_page()) return false;
      static_cast<void>(builder_.add(v));
    }
    if (first_of_page_.empty()) first_of_page_.push_back({v.table, v.key, v.sequence});
    hashes_.push_back(hash_of(v.table, v.key));
    ++described_.entries;
    if (v.kind == change_kind::put) values_.insert(v.place.segment);
    return true;
  }
  // The set; its pages are durable after the next flush of the drive. Null: there is no free segment. An empty set is
  // described by no pages.
  [[nodiscard]] std::shared_ptr<key_set<Device>> finish() {
    if (!builder_.empty() && !write_page()) return nullptr;
    described_.value_segments.assign(values_.begin(), values_.end());
    auto made = std::make_shared<key_set<Device>>(context_, described_);
    made->fences_ = std::move(fences_);
    made->finish(hashes_);
    return made;
  }

 private:
  [[nodiscard]] bool write_page() {
    const std::size_t per_segment = context_.pages_per_segment();
    if (described_.pages % per_segment == 0) {
      const std::optional<std::uint32_t> taken = context_.segments.take(0);
      if (!taken) return false;
      described_.key_segments.push_back(*taken);
    }
    const std::uint64_t first =
        context_.where.block_at(described_.key_segments.back(),
                                static_cast<std::uint32_t>(described_.pages % per_segment * context_.page_bytes));
    drive_.write(first, builder_.seal(static_cast<std::uint32_t>(described_.pages)), blocks::stream::keys);
    ++described_.pages;
    fences_.push_back(std::move(first_of_page_.front()));
    first_of_page_.clear();
    return true;
  }

  set_context<Device> context_;
  blocks::synchronous<Device>& drive_;
  set_description described_{};
  page_builder builder_;
  std::vector<typename key_set<Device>::fence> fences_;
  std::vector<typename key_set<Device>::fence> first_of_page_;
  std::vector<std::uint64_t> hashes_;
  std::set<std::uint32_t> values_;
};

}  // namespace pmlab::stores::detail::tiered
