// A key-value SSD: a device whose commands have keys and values, with its translation layer, after KV-SSD [KV-SSD].
//
//   auto device = stores::kv_device<media::pmem, blocks::file>::open(memory, flash, {});
//   device.put("user:17", value);                    // whole or not at all; durable on return
//   device.get("user:17");
//   auto keys = device.iterate({.mask = 0xffffffff, .pattern = 0x75736572});      // "user"
//
// Use it as a model of such a drive that keeps its promises, and as a store of pairs whose host side is a function
// call. The medium is the drive's battery-backed memory: it holds the write buffer and the index. The flash is a block
// device. All that an SSD does inside runs in the threads that call: there are no others.
//
// A put copies the record into the write buffer and lets the index lead to it: that is the acknowledgement. A put that
// finds the buffer full moves its oldest records to flash, where superblocks are filled one after the other; the one
// with the fewest valid units is collected when free ones run out.
//
// Thread safety: any operation from any number of threads (`check`: no other operation). Keys are spread over managers
// by their hash; an operation holds one manager's lock, shared for reading, also while it reads the flash. Operations
// of a kv_queue (kv_ssd/queue.hpp) read it without a lock. Moving to flash is done by one thread at a time, which holds
// a manager's lock only while it changes a word of the index.
//
// Durability: what an operation returned stays true after a crash. A put that a crash interrupts is there whole or not
// at all. Iterators do not outlive the object. Opening reads the index and the write buffer; of the flash it reads and
// writes the first block, and behind a crash it reads a few pages of keys.
//
// Copies: memory and flash are a pair of one moment. If one of them is of another moment than the other, as after one
// of both was restored from an older copy, opening refuses them (kv_ssd/moments.hpp). Each opening and each closing is
// a moment. So copies of both are taken while the device is not open; or at one instant, and then no half of one is
// used with a half of another copy of the same opening: these cannot be distinguished.
//
// Damage: each record has checksums of its head and of its value. A damaged one, or one that the flash cannot read, is
// never returned: a read throws kv_damaged, which names the key, and not "absent". It costs that key alone, which
// counts as there (`exist`) until it is put again or erased; both succeed, and so does all else. If the key itself
// cannot be read, the record counts as that of each key with its hash of 55 bits that has no other record: put or erase
// of one of these ends the record. Only a key that shares all 55 bits with another could lose its report so.
// A damaged page of keys costs no pair: its keys are read and changed as before. Walks pass over it, and report it
// (kv_skipped), until `repair` has written it again. `stats` counts the searches that met damage, `check` names each.
// A damaged word of the index costs its key, too, and so does one without its record in its place: opening writes it as
// a lost one. A damaged name of a word costs nothing: opening finds the right one in the record.
// A superblock with a damaged record is not used again before the next opening. An overwrite that is damaged in the
// write buffer between a crash and the next opening counts as torn by the crash: its key has the value that the index
// led to before. Where the device was closed, it is noticed; and a page of keys always, if a key needs it.
//
// Layout and orders: kv_ssd/layout.hpp, pairs.hpp (S), mover.hpp (G), buckets.hpp (B), chains.hpp (C), moments.hpp (E).
//
// Invariants:
//   V1 an acknowledged pair is there, whole (S1 < S2 < S3)      V2 a host sends keys and values, and nothing else
//   V3 each live record has one word of the index; the counts of valid units are exact
//   V4 no superblock and no line is used again while a word or a reader with a lock leads into it (G1 < G2 < G3); a
//      reader without one knows when it was used again, and reads again
//   V5 an iterator returns no deleted key, none twice, and each that was there throughout (B1 < B2 < B3)
//   V6 a full device changes nothing; deleted keys make room     V7 utilisation falls when keys are deleted
//   V8 exist and get agree                                       V9 an opened device has no iterator
//   V10 an operation that has ended, also in a failure, leaves no line of the write buffer promised and no record half
//   made
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/pair_front.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/stores/kv_ssd/buckets.hpp>
#include <pmlab/stores/kv_ssd/core.hpp>
#include <pmlab/stores/kv_ssd/iterator.hpp>
#include <pmlab/stores/kv_ssd/layout.hpp>
#include <pmlab/stores/kv_ssd/moments.hpp>
#include <pmlab/stores/kv_ssd/mover.hpp>
#include <pmlab/stores/kv_ssd/opening.hpp>
#include <pmlab/stores/kv_ssd/options.hpp>
#include <pmlab/stores/kv_ssd/pairs.hpp>
#include <pmlab/stores/kv_ssd/rebuild.hpp>
#include <pmlab/stores/kv_ssd/replay.hpp>
#include <pmlab/sync/relax.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

namespace pmlab::stores {

template <class Store>
class kv_queue;

// See the file's prologue. Keys have 4 to 255 bytes (1 to 16 with short_keys), key spaces are 0 to 254. Operations
// throw pmlab::error: an impossible key or key space, a value that is too large (kv_too_large); the flash failed
// (nothing was acknowledged); kv_damaged.
// `Hash`: of (key space, key); for tests.
template <media::medium Medium, blocks::device Device, class Hash = detail::kv_ssd::default_hash>
class kv_device {
  using parts = detail::kv_ssd::core<Medium, Device, Hash>;
  using all_pairs = detail::kv_ssd::pairs<Medium, Device, Hash>;
  using all_buckets = detail::kv_ssd::buckets<Medium, Device, Hash>;
  using opening = detail::kv_ssd::opening<Medium, Device>;
  using replay = detail::kv_ssd::replay<parts, Medium>;
  using lease = typename detail::kv_ssd::ports<Device>::lease;
  using place_word = detail::kv_ssd::place_word;
  using record_view = detail::kv_ssd::record_view;
  using all_walks = detail::kv_ssd::walk<Medium, Device, Hash>;

 public:
  // The name of its root in the medium.
  static constexpr std::string_view layout_name = "kv_ssd";
  // The version of the layout of its words in the medium.
  static constexpr std::uint64_t layout_version = 1;
  // The most iterators at the same time.
  static constexpr unsigned most_iterators = 16;

  // Opens the device `name` (at most 21 characters) in `medium` and on `flash`, or makes an empty one if the medium has
  // none. Both outlive it. Throws pmlab::error: a flash of another device, of another version or size; a memory and a
  // flash of different moments; impossible options; a damaged pool or header; no space.
  static kv_device open(Medium& medium, Device& flash, const kv_options& options = {},
                        std::string_view name = layout_name) {
    return kv_device(opening(medium, flash), medium, flash, options, name);
  }
  // Makes the device's memory again, in a medium without it, from the flash alone: reads all of the flash, and a
  // multiple of its keys is in memory meanwhile. Pairs that had not reached the flash are lost: such a key has its
  // value before, or is absent. Deleted keys may be there again. So it is the last resort; opening after a crash needs
  // none of it. `options`: as the device was made with; the flash knows its units and superblocks. Throws pmlab::error:
  // the medium has the device; the flash is not that of one, or failed; no space. A rebuilding that is interrupted is
  // refused by the next opening. Another memory of the flash, as one that is found again, is refused from now on.
  static kv_device rebuild(Medium& medium, Device& flash, const kv_options& options, kv_rebuilt& result,
                           std::string_view name = layout_name) {
    opening how(medium, flash);
    const kv_options of_flash = how.options_of_flash(options);
    return kv_device(std::move(how), medium, flash, of_flash, name, &result);
  }
  // The medium has the memory of a device. False: it has none, or one whose making or rebuilding was interrupted, which
  // was never open. Throws pmlab::error: the name belongs to something else.
  [[nodiscard]] static bool is_complete(Medium& medium, std::string_view name = layout_name) {
    return opening::is_complete(medium, name, layout_name, layout_version);
  }
  // The medium has the memory of the flash's device, and `open` refuses the two: one of both is an older copy, or the
  // flash's note of its moment is damaged. `rebuild` makes a memory for the flash in another medium. Throws
  // pmlab::error: the flash failed; the name belongs to something else.
  [[nodiscard]] static bool are_of_different_moments(Medium& medium, Device& flash,
                                                     std::string_view name = layout_name) {
    return opening(medium, flash).are_of_one_moment(name, layout_name, layout_version) == false;
  }
  // The medium has the complete memory of the flash's device, and none of both is a copy of another moment. Throws
  // pmlab::error: the flash failed; the name belongs to something else.
  [[nodiscard]] static bool are_of_one_moment(Medium& medium, Device& flash, std::string_view name = layout_name) {
    return opening(medium, flash).are_of_one_moment(name, layout_name, layout_version) == true;
  }
  // A making was interrupted before its end: the flash has the header of a device that was never opened. Throws
  // pmlab::error: it failed.
  [[nodiscard]] static bool was_made_only(Device& flash) { return opening::was_made_only(flash); }
  // Closing is a moment of its own: a half of a copy from before it does not fit a half from behind it. Nothing becomes
  // more durable. Behind it, nothing is left to replay (L0).
  ~kv_device() {
    detail::kv_ssd::moments(core_.medium, core_.device, root_).end(moment_, [this] {
      if (core_.index.settle()) replay(core_, root_, core_.medium).keep_tail(core_.buffer.end());
    });
  }
  kv_device(const kv_device&) = delete;
  kv_device& operator=(const kv_device&) = delete;

  // Stores a pair. Durable on return.
  kv_outcome put(std::string_view key, std::span<const std::byte> value, kv_mode mode = kv_mode::post,
                 std::uint8_t space = 0) {
    check_key(key, space);
    check_value(value.size());
    command(value.size());
    const lease through(core_.all_ports);
    const kv_outcome result = put(key, value, mode, space, *through);
    if (front_ != nullptr && result == kv_outcome::replaced) front_->wait_until(front_->replaced());
    return result;
  }

  // The value of a key, or std::nullopt if the key is absent.
  [[nodiscard]] std::optional<std::vector<std::byte>> get(std::string_view key, std::uint8_t space = 0) {
    return with_value(key, space,
                      [](std::span<const std::byte> v) { return std::vector<std::byte>(v.begin(), v.end()); });
  }
  // Copies the value from byte `offset` on, as far as `out` goes. Returns the size of the whole value, or std::nullopt
  // if the key is absent. Reads all of the record, as its checksum covers it.
  [[nodiscard]] std::optional<std::size_t> get(std::string_view key, std::size_t offset, std::span<std::byte> out,
                                               std::uint8_t space = 0) {
    return with_value(key, space, [&](std::span<const std::byte> v) {
      const std::size_t from = std::min(offset, v.size());
      const std::size_t count = std::min(out.size(), v.size() - from);
      if (count != 0) std::memcpy(out.data(), v.data() + from, count);
      return v.size();
    });
  }

  // Deletes a key. False: it is absent. Durable on return.
  bool erase(std::string_view key, std::uint8_t space = 0) { return take(key, space, false).has_value(); }
  // Deletes a key and returns its value: no other operation sees it in between.
  [[nodiscard]] std::optional<std::vector<std::byte>> retrieve_and_erase(std::string_view key, std::uint8_t space = 0) {
    return take(key, space, true);
  }

  // Looks up many keys in one command: true for each key, in their order, that is there.
  [[nodiscard]] std::vector<bool> exist(std::span<const std::string_view> keys, std::uint8_t space = 0) {
    for (const std::string_view key : keys) check_key(key, space);
    command(0);
    const lease through(core_.all_ports);
    std::vector<bool> there;
    for (const std::string_view key : keys) {
      const std::uint64_t base = parts::base_of(space, key);
      const std::shared_lock lock(core_.lock_of(space, base));
      there.push_back(pairs_.find(space, key, base, *through, false).is_there());
    }
    return there;
  }

  // Returns the keys of a prefix, in no particular order. The device outlives it. One thread uses it at a time.
  class iterator {
   public:
    // The one that was moved from may only be destroyed.
    iterator(iterator&&) noexcept = default;
    iterator& operator=(iterator&&) = delete;
    ~iterator() {
      if (open_ != nullptr) open_->fetch_sub(1, std::memory_order_acq_rel);
    }
    // Up to `most` keys more; fewer: there are no more. V5 holds beside any other operations.
    [[nodiscard]] std::vector<std::string> next(std::size_t most) {
      if (front_ != nullptr) front_->wait_until(front_->command(0));
      const lease through(*ports_);
      // Keys that a call had before it failed are the next call's.
      while (taken_.size() < most) {
        taken_.reserve(taken_.size() + 1 + taken_.size() / 2);
        std::optional<std::string> key = walk_.next(*through);
        if (!key) break;
        taken_.push_back(std::move(*key));
      }
      std::vector<std::string> keys;
      if (taken_.size() <= most) {
        keys.swap(taken_);
      } else {
        const auto end = taken_.begin() + static_cast<std::ptrdiff_t>(most);
        keys.assign(taken_.begin(), end);
        taken_.erase(taken_.begin(), end);
      }
      if (front_ != nullptr) {
        std::size_t bytes = 0;
        for (const std::string& key : keys) bytes += key.size();
        front_->wait_until(front_->answer(bytes));
      }
      return keys;
    }

   private:
    friend class kv_device;
    struct closes {
      void operator()(std::atomic<unsigned>* /*count*/) const noexcept {}
    };
    iterator(kv_device& of, std::uint8_t space, kv_prefix prefix)
        : front_(of.front_),
          ports_(&of.core_.all_ports),
          open_(&of.iterators_),
          walk_(of.core_, of.buckets_, space, prefix) {}

    blocks::pair_front* front_;
    detail::kv_ssd::ports<Device>* ports_;
    std::unique_ptr<std::atomic<unsigned>, closes> open_;  // null once it was moved
    all_walks walk_;
    std::vector<std::string> taken_;
  };

  // Opens an iterator over the keys of a prefix. Throws pmlab::error: 16 are open; a pattern with bits outside the
  // mask.
  [[nodiscard]] iterator iterate(kv_prefix prefix = {}, std::uint8_t space = 0) {
    check_prefix(prefix, space);
    if (iterators_.fetch_add(1, std::memory_order_acq_rel) >= most_iterators) {
      iterators_.fetch_sub(1, std::memory_order_acq_rel);
      throw error("device " + core_.device.name() + " has " + std::to_string(most_iterators) + " open iterators",
                  "close one first");
    }
    return iterator(*this, space, prefix);
  }
  // Calls visit(key) for each key of a prefix, as an iterator returns them: it is none of the sixteen. `visit` may
  // change the device. Passes over damage, and returns what it has passed over: a damaged key among these is there, and
  // was not visited. Throws pmlab::error, as `iterate` does for the prefix; the flash failed; and what `visit` throws.
  template <class Visit>
  [[nodiscard]] kv_skipped for_each_key(kv_prefix prefix, std::uint8_t space, Visit&& visit) {
    check_prefix(prefix, space);
    all_walks walk(core_, buckets_, space, prefix);
    return walk_through(walk, visit);
  }
  // The same without a list of keys, by reading the head of each record of the device: visit(key, bytes of its value).
  // It needs no page of keys, and meets no key whose record is damaged. Memory: a word for each record. Keys that are
  // put meanwhile may be met or not. Throws pmlab::error: the flash failed; and what `visit` throws.
  template <class Visit>
  void for_each_record(std::uint8_t space, Visit&& visit) {
    check_space(space);
    command(0);
    for_each_head(
        [&](std::string_view key, const detail::kv_ssd::record_head& head) {
          if (head.space == space) visit(std::string(key), std::size_t{head.value_bytes});
        },
        [](std::uint64_t, place_word, const record_view&) {});
  }
  // How many are open.
  [[nodiscard]] unsigned open_iterators() const noexcept { return iterators_.load(std::memory_order_acquire); }

  // Up to `most` keys of a space from `from` on, in byte order. Each was there at some moment of the call; none is
  // missed that was there throughout. Reads the keys of each group of four first bytes that it visits: a group of many
  // keys takes as long for each call. Damaged keys are listed, as they are there. `skipped`: gets the damaged pages,
  // and the damaged keys. Without it, a damaged page throws kv_damaged.
  [[nodiscard]] std::vector<std::string> list(std::string_view from, std::size_t most, std::uint8_t space = 0,
                                              kv_skipped* skipped = nullptr) {
    check_space(space);
    command(0);
    const lease through(core_.all_ports);
    std::vector<std::string> keys;
    std::uint64_t next = detail::kv_ssd::bucket_of(space, from);
    const std::uint64_t last = std::uint64_t{space} << 32 | 0xffffffff;
    if (buckets_.lacks_pages()) {
      if (skipped == nullptr) buckets_.throw_damaged(next);
      ++skipped->pages;
    }
    while (keys.size() < most) {
      std::array<indexes::entry, 1> bucket{};
      try {
        if (buckets_.scan(next, bucket) == 0 || bucket[0].key > last) break;
      } catch (const kv_damaged&) {
        if (skipped == nullptr) throw;
        ++skipped->pages;
        break;
      }
      all_walks walk(core_, buckets_, space, {.mask = 0xffffffff, .pattern = static_cast<std::uint32_t>(bucket[0].key)},
                     true);
      const auto before = static_cast<std::ptrdiff_t>(keys.size());
      kv_skipped here;
      while (std::optional<std::string> key = walk.next(*through, &here))
        if (key->compare(from) >= 0) keys.push_back(std::move(*key));
      if (here.pages != 0 && skipped == nullptr)
        throw kv_damaged("a page of keys of key space " + std::to_string(space) + " of device " + core_.device.name() +
                             " is damaged: the keys that it lists cannot be listed",
                         "repair the device");
      for (std::string& key : here.keys) {
        if (key.compare(from) < 0) continue;
        if (skipped != nullptr) skipped->keys.push_back(key);
        keys.push_back(std::move(key));
      }
      if (skipped != nullptr) skipped->pages += here.pages;
      std::sort(keys.begin() + before, keys.end());
      // Two pages may list a damaged key, of which one is older than its record.
      keys.erase(std::unique(keys.begin() + before, keys.end()), keys.end());
      if (bucket[0].key == last) break;
      next = bucket[0].key + 1;
    }
    if (keys.size() > most) keys.resize(most);
    std::size_t bytes = 0;
    for (const std::string& key : keys) bytes += key.size();
    answer(bytes);
    return keys;
  }

  // The bytes of a pair, or std::nullopt if the key is absent. Reads the head of its record alone.
  [[nodiscard]] std::optional<kv_size> size_of(std::string_view key, std::uint8_t space = 0) {
    check_key(key, space);
    command(0);
    const lease through(core_.all_ports);
    const std::uint64_t base = parts::base_of(space, key);
    const std::shared_lock lock(core_.lock_of(space, base));
    const auto there = pairs_.find(space, key, base, *through, false);
    if (!there.is_there()) return std::nullopt;
    if (!there.is_damaged) return kv_size{key.size() + there.head.value_bytes, key.size() + there.head.value_bytes};
    const std::uint64_t units = core_.units_of(there.at.place);
    const std::uint64_t least = units == 0 ? 0 : (units - 1) * core_.sizes.unit_bytes + 1;
    const std::uint64_t head_and_key = sizeof(detail::kv_ssd::record_head) + key.size();
    return kv_size{key.size() + std::max(least, head_and_key) - head_and_key,
                   std::max<std::uint64_t>(key.size(), most_bytes_of(there.at.place))};
  }

  // Calls visit(key) once for each key of a prefix that is there: also if its record is damaged, or the page that lists
  // it, or both. `visit` may change the device. Returns what was damaged; of the records without a name, some may be of
  // other prefixes whose pages are damaged. Reads what for_each_key reads; where a page is damaged, also the heads of
  // all records, and all pages. Memory: the damaged keys, and a word for each record then. Keys that are put meanwhile
  // may be met or not. Throws pmlab::error: the flash failed; kv_damaged: the directory of pages is not sound, as the
  // medium had no room to write it again; and what `visit` throws.
  template <class Visit>
  kv_damage for_each_key_there(kv_prefix prefix, std::uint8_t space, Visit&& visit) {
    return walk_over_all(prefix, space, visit).found;
  }

  // Deletes all pairs of a key space, damaged ones too, and its pages. Returns how many it has found damaged. A damaged
  // record that does not name its key, and that only damaged pages listed, goes too, unless a page of another key space
  // may have listed it: one that is damaged now, or was when `repair` met damaged records. Throws pmlab::error: the
  // flash failed; some pairs may be left, and another call goes on. kv_damaged: the directory of pages is not sound, as
  // the medium had no room to write it again; nothing was deleted. REQUIRES: no other operation on the key space.
  std::uint64_t erase_space(std::uint8_t space) {
    mend_directory();
    std::exception_ptr failure;
    const auto erase_it = [&](const std::string& key) {
      try {
        static_cast<void>(erase(key, space));
      } catch (const error&) {
        failure = std::current_exception();  // it keeps no other one
      }
    };
    const everything all = walk_over_all({}, space, erase_it);
    if (failure) std::rethrow_exception(failure);
    if (!all.may_be_of_others)
      for (const std::uint64_t slot : all.unnamed) erase_unnamed(slot, space);
    else if (all.were_unread)
      note_unlisted();  // before their pages go: another call, or `repair`, meets those that can be read then
    const lease through(core_.all_ports);
    const std::uint64_t last = std::uint64_t{space} << 32 | 0xffffffff;
    std::array<indexes::entry, 1> bucket{};
    for (std::uint64_t next = last - 0xffffffff; buckets_.scan(next, bucket) != 0 && bucket[0].key <= last;) {
      buckets_.drop(bucket[0].key, *through);
      if (bucket[0].key == last) break;
      next = bucket[0].key + 1;
    }
    return all.found.keys + all.found.pages;
  }

  // Writes damaged pages of keys, and damaged words of their directory, again, from the heads of all records. Damaged
  // records that do not name their keys are on no page then, until these are put again or erased, or another repair can
  // read them. Reads these heads and all pages: an opening does without. Beside any other operation. Throws
  // pmlab::error: the flash failed. Memory: as for_each_record, and the keys that the pages have listed.
  kv_repaired repair() {
    kv_repaired result;
    result.buckets = mend_directory();
    page_lists lost = damaged_pages();
    // Pairs that a repair before could not read, when it wrote their pages again.
    const bool has_unlisted = may_have_unlisted();
    const std::set<listing> listings = has_unlisted ? all_listings() : std::set<listing>();
    std::vector<std::pair<std::uint8_t, std::string>> unlisted;
    for_each_head(
        [&](std::string_view key, const detail::kv_ssd::record_head& head) {
          const std::uint64_t bucket = detail::kv_ssd::bucket_of(head.space, key);
          const auto of = lost.find({bucket, head.page});
          if (of != lost.end())
            of->second.emplace_back(key);
          else if (has_unlisted && !listings.contains({bucket, head.page, std::string(key)}))
            unlisted.emplace_back(head.space, key);
        },
        [&](std::uint64_t, place_word, const record_view&) { ++result.damaged; });
    if (!lost.empty() && result.damaged != 0) note_unlisted();  // before a page is without a record that it has listed
    for (const auto& [page, keys] : lost) {
      reservation room(core_.buffer);
      if (!reserve(room, {buckets_.most_lines()})) {
        ++result.left;
        continue;
      }
      const lease through(core_.all_ports);
      const bool is_done = buckets_.write_again(page.first, page.second, keys, room.lines[0], *through);
      ++(is_done ? result.pages : result.left);
      if (is_done) result.relisted += keys.size();
    }
    for (const auto& [space, key] : unlisted) ++(list_again(space, key) ? result.relisted : result.left);
    if (buckets_.lacks_pages()) ++result.left;
    return result;
  }

  // Moves all records of the write buffer to flash. False: there is no room for them. For tests and measurements:
  // nothing becomes more durable.
  bool empty_buffer() {
    for (bool is_full = false;;)
      if (!mover_.drain(is_full)) return !is_full;
  }

  // Walks both indexes. Exact while no operation runs.
  [[nodiscard]] kv_stats stats() const {
    kv_stats s;
    const auto bytes = [&](std::uint64_t units) { return units * core_.sizes.unit_bytes; };
    const auto value = [](const std::atomic<std::uint64_t>& n) { return n.load(std::memory_order_relaxed); };
    s.capacity_bytes = bytes(core_.sizes.capacity_units());
    s.used_bytes = bytes(value(core_.used_units));
    s.lost_bytes = bytes(value(core_.lost_units));
    s.medium_bytes = sizeof(detail::kv_ssd::state) + std::uint64_t{core_.sizes.ring_lines} * media::cache_line_bytes +
                     core_.index.medium_bytes() + buckets_.medium_bytes();
    s.user_bytes = value(core_.counts.user_bytes);
    s.record_bytes = bytes(value(core_.counts.user_units));
    s.written_user = bytes(value(core_.counts.programmed[0]));
    s.written_moved = bytes(value(core_.counts.programmed[1]));
    s.written_buckets = bytes(value(core_.counts.programmed[2]));
    s.collected = value(core_.counts.collected);
    s.unlisted = value(core_.counts.unlisted);
    s.damaged = value(core_.counts.damaged);
    s.index_reads = value(core_.index.counts().reads);
    s.index_changes = value(core_.index.counts().changes);
    s.deferred = value(core_.index.counts().deferred);
    core_.index.for_each_table([&](const detail::kv_ssd::local_counts& c) {
      s.local_hits += value(c.hits);
      s.local_misses += value(c.misses);
      s.bloom_spared += value(c.spared);
    });
    return s;
  }

  // Checks V3, V10, (L1) and the lists of the buckets by reading all records. REQUIRES: no other operation.
  [[nodiscard]] indexes::check_report check();

  // What returned survives a power failure: the medium is durable.
  [[nodiscard]] bool is_durable() const { return media::is_durable(core_.medium); }
  // The bytes of the largest value.
  [[nodiscard]] std::size_t largest_value() const noexcept { return core_.sizes.largest_value; }
  // The bytes of the shortest key.
  [[nodiscard]] std::size_t shortest_key() const noexcept { return core_.sizes.short_keys ? 1 : 4; }
  // The bytes of the longest key.
  [[nodiscard]] std::size_t longest_key() const noexcept {
    return core_.sizes.short_keys ? 16 : detail::kv_ssd::most_key_bytes;
  }

 private:
  template <class Store>
  friend class kv_queue;
  using device_type = Device;

  // `rebuilt`: null, to open it.
  kv_device(opening how, Medium& medium, Device& flash, const kv_options& options, std::string_view name,
            kv_rebuilt* rebuilt = nullptr)
      : root_(how.root(name, layout_name, layout_version, options, rebuilt != nullptr)),
        core_(medium, flash, root_, opening::shape_of(root_), std::string(name) + ":i", options),
        pairs_(core_),
        buckets_(core_, std::string(name) + ":b"),
        mover_(core_),
        front_(front_of(flash)) {
    if (rebuilt == nullptr) {
      // An opening that fails has begun none, so a copy of one part still fits the other.
      detail::kv_ssd::moments both(medium, flash, root_);
      const std::uint64_t number = both.next_number();
      core_.checks_words = how.has_checked_words();
      if (how.has_checked_names()) core_.index.check_names();
      const std::uint64_t tail = recover(options.local_table, number);
      moment_ = both.enter(number, how.first_block());
      core_.checks_words = true;  // (E5)
      core_.index.check_names();
      core_.index.begin();
      replay(core_, root_, medium).keep_tail(tail);
    } else {
      core_.checks_words = true;  // the memory is complete when the flash has this version
      core_.index.check_names();
      core_.index.begin();
      rebuild_index(*rebuilt, options.local_table, how.first_block());
    }
  }

  // ---- the time of commands, if the flash belongs to a modelled key-value SSD

  [[nodiscard]] static blocks::pair_front* front_of(Device& flash) {
    if constexpr (requires { flash.pairs(); })
      return flash.pairs();
    else
      return nullptr;
  }
  // Waits until the device acts on a command with so many bytes of a value.
  void command(std::size_t bytes) {
    if (front_ != nullptr) front_->wait_until(front_->command(bytes));
  }
  // Waits until the host has so many bytes of an answer.
  void answer(std::size_t bytes) {
    if (front_ != nullptr) front_->wait_until(front_->answer(bytes));
  }

  // ---- input

  void check_space(std::uint8_t space) const {
    if (space == detail::kv_ssd::bucket_space)
      throw error("key space 255 is the device's own", "use key spaces 0 to 254");
  }
  void check_key(std::string_view key, std::uint8_t space) const {
    check_space(space);
    const std::size_t least = shortest_key();
    const std::size_t most = longest_key();
    if (key.size() < least || key.size() > most)
      throw error("a key of " + std::to_string(key.size()) + " bytes",
                  "this device has keys of " + std::to_string(least) + " to " + std::to_string(most) + " bytes");
  }
  void check_prefix(kv_prefix prefix, std::uint8_t space) const {
    if ((prefix.pattern & ~prefix.mask) != 0)
      throw error("the pattern of an iterator has bits that its mask does not have: no key can match",
                  "give the pattern's bits in the mask, too");
    check_space(space);
  }
  void check_value(std::size_t bytes) const {
    if (bytes > core_.sizes.largest_value)
      throw kv_too_large("a value of " + std::to_string(bytes) + " bytes",
                         "this device has values of at most " + std::to_string(core_.sizes.largest_value) + " bytes");
  }

  // ---- lines of the write buffer

  // Promised lines: the promise ends with it, unless a record took them.
  class reservation {
   public:
    explicit reservation(detail::kv_ssd::write_buffer& of) : of_(of) {}
    reservation(const reservation&) = delete;
    reservation& operator=(const reservation&) = delete;
    ~reservation() {
      for (const detail::kv_ssd::promised_lines& p : lines)
        if (!p.are_taken) of_.give_back(p.count);
    }
    std::array<detail::kv_ssd::promised_lines, 2> lines{};

   private:
    detail::kv_ssd::write_buffer& of_;
  };

  [[nodiscard]] static std::uint32_t lines_of(std::string_view key, std::size_t value_bytes) noexcept {
    return detail::kv_ssd::lines_for(detail::kv_ssd::record_bytes(key.size(), value_bytes));
  }

  // REQUIRES: no lock of a manager is held, and no reservation. False: the flash has no room to empty the buffer.
  [[nodiscard]] bool reserve(reservation& room, std::initializer_list<std::uint32_t> lengths) {
    if (lacks_superblock_.load(std::memory_order_acquire) && !empty_superblock()) return false;
    for (sync::backoff wait;;) {
      if (core_.buffer.promise({lengths.begin(), lengths.size()})) {
        for (std::size_t i = 0; i < lengths.size(); ++i) room.lines[i].count = lengths.begin()[i];
        return true;
      }
      bool is_full = false;
      // Seldom, as it costs a line: for an eighth of the ring, or if there is no other way.
      if (keep_tail(core_.buffer.lines() / 8) || mover_.drain(is_full) || keep_tail(1)) continue;
      if (is_full) return false;
      wait.pause();  // the oldest record is being written by another thread
    }
  }

  // A device that was rebuilt, or opened behind a crash, may have no free superblock. The write buffer could not be
  // emptied then, so it takes no record until one is free; keys may be deleted. False: none could be emptied.
  [[nodiscard]] bool empty_superblock() {
    static_cast<void>(keep_tail(1));
    const bool done = mover_.empty_one(core_.buffer.promisable(), [this](std::span<const std::byte> record) {
      return put_again(record_view(record));
    });
    if (done) lacks_superblock_.store(false, std::memory_order_release);
    return done;
  }
  // The record as it is, in the write buffer. False: it has no room there, or is damaged.
  [[nodiscard]] bool put_again(const record_view& record) {
    const std::uint8_t space = record.head().space;
    const std::uint64_t base = parts::base_of(space, record.key());
    reservation room(core_.buffer);
    const std::array<std::uint32_t, 1> length{lines_of(record.key(), record.head().value_bytes)};
    if (!record.has_whole_value(core_.seed) || !core_.buffer.promise(length)) return false;
    room.lines[0].count = length[0];
    const lease through(core_.all_ports);
    const std::scoped_lock lock(core_.lock_of(space, base));
    const auto before = pairs_.find(space, record.key(), base, *through, false);
    if (!before.is_there() || before.head.sequence != record.head().sequence) return true;
    return pairs_.put(before,
                      {.space = space,
                       .key = record.key(),
                       .value = record.value(),
                       .birth = before.head.birth,
                       .page = before.head.page},
                      room.lines[0]);
  }

  // Lines that are free since the last time are used again, if there are at least so many.
  [[nodiscard]] bool keep_tail(std::uint64_t least) {
    if (core_.buffer.unkept() < std::max<std::uint64_t>(least, 1)) return false;
    core_.buffer.keep_tail([this](std::uint64_t tail) {
      settle_pages(tail);  // (L3)
      replay(core_, root_, core_.medium).keep_tail(tail);
    });  // (L2)
    return true;
  }
  // The index leads to the newest version of each page of keys that has one before the tail.
  void settle_pages(std::uint64_t tail) {
    using namespace detail::kv_ssd;
    for (std::size_t m = managers_of_users; m < managers_of_users + managers_of_buckets; ++m) {
      const std::scoped_lock lock(core_.managers[m].mutex);
      core_.index.settle_before(m, tail);
    }
  }

  // ---- operations, with the lock of the key's manager

  [[nodiscard]] kv_outcome store(typename all_pairs::stored before, typename all_pairs::draft d, reservation& room,
                                 detail::kv_ssd::port<Device>& through, std::size_t sent) {
    const std::uint32_t units = core_.sizes.units_for(detail::kv_ssd::record_bytes(d.key.size(), d.value.size()));
    if (pairs_.charge(before, units) != all_pairs::charged::yes) return kv_outcome::full;
    bool is_done = false;
    std::optional<std::uint32_t> added;  // the page of a new key
    const auto undo = [&] {
      if (added) buckets_.take_back(d.space, d.key, *added, through);
      pairs_.refund(before, units);
    };
    try {
      if (before.is_there() && !before.is_damaged) {
        d.birth = before.head.birth;
        d.page = before.head.page;
        is_done = true;
      } else if (const auto page = before.is_damaged ? buckets_.page_with(d.space, d.key, through) : std::nullopt) {
        d.page = *page;  // a damaged record does not name it
        is_done = true;
      } else if ((added = buckets_.add(d.space, d.key, room.lines[1], through))) {
        d.page = *added;
        d.is_on_new_page = true;
        is_done = true;
      }
      if (is_done) is_done = pairs_.put(before, d, room.lines[0]);  // (B3) in buckets.hpp
    } catch (...) {
      undo();
      throw;
    }
    if (!is_done) {
      undo();
      return kv_outcome::full;
    }
    core_.counts.user_bytes.fetch_add(d.key.size() + sent, std::memory_order_relaxed);
    core_.counts.user_units.fetch_add(units, std::memory_order_relaxed);
    return before.is_there() ? kv_outcome::replaced : kv_outcome::added;
  }

  template <class Use>
  [[nodiscard]] auto with_value(std::string_view key, std::uint8_t space, Use&& use)
      -> std::optional<decltype(use(std::span<const std::byte>()))> {
    check_key(key, space);
    command(0);
    const lease through(core_.all_ports);
    std::size_t bytes = 0;
    auto result = with_value(key, space, *through, [&](std::span<const std::byte> v) {
      bytes = v.size();
      return use(v);
    });
    answer(bytes);
    return result;
  }
  [[nodiscard]] std::optional<std::vector<std::byte>> take(std::string_view key, std::uint8_t space, bool value) {
    check_key(key, space);
    command(0);
    const lease through(core_.all_ports);
    auto result = take(key, space, value, *through);
    if (value && result) answer(result->size());
    return result;
  }

  // Removes a deleted key from a page that garbage collection has met, if there is one. REQUIRES: no lock is held.
  void unlist() noexcept try {
    const auto suspect = mover_.next_suspect();
    if (!suspect) return;
    reservation room(core_.buffer);
    const std::array<std::uint32_t, 1> length{buckets_.most_lines()};
    if (!core_.buffer.promise(length)) return;
    room.lines[0].count = length[0];
    const std::uint64_t base = parts::base_of(suspect->space, suspect->key);
    const lease through(core_.all_ports);
    // With the lock no put of the key is under way, which relies on its page.
    const std::scoped_lock lock(core_.lock_of(suspect->space, base));
    const auto there = pairs_.find(suspect->space, suspect->key, base, *through, false);
    if (there.is_damaged) return;
    if (there.is_there() && there.head.page == suspect->page) return;
    buckets_.remove(suspect->space, suspect->key, suspect->page, &room.lines[0], *through);
    core_.counts.unlisted.fetch_add(1, std::memory_order_relaxed);
  } catch (const std::exception&) {
    // The failure has no consequence for the operation of the user: the page is met again.
  }

  // ---- operations through a port; the key and the value are possible

  [[nodiscard]] kv_outcome put(std::string_view key, std::span<const std::byte> value, kv_mode mode, std::uint8_t space,
                               detail::kv_ssd::port<Device>& through) {
    const kv_outcome result = try_to_put(key, value, mode, space, through);
    if (result != kv_outcome::full || core_.lost_units.load(std::memory_order_relaxed) == 0 ||
        !mover_.take_back_readable())
      return result;
    return try_to_put(key, value, mode, space, through);
  }
  [[nodiscard]] kv_outcome try_to_put(std::string_view key, std::span<const std::byte> value, kv_mode mode,
                                      std::uint8_t space, detail::kv_ssd::port<Device>& through) {
    unlist();
    const std::uint64_t base = parts::base_of(space, key);
    for (std::size_t expected = value.size();;) {
      reservation room(core_.buffer);
      if (!reserve(room, {lines_of(key, expected), buckets_.most_lines()})) return kv_outcome::full;
      const std::scoped_lock lock(core_.lock_of(space, base));
      const auto before = pairs_.find(space, key, base, through, mode == kv_mode::append);
      if (mode == kv_mode::no_overwrite && before.is_there()) return kv_outcome::exists;
      if (mode == kv_mode::update_only && !before.is_there()) return kv_outcome::absent;
      if (mode != kv_mode::append || !before.is_there())
        return store(before, {.space = space, .key = key, .value = value}, room, through, value.size());
      const std::size_t whole = before.value.size() + value.size();
      check_value(whole);
      if (lines_of(key, whole) > lines_of(key, expected)) {
        expected = whole;  // more lines are needed: without the lock
        continue;
      }
      std::vector<std::byte> joined(before.value.begin(), before.value.end());
      joined.insert(joined.end(), value.begin(), value.end());
      return store(before, {.space = space, .key = key, .value = joined}, room, through, value.size());
    }
  }

  // A removal goes on without: garbage collection meets the page of the key.
  [[nodiscard]] bool can_write_page(reservation& room) try {
    return !lacks_superblock_.load(std::memory_order_acquire) && reserve(room, {buckets_.most_lines()});
  } catch (const error&) {
    return false;  // the flash failed
  }

  template <class Use>
  [[nodiscard]] auto with_value(std::string_view key, std::uint8_t space, detail::kv_ssd::port<Device>& through,
                                Use&& use) -> std::optional<decltype(use(std::span<const std::byte>()))> {
    const std::uint64_t base = parts::base_of(space, key);
    const std::shared_lock lock(core_.lock_of(space, base));
    const auto there = pairs_.find(space, key, base, through, true);
    if (!there.is_there()) return std::nullopt;
    return use(there.value);
  }

  [[nodiscard]] bool is_there(std::string_view key, std::uint8_t space, detail::kv_ssd::port<Device>& through) {
    const std::uint64_t base = parts::base_of(space, key);
    const std::shared_lock lock(core_.lock_of(space, base));
    return pairs_.find(space, key, base, through, false).is_there();
  }

  [[nodiscard]] std::optional<std::vector<std::byte>> take(std::string_view key, std::uint8_t space, bool value,
                                                           detail::kv_ssd::port<Device>& through) {
    const std::uint64_t base = parts::base_of(space, key);
    reservation room(core_.buffer);
    const bool has_room = can_write_page(room);
    const std::scoped_lock lock(core_.lock_of(space, base));
    const auto before = pairs_.find(space, key, base, through, value);
    if (!before.is_there()) return std::nullopt;
    std::vector<std::byte> result(before.value.begin(), before.value.end());
    pairs_.erase(before);  // (B4) in buckets.hpp
    try {
      const auto page = before.is_damaged ? buckets_.page_with(space, key, through) : before.head.page;
      if (page) buckets_.remove(space, key, *page, has_room ? &room.lines[0] : nullptr, through);
    } catch (const std::exception&) {
      // The key is deleted. Its page lists it, until garbage collection meets the page.
    }
    return result;
  }

  // ---- all records

  // Calls visit(key, head) for each record of a pair whose head is whole, and visit_damaged(slot, place, record) for
  // the others: in no order and without a lock. One that is there throughout is met once, or twice if its slot changes;
  // one that is put or erased meanwhile is met or not. `of_pages`: records of pages of keys instead.
  template <class Visit, class VisitDamaged>
  void for_each_head(Visit&& visit, VisitDamaged&& visit_damaged, bool of_pages = false) {
    std::vector<std::uint64_t> all;
    core_.index.for_each_slot_beside_writers([&](std::uint64_t slot) {
      if (((slot & detail::kv_ssd::bucket_bit) != 0) == of_pages) all.push_back(slot);
    });
    const lease through(core_.all_ports);
    for (const std::uint64_t slot : all) {
      const std::uint64_t base = detail::kv_ssd::base_of_slot(slot);
      std::string key;
      detail::kv_ssd::record_head head;
      {
        const std::shared_lock lock(core_.lock_of(0, base));
        const std::optional<place_word> place = core_.index.place_of(slot);
        if (!place) continue;
        const auto [record, is_whole] = core_.look(*place, base, *through, false);
        if (!is_whole) {
          visit_damaged(slot, *place, record);
          continue;
        }
        key = record.key();
        head = record.head();
      }
      visit(std::string_view(key), head);
    }
  }

  // As for_each_key.
  template <class Visit>
  [[nodiscard]] kv_skipped walk_through(all_walks& walk, Visit&& visit) {
    constexpr std::size_t at_once = 256;
    kv_skipped skipped;
    for (std::vector<std::string> keys;; keys.clear()) {
      command(0);
      {
        // No port is held while `visit` runs: its operations take one themselves.
        const lease through(core_.all_ports);
        while (keys.size() < at_once) {
          std::optional<std::string> key = walk.next(*through, &skipped);
          if (!key) break;
          keys.push_back(std::move(*key));
        }
      }
      for (const std::string& key : keys) visit(key);
      if (keys.size() < at_once) return skipped;
    }
  }

  // Pages of keys, by bucket and number, each with a list of keys.
  using page_lists = std::map<std::pair<std::uint64_t, std::uint32_t>, std::vector<std::string>>;
  // Calls visit(bucket, page, its content) for each page of keys; std::nullopt: it cannot be read. Where the pages of a
  // bucket cannot be found: once, for all_pages.
  template <class Visit>
  void for_each_page(Visit&& visit) {
    const lease through(core_.all_ports);
    std::array<indexes::entry, 1> found{};
    for (std::uint64_t next = 0; buckets_.scan(next, found) != 0; next = found[0].key + 1) {
      const std::uint64_t bucket = found[0].key;
      std::optional<typename all_buckets::range> pages;
      try {
        pages = buckets_.find(bucket);
      } catch (const kv_damaged&) {
        visit(bucket, all_buckets::all_pages, std::optional<std::string>());
      }
      if (pages)
        for (std::uint32_t page = pages->oldest; page <= pages->newest; ++page)
          visit(bucket, page, buckets_.page_if_readable(bucket, page, *through));
      if (!all_buckets::is_followed(bucket, next)) return;
    }
  }
  using page_set = std::set<std::pair<std::uint64_t, std::uint32_t>>;
  // Writes damaged words of the directory again, from the names of all pages, and from the pages that records name. The
  // name of a word may be damaged, too: then it has no page, and its pages have no word. Returns how many there were.
  std::uint64_t mend_directory() {
    const std::vector<std::uint64_t> damaged = buckets_.damaged();
    if (damaged.empty() && !buckets_.lacks_pages()) return 0;
    std::map<std::uint64_t, std::optional<typename all_buckets::range>> found;
    for (const std::uint64_t bucket : damaged) found[bucket] = std::nullopt;
    const auto add = [&](std::uint64_t bucket, std::uint32_t page) {
      const auto at = found.find(bucket);
      if (at == found.end()) {
        const auto there = buckets_.find(bucket);
        if (there && there->oldest <= page && page <= there->newest) return;
      }
      auto& pages = at == found.end() ? found[bucket] : at->second;
      pages = pages ? typename all_buckets::range{std::min(pages->oldest, page), std::max(pages->newest, page)}
                    : typename all_buckets::range{page, page};
    };
    const auto ignore = [](std::uint64_t, place_word, const record_view&) {};
    for_each_head(
        [&](std::string_view key, const detail::kv_ssd::record_head& head) {
          add(detail::kv_ssd::bucket_of(head.space, key), head.page);
        },
        ignore);
    for_each_head(
        [&](std::string_view name, const detail::kv_ssd::record_head& /*head*/) {
          const auto [bucket, page] = all_buckets::page_of_name(name);
          add(bucket, page);
        },
        ignore, true);
    for (const auto& [bucket, pages] : found) buckets_.mend(bucket, pages);
    if (buckets_.lacks_pages()) buckets_.look_for(names_of_pages());
    const auto with_pages = std::ranges::count_if(found, [](const auto& one) { return one.second.has_value(); });
    return std::max<std::uint64_t>(damaged.size(), static_cast<std::uint64_t>(with_pages));
  }
  [[nodiscard]] typename all_buckets::page_names names_of_pages() {
    typename all_buckets::page_names result;
    core_.index.for_each_slot_beside_writers([&](std::uint64_t slot) {
      if ((slot & detail::kv_ssd::bucket_bit) == 0) return;
      const std::uint64_t base = detail::kv_ssd::base_of_slot(slot);
      const std::shared_lock lock(core_.lock_of(detail::kv_ssd::bucket_space, base));
      const std::optional<place_word> place = core_.index.place_of(slot);
      if (place && core_.can_be(*place)) result.insert(base);
    });
    return result;
  }
  // Those that cannot be read, each with an empty list.
  [[nodiscard]] page_lists damaged_pages() {
    page_lists result;
    for_each_page([&](std::uint64_t bucket, std::uint32_t page, const std::optional<std::string>& content) {
      if (!content) result.try_emplace({bucket, page});
    });
    return result;
  }

  // A bucket, a page of it, and a key that this lists.
  using listing = std::tuple<std::uint64_t, std::uint32_t, std::string>;
  [[nodiscard]] std::set<listing> all_listings() {
    std::set<listing> result;
    for_each_page([&](std::uint64_t bucket, std::uint32_t page, const std::optional<std::string>& content) {
      if (!content) return;
      all_buckets::for_each_key(*content, [&](std::string_view key) { result.emplace(bucket, page, key); });
    });
    return result;
  }
  // Puts a pair, and lists it on a page. False: no room; it is as before, and not on that page. REQUIRES: the pair's
  // lock is held, and lines of both are reserved.
  [[nodiscard]] bool put_on_new_page(const typename all_pairs::stored& before, typename all_pairs::draft d,
                                     reservation& room, detail::kv_ssd::port<Device>& through) {
    const std::optional<std::uint32_t> page = buckets_.add(d.space, d.key, room.lines[1], through);
    if (!page) return false;
    d.page = *page;
    d.is_on_new_page = true;
    if (pairs_.put(before, d, room.lines[0])) return true;
    buckets_.take_back(d.space, d.key, *page, through);
    return false;
  }
  // Lists a pair that no page lists, by putting it again; one that is absent, damaged or listed now stays as it is.
  // False: no room.
  [[nodiscard]] bool list_again(std::uint8_t space, const std::string& key) try {
    const std::uint64_t base = parts::base_of(space, key);
    for (std::size_t bytes = 0;;) {
      reservation room(core_.buffer);
      if (!reserve(room, {lines_of(key, bytes), buckets_.most_lines()})) return false;
      const lease through(core_.all_ports);
      const std::scoped_lock lock(core_.lock_of(space, base));
      const auto before = pairs_.find(space, key, base, *through, true);
      const std::vector<std::byte> value(before.value.begin(), before.value.end());
      if (!before.is_there() || !buckets_.lacks(space, key, before.head.page, *through)) return true;
      if (lines_of(key, value.size()) > room.lines[0].count) {
        bytes = value.size();  // more lines are needed: without the lock
        continue;
      }
      return put_on_new_page(before, {.space = space, .key = key, .value = value, .birth = before.head.birth}, room,
                             *through);
    }
  } catch (const kv_damaged&) {
    return true;
  }

  struct everything {
    kv_damage found{};
    std::vector<std::uint64_t> unnamed{};  // slots of the records without a name
    bool may_be_of_others = false;         // pages of other prefixes are damaged, or were
    bool were_unread = false;              // records that the flash could not read, and may read later
  };
  // As for_each_key_there.
  template <class Visit>
  [[nodiscard]] everything walk_over_all(kv_prefix prefix, std::uint8_t space, Visit&& visit) {
    check_prefix(prefix, space);
    if (!buckets_.is_sound()) buckets_.throw_damaged(std::uint64_t{space} << 32);
    everything all;
    all_walks walk(core_, buckets_, space, prefix);
    kv_skipped skipped = walk_through(walk, visit);
    // Two pages may list a damaged key, of which one is older than its record.
    std::ranges::sort(skipped.keys);
    skipped.keys.erase(std::unique(skipped.keys.begin(), skipped.keys.end()), skipped.keys.end());
    all.found.keys = skipped.keys.size();
    all.found.pages = skipped.pages;
    // A record that no readable page lists is of one that cannot be read, or could not be read itself at a repair.
    // Pages that the walk has passed over count as damaged all the time, also if they can be read since.
    const page_set lost(walk.skipped_pages().begin(), walk.skipped_pages().end());
    if (!lost.empty() || may_have_unlisted()) visit_unlisted(prefix, space, skipped.keys, lost, all, visit);
    for (const std::string& key : skipped.keys) visit(key);
    return all;
  }
  // Records may be on no page.
  [[nodiscard]] bool may_have_unlisted() const noexcept {
    return (root_.notes.load(std::memory_order_acquire) & detail::kv_ssd::has_unlisted_records) != 0 ||
           buckets_.lacks_pages();
  }
  void note_unlisted() {
    root_.notes.fetch_or(detail::kv_ssd::has_unlisted_records, std::memory_order_acq_rel);
    media::persist(core_.medium, root_.notes);
  }
  // Visits the keys that only the pages `lost` list, or none. `listed`: damaged keys that others list.
  template <class Visit>
  void visit_unlisted(kv_prefix prefix, std::uint8_t space, const std::vector<std::string>& listed,
                      const page_set& lost, everything& all, Visit&& visit) {
    const auto is_wanted = [&](std::uint8_t of, std::string_view key) { return of == space && prefix.has(key); };
    const bool has_unlisted = may_have_unlisted();
    all.may_be_of_others = has_unlisted;
    const std::set<listing> listings = has_unlisted ? all_listings() : std::set<listing>();
    const auto is_on_lost = [&](std::uint64_t bucket, std::uint32_t page) {
      return lost.contains({bucket, page}) || lost.contains({bucket, all_buckets::all_pages});
    };
    const auto is_unlisted = [&](std::string_view key, std::uint32_t page) {
      const std::uint64_t bucket = detail::kv_ssd::bucket_of(space, key);
      return is_on_lost(bucket, page) || (has_unlisted && !listings.contains({bucket, page, std::string(key)}));
    };
    std::map<std::uint64_t, std::vector<std::pair<std::uint64_t, place_word>>> unnamed;  // slots, by their chains
    std::vector<std::string> named;
    for_each_head(
        [&](std::string_view key, const detail::kv_ssd::record_head& head) {
          if (is_wanted(head.space, key) && is_unlisted(key, head.page)) visit(std::string(key));
        },
        [&](std::uint64_t slot, place_word place, const record_view& record) {
          const std::uint64_t base = detail::kv_ssd::base_of_slot(slot);
          all.were_unread |= core_.can_be(place) && !record.may_have_key();
          // A key of the right hash has no flipped bit.
          if (!all_pairs::has_readable_key(record, base))
            unnamed[base].emplace_back(slot, place);
          else if (is_wanted(record.head().space, record.key()) &&
                   !std::ranges::binary_search(listed, record.key(), std::less<>()))
            named.emplace_back(record.key());
        });
    // A key that a page lists is the name of a record of its hash. The walk has visited it, if it has read the page.
    for (const std::string& key : listed) unnamed.erase(parts::base_of(space, key));
    for_each_page([&](std::uint64_t bucket, std::uint32_t page, const std::optional<std::string>& content) {
      if (!content) {
        all.may_be_of_others |= bucket >> 32 != space || (bucket & prefix.mask) != prefix.pattern;
        return;
      }
      all_buckets::for_each_key(*content, [&](std::string_view key) {
        const bool is_name = unnamed.erase(parts::base_of(static_cast<std::uint8_t>(bucket >> 32), key)) != 0;
        if (is_name && is_on_lost(bucket, page)) named.emplace_back(key);
      });
    });
    for (const auto& [base, slots] : unnamed)
      for (const auto& [slot, place] : slots) {
        all.unnamed.push_back(slot);
        all.found.most_bytes += most_bytes_of(place);
      }
    all.found.records = all.unnamed.size();
    all.found.keys += named.size();
    for (const std::string& key : named) visit(key);
  }
  // The record of the slot goes, unless it can be read now, and is of another key space.
  void erase_unnamed(std::uint64_t slot, std::uint8_t space) {
    const std::uint64_t base = detail::kv_ssd::base_of_slot(slot);
    const lease through(core_.all_ports);
    const std::scoped_lock lock(core_.lock_of(0, base));
    const std::optional<place_word> place = core_.index.place_of(slot);
    if (!place) return;
    const auto [record, is_whole] = core_.look(*place, base, *through, false);
    if (is_whole && record.head().space != space) return;
    typename all_pairs::stored unnamed;
    unnamed.at = {.found = true, .slot = slot, .place = *place};
    pairs_.erase(unnamed);
  }
  // Bytes of key and value that a damaged record has at most. A lost one has none: it takes no space.
  [[nodiscard]] std::uint64_t most_bytes_of(place_word place) const noexcept {
    const std::uint64_t units = core_.units_of(place);
    return std::max<std::uint64_t>(units * core_.sizes.unit_bytes, sizeof(detail::kv_ssd::record_head)) -
           sizeof(detail::kv_ssd::record_head);
  }

  // ---- what an operation of a queue reads before it begins

  using wanted = detail::kv_ssd::fetched::wanted;

  // The part of flash that a search for the key will read. std::nullopt: its record is in the write buffer, or there is
  // none. With the same hash as another key it is that one's: the search reads the rest itself.
  [[nodiscard]] std::optional<wanted> record_of(std::uint8_t space, std::string_view key, bool whole, bool& is_there) {
    const std::uint64_t base = parts::base_of(space, key);
    const std::shared_lock lock(core_.lock_of(space, base));
    const auto at = core_.index.find(base, [](place_word /*place*/) { return true; });
    is_there = at.found;
    if (!at.found || at.place.is_in_ring() || !core_.can_be(at.place)) return std::nullopt;
    const std::uint64_t unit = at.place.address();
    return wanted{core_.sizes.byte_of(unit), core_.needed_of(at.place, whole), core_.flash.life_of(unit)};
  }
  // What the addition of a key to its bucket will read on flash.
  [[nodiscard]] std::optional<wanted> page_of_new(std::uint8_t space, std::string_view key) {
    std::optional<typename all_buckets::range> pages;
    try {
      pages = buckets_.find(detail::kv_ssd::bucket_of(space, key));
    } catch (const kv_damaged&) {
      // The addition fails.
    }
    if (!pages) return std::nullopt;
    const auto name = buckets_.name_of_page(detail::kv_ssd::bucket_of(space, key), pages->newest);
    bool ignored = false;
    return record_of(detail::kv_ssd::bucket_space, {name.data(), name.size()}, true, ignored);
  }
  // What the removal of a key will read of its bucket.
  [[nodiscard]] std::optional<wanted> page_of(std::uint8_t space, std::string_view key,
                                              detail::kv_ssd::port<Device>& through) {
    const std::uint64_t base = parts::base_of(space, key);
    std::uint32_t page = 0;
    {
      const std::shared_lock lock(core_.lock_of(space, base));
      const auto there = pairs_.find(space, key, base, through, false);
      if (!there.is_there() || there.is_damaged) return std::nullopt;
      page = there.head.page;
    }
    const auto name = buckets_.name_of_page(detail::kv_ssd::bucket_of(space, key), page);
    bool ignored = false;
    return record_of(detail::kv_ssd::bucket_space, {name.data(), name.size()}, true, ignored);
  }

  // ---- opening

  // The bits of a sequence that count within an opening; the bits above are the number of the opening.
  static constexpr unsigned sequence_bits = 64 - detail::moment::number_bits;

  // `number`: of the opening. Replays overwrites. Counts the valid units and finds the records of the write buffer, by
  // a walk over the index. Returns the line with which the ring begins: the tail to be kept when the opening is one.
  [[nodiscard]] std::uint64_t recover(bool keeps_tail, std::uint64_t number) {
    core_.last_sequence.store(number << sequence_bits, std::memory_order_release);
    replay overwrites(core_, root_, core_.medium);
    const std::uint64_t tail = overwrites.find();
    mend_names(overwrites);
    overwrites.run();
    core_.buffer.start(tail, keeps_tail);
    lose_older_pages(overwrites);
    std::vector<buffered> in_buffer;
    std::vector<std::uint64_t> lost;
    typename all_buckets::page_names pages;
    std::uint64_t used = 0;
    core_.index.recover([&](std::uint64_t slot, place_word place) {
      if ((slot & detail::kv_ssd::bucket_bit) != 0 && core_.can_be(place))
        pages.insert(detail::kv_ssd::base_of_slot(slot));
      if (!core_.can_be(place)) {
        lost.push_back(slot);
      } else if (place.is_in_ring()) {
        in_buffer.push_back({place, slot, lines_in_buffer(place, slot, !overwrites.has_found_any())});
      } else {
        used += place.units();
        core_.flash.add(place.address(), place.units());
      }
    });
    used += adopt(in_buffer, lost);
    for (const std::uint64_t slot : lost) core_.lose(slot);
    const std::uint64_t mended =
        buckets_.mend(std::move(pages), [&](const auto& missing, auto&& visit) { visit_names(missing, visit); });
    core_.counts.damaged.fetch_add(lost.size() + mended, std::memory_order_relaxed);
    core_.buffer.begin();
    core_.flash.begin();
    core_.used_units.store(used, std::memory_order_release);
    lacks_superblock_.store(core_.flash.free_count() == 0, std::memory_order_release);
    return tail;
  }

  // Where a name of the index is damaged, the record of the slot has the right one; or a newer record in the write
  // buffer, if a crash came before the index led to that.
  void mend_names(const replay& overwrites) {
    const lease through(core_.all_ports);
    const std::size_t mended = core_.index.mend_names([&](place_word place, auto&& visit) {
      overwrites.for_each_slot(visit);
      const auto [record, is_whole] = core_.look(place, *through, false);
      if (!is_whole) return;
      const std::uint64_t base = parts::base_of(record.head().space, record.key());
      for (std::uint64_t n = 0; n < detail::kv_ssd::slots; ++n) visit(base | n);
    });
    core_.counts.damaged.fetch_add(mended, std::memory_order_relaxed);
  }

  // Calls visit(name) for each of these pages whose record can be read.
  template <class Visit>
  void visit_names(const typename all_buckets::page_names& pages, Visit&& visit) {
    const lease through(core_.all_ports);
    core_.index.for_each([&](std::uint64_t slot, place_word place) {
      const std::uint64_t base = detail::kv_ssd::base_of_slot(slot);
      if (!pages.contains(base) || !core_.can_be(place)) return;
      const auto [record, is_whole] = core_.look(place, base, *through, false);
      if (is_whole) visit(record.key());
    });
  }

  // A page of keys whose newest version is damaged in the write buffer looks like one whose newest version a crash has
  // torn: replay ends with the version before. But a key that is in the index had its page before: (B2) < (B3) in
  // buckets.hpp. So a page that does not list such a key is damaged. Reads a page on flash where the write buffer has
  // none that lists the key.
  void lose_older_pages(const replay& overwrites) {
    page_lists others;
    overwrites.for_each_added([&](const record_view& record) {
      const std::uint64_t bucket = detail::kv_ssd::bucket_of(record.head().space, record.key());
      const auto name = all_buckets::name_of_page(bucket, record.head().page);
      const std::string_view page(name.data(), name.size());
      const std::optional<record_view> newest =
          overwrites.newest_of(parts::base_of(detail::kv_ssd::bucket_space, page));
      if (newest && newest->key() == page && all_buckets::lists(all_buckets::text_of(newest->value()), record.key()))
        return;
      others[{bucket, record.head().page}].emplace_back(record.key());
    });
    const lease through(core_.all_ports);
    for (const auto& [page, keys] : others) {
      const std::optional<std::string> content = buckets_.page_if_readable(page.first, page.second, *through);
      if (!content || std::ranges::all_of(keys, [&](const auto& key) { return all_buckets::lists(*content, key); }))
        continue;
      const auto name = all_buckets::name_of_page(page.first, page.second);
      const std::string_view key(name.data(), name.size());
      const std::uint64_t base = parts::base_of(detail::kv_ssd::bucket_space, key);
      const auto at = pairs_.find(detail::kv_ssd::bucket_space, key, base, *through, false).at;
      if (at.found) core_.lose(at.slot);
    }
  }

  void rebuild_index(kv_rebuilt& result, bool keeps_tail, blocks::buffer& first_block) {
    detail::kv_ssd::rebuilding<Medium, Device, Hash> work(core_, buckets_);
    result = work.run();
    // The next opening's sequences are larger than those on flash.
    const std::uint64_t number = (core_.last_sequence.load(std::memory_order_acquire) >> sequence_bits) + 1;
    // From here on the flash may change: no other memory of it is of any use.
    moment_ = detail::kv_ssd::moments(core_.medium, core_.device, root_).enter(number, first_block);
    core_.last_sequence.store(number << sequence_bits, std::memory_order_release);
    // The memory may have held a ring of this device before.
    const std::array<std::byte, media::cache_line_bytes> zeros{};
    for (std::uint64_t line = 0; line < core_.buffer.lines(); ++line)
      core_.medium.copy(core_.buffer.at(line), zeros.data(), zeros.size());
    core_.medium.fence();
    replay empty(core_, root_, core_.medium);
    const std::uint64_t tail = empty.find();
    empty.keep_tail(tail);
    core_.buffer.start(tail, keeps_tail);
    core_.buffer.begin();
    core_.flash.begin();
    for (const std::uint32_t s : work.unreadable()) mover_.retire(s);
    lacks_superblock_.store(core_.flash.free_count() == 0, std::memory_order_release);
    // Until the memory is complete, another rebuilding finds each record that this one has found.
    auto left = work.without_page();
    mover_.keep_all(true);
    const auto relist_them = [&] {
      std::erase_if(left, [&](const auto& pair) { return relist(pair.key, pair.space); });
    };
    relist_them();
    opening(core_.medium, core_.device).end_rebuilding(root_);
    mover_.keep_all(false);  // (F4): (F3) < (F4)
    relist_them();
    result.relisted = work.without_page().size() - left.size();
    result.unlisted = left.size();
  }
  // Puts a pair again, whose page is lost. False: no room, or it cannot be read now; it is there, and no page lists it.
  [[nodiscard]] bool relist(const std::string& key, std::uint8_t space) try {
    const std::uint64_t base = parts::base_of(space, key);
    const lease through(core_.all_ports);
    reservation room(core_.buffer);
    const auto value = with_value(
        key, space, *through, [](std::span<const std::byte> v) { return std::vector<std::byte>(v.begin(), v.end()); });
    if (!value || !reserve(room, {lines_of(key, value->size()), buckets_.most_lines()})) return false;
    const std::scoped_lock lock(core_.lock_of(space, base));
    const auto before = pairs_.find(space, key, base, *through, false);
    return put_on_new_page(before, {.space = space, .key = key, .value = *value, .birth = 0}, room, *through);
  } catch (const kv_damaged&) {
    return false;
  }

  // A slot whose word leads into the write buffer.
  struct buffered {
    place_word place;
    std::uint64_t slot;
    std::uint32_t lines;  // lines of its record; 0: the head is damaged, or is another one's
  };
  // `was_closed`: nothing was replayed, so no word is older than what lies in the buffer. Throws pmlab::error: the
  // record is whole and of another slot, which is not in the index, and nearly that of the word.
  [[nodiscard]] std::uint32_t lines_in_buffer(place_word place, std::uint64_t slot, bool was_closed) {
    const std::size_t room = std::size_t{core_.sizes.ring_lines - place.address()} * media::cache_line_bytes;
    const record_view record({core_.buffer.at(place.address()), room});
    if (room < sizeof(detail::kv_ssd::record_head) || !record.has_whole_head(core_.seed) ||
        bytes_of(record.head()) > room)
      return 0;
    const std::uint64_t base = parts::base_of(record.head().space, record.key());
    const bool is_of_slot = base == detail::kv_ssd::base_of_slot(slot) && place.fits(record.head().sequence);
    if (is_of_slot && core_.sizes.units_for(bytes_of(record.head())) == place.units())
      return detail::kv_ssd::lines_for(bytes_of(record.head()));
    // Its slot has another name, of which a few bits are damaged. Otherwise the record is one of before, of a key that
    // was erased, and the word leads there as it is damaged.
    const std::uint64_t own = base | record.head().slot;
    if (was_closed && std::popcount(own ^ slot) <= 8 && !core_.index.place_of(own))
      throw error("the write buffer of the key-value device in " + core_.medium.name() + " is damaged at line " +
                      std::to_string(place.address()) + ", or the index at slot " + std::to_string(slot),
                  "restore the pool and the flash from a copy");
    return 0;
  }
  // Finds the records of the write buffer, and returns their units. One with a damaged head has the lines up to the
  // next one, as far as its word says; it stays where it is, and costs its key. A word that leads into another record,
  // or between two, has none: `lost` gets its slot.
  [[nodiscard]] std::uint64_t adopt(std::vector<buffered>& all, std::vector<std::uint64_t>& lost) {
    std::ranges::sort(all, {}, [](const buffered& b) { return std::pair(b.place.address(), b.lines == 0); });
    std::uint64_t units = 0;
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::uint64_t line = all[i].place.address();
      std::uint64_t lines = all[i].lines;
      if (lines == 0) {
        const std::uint64_t next = i + 1 < all.size() ? all[i + 1].place.address() : core_.sizes.ring_lines;
        const std::size_t most = std::size_t{all[i].place.units()} * core_.sizes.unit_bytes;
        lines = std::min<std::uint64_t>(next - line, detail::kv_ssd::lines_for(most));
      }
      const bool is_there =
          lines != 0 && line >= end && core_.sizes.units_for(lines * media::cache_line_bytes) == all[i].place.units() &&
          core_.buffer.adopt(line, static_cast<std::uint32_t>(lines), detail::kv_ssd::base_of_slot(all[i].slot));
      if (!is_there) {
        lost.push_back(all[i].slot);
        continue;
      }
      if (all[i].lines == 0) core_.counts.damaged.fetch_add(1, std::memory_order_relaxed);
      end = line + lines;
      units += all[i].place.units();
    }
    return units;
  }

  detail::kv_ssd::state& root_;
  parts core_;
  all_pairs pairs_;
  all_buckets buckets_;
  detail::kv_ssd::mover<Medium, Device, Hash> mover_;
  blocks::pair_front* front_;  // nullptr: commands take no time but that of the calls
  detail::moment moment_{0};   // this opening
  std::atomic<unsigned> iterators_{0};
  std::atomic<bool> lacks_superblock_{false};  // since it was opened
};

template <media::medium Medium, blocks::device Device, class Hash>
indexes::check_report kv_device<Medium, Device, Hash>::check() {
  indexes::check_report report = core_.index.check();
  for (const std::string& wrong : buckets_.check().violations) report.add(wrong);
  const lease through(core_.all_ports);
  std::vector<std::uint64_t> valid(core_.flash.count());
  std::unordered_set<std::uint64_t> places;
  std::uint64_t used = 0;
  std::uint64_t in_buffer = 0;
  report.entries = 0;
  std::vector<std::pair<std::uint64_t, place_word>> all;
  core_.index.for_each([&](std::uint64_t slot, place_word place) { all.emplace_back(slot, place); });
  for (const auto& [slot, place] : all) {
    const std::string owner = "slot " + std::to_string(slot);
    if (!core_.can_be(place)) {
      report.add(owner + " leads to no possible place: its record is damaged");
      continue;
    }
    used += place.units();
    in_buffer += place.is_in_ring() ? 1 : 0;
    if (!place.is_in_ring()) valid[core_.flash.number_of(place.address())] += place.units();
    if (!places.insert(2 * place.address() + (place.is_in_ring() ? 1 : 0)).second)
      report.add(owner + " leads to a record that another slot leads to (V3)");
    try {
      const std::uint64_t base = detail::kv_ssd::base_of_slot(slot);
      const record_view record = core_.load(place, base, *through, true);
      if (!record.has_whole_value(core_.seed)) core_.damaged(place, base);
      const std::string key(record.key());
      const std::uint8_t space = record.head().space;
      const std::uint32_t page = record.head().page;
      const auto found = pairs_.find(space, key, base, *through, false);
      if (!found.is_there() || found.at.slot != slot) report.add(owner + " is not the one that a search finds (V3)");
      if (space == detail::kv_ssd::bucket_space) continue;
      ++report.entries;
      bool is_listed = false;
      const std::string content = buckets_.page(detail::kv_ssd::bucket_of(space, key), page, *through);
      all_buckets::for_each_key(content, [&](std::string_view k) { is_listed |= k == key; });
      if (!is_listed) report.add(owner + " has a key that its bucket does not list (V5)");
    } catch (const kv_damaged& damage) {
      report.add(damage.what());
    }
  }
  if (used != core_.used_units.load(std::memory_order_acquire)) report.add("the used units are counted wrong (V3)");
  const auto left = core_.buffer.at_rest();
  if (left.promised != 0)
    report.add(std::to_string(left.promised) + " lines of the write buffer are promised to no operation (V10)");
  if (left.unfinished != 0)
    report.add(std::to_string(left.unfinished) + " records of the write buffer belong to no operation (V10)");
  if (left.records != in_buffer)
    report.add("the write buffer keeps " + std::to_string(left.records) + " records, and the index leads to " +
               std::to_string(in_buffer) + " in it (V10)");
  // Lines before it are used again: a crash would replay what lies between the two.
  if (left.kept_tail != 0 && !replay(core_, root_, core_.medium).has_tail(left.kept_tail))
    report.add("the write buffer relies on another tail than the medium has (L1)");
  for (std::uint32_t i = 0; i < core_.flash.count(); ++i)
    if (valid[i] != core_.flash.valid(i))
      report.add("superblock " + std::to_string(i) + " has " + std::to_string(valid[i]) + " valid units, and counts " +
                 std::to_string(core_.flash.valid(i)) + " (V3)");
    else if (valid[i] != 0 && core_.flash.is_free(i))
      report.add("superblock " + std::to_string(i) + " is free and has valid units (V4)");
  return report;
}

}  // namespace pmlab::stores
