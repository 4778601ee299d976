// Iterator buckets: the keys of a key space with the same first four bytes, in pages.
//
// A page is a pair as any other, in a key space of the device's own: it goes through the write buffer, is moved by
// garbage collection and has checksums. A key is added at the end of its bucket's newest page, and its record has the
// page's number, for as long as the key is there. The directory is an ordered index from (key space, four bytes) to the
// numbers of the oldest and the newest page.
//
// Orders, of a key that was absent:
//   (B1) the directory has the page  (B2) the page has the key, durably  (B3) the index leads to the key's record
//   (B1) < (B2) < (B3): an iterator misses no key.
// and of one that is deleted:
//   (B4) no word leads to its record  (B5) the page is without the key  (B6) the directory is without an empty bucket
//   (B4) < (B5) < (B6): a crash leaves a listed key without a record at most. An iterator does not return it: a listed
//   key counts only if its record is there, and names this page.
//
// The directory has nothing that the pages' names do not have, too. Where a bit of it flips, opening writes it again:
//   (B7) a tree beside it has all that was found  (B8) this one is the directory, by one publication
//   (B7) < (B8): a crash leaves the directory as it was, for the next opening.
//
// A page that is damaged stays as it is: keys are added behind it, and those that it lists are listed by no page. A
// repair (kv_device::repair) writes it again, from the records that name it.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/stores/kv_ssd/core.hpp>
#include <pmlab/stores/kv_ssd/pairs.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::kv_ssd {

// The bucket of a key: its key space, and its first four bytes.
[[nodiscard]] inline std::uint64_t bucket_of(std::uint8_t space, std::string_view key) noexcept {
  return std::uint64_t{space} << 32 | kv_prefix::first_of(key);
}

// Thread safety: any thread. Lock order: a manager of users, then a bucket, then managers of buckets.
template <media::medium Medium, blocks::device Device, class Hash>
class buckets {
  using parts = core<Medium, Device, Hash>;
  using all_pairs = pairs<Medium, Device, Hash>;

 public:
  buckets(parts& of, std::string_view directory) : core_(of), pairs_(of), name_(directory), directory_(open(name_)) {}

  // The bytes of the key of a page.
  static constexpr std::size_t name_bytes = 16;

  // No page has this number.
  static constexpr std::uint32_t all_pages = 0;

  // The pages that a bucket may have.
  struct range {
    std::uint32_t oldest = 0;
    std::uint32_t newest = 0;
  };

  // Lines that a put or a removal may need for a page.
  [[nodiscard]] std::uint32_t most_lines() const noexcept { return lines_for(core_.sizes.bucket_bytes); }

  // Adds a key that is absent. Returns its page, or std::nullopt without space. `room`: most_lines. Durable on return.
  [[nodiscard]] std::optional<std::uint32_t> add(std::uint8_t space, std::string_view key, promised_lines& room,
                                                 port<Device>& through) {
    const std::uint64_t bucket = bucket_of(space, key);
    const std::scoped_lock lock(lock_of(bucket));
    const std::optional<range> there = find(bucket);
    if (there) return add_to(bucket, *there, key, room, through);
    if (lacks_pages()) throw_damaged(bucket);  // it may have pages, which would be written over
    const range pages{1, 1};
    if (!set(bucket, pages)) return std::nullopt;  // (B1)
    // A bucket without a page takes space in the medium for nothing.
    std::optional<std::uint32_t> page;
    try {
      page = add_to(bucket, pages, key, room, through);
    } catch (...) {
      erase(bucket);
      throw;
    }
    if (!page) erase(bucket);
    return page;
  }

  // The same as `remove`, of a key that `add` has added, and that has got no record since. Does not throw: at worst the
  // page lists the key until garbage collection meets it.
  void take_back(std::uint8_t space, std::string_view key, std::uint32_t page, port<Device>& through) noexcept try {
    promised_lines lines;
    const std::array<std::uint32_t, 1> length{most_lines()};
    const bool has_lines = core_.buffer.promise(length);
    lines.count = has_lines ? length[0] : 0;
    try {
      remove(space, key, page, has_lines ? &lines : nullptr, through);
    } catch (...) {
      if (has_lines && !lines.are_taken) core_.buffer.give_back(lines.count);
      throw;
    }
    if (has_lines && !lines.are_taken) core_.buffer.give_back(lines.count);
  } catch (const std::exception&) {
    // The page lists a key without a record: it is never returned.
  }

  // The oldest page of its bucket that lists the key; of those that can be read.
  [[nodiscard]] std::optional<std::uint32_t> page_with(std::uint8_t space, std::string_view key,
                                                       port<Device>& through) {
    const std::uint64_t bucket = bucket_of(space, key);
    const std::scoped_lock lock(lock_of(bucket));
    const std::optional<range> pages = find(bucket);
    if (!pages) return std::nullopt;
    for (std::uint32_t page = pages->oldest; page <= pages->newest; ++page) {
      const std::optional<std::string> content = readable_page(bucket, page, through);
      if (content && place_in(*content, key)) return page;
    }
    return std::nullopt;
  }

  // The page can be read, and does not list the key.
  [[nodiscard]] bool lacks(std::uint8_t space, std::string_view key, std::uint32_t page, port<Device>& through) {
    const std::uint64_t bucket = bucket_of(space, key);
    const std::scoped_lock lock(lock_of(bucket));
    const std::optional<std::string> content = readable_page(bucket, page, through);
    return content && !place_in(*content, key);
  }

  // The page that `number` was is damaged: it lists these keys from now on, or is gone if there are none. False: no
  // room, or it is not damaged. `room` as for `add`. REQUIRES: `keys` has each key whose record names the page.
  [[nodiscard]] bool write_again(std::uint64_t bucket, std::uint32_t number, const std::vector<std::string>& keys,
                                 promised_lines& room, port<Device>& through) {
    const std::scoped_lock lock(lock_of(bucket));
    if (readable_page(bucket, number, through)) return false;
    std::string content;
    for (const std::string& key : keys) list_key(content, key);
    if (!content.empty()) {
      if (page_bytes(content.size()) > core_.sizes.bucket_bytes) return false;
      return write_page(bucket, number, content, room, through) == written::yes;
    }
    erase_page(bucket, number, through);
    shorten(bucket, number, through);
    return true;
  }
  // A bucket none of whose keys is there: its pages go, whether they can be read or not.
  void drop(std::uint64_t bucket, port<Device>& through) {
    const std::scoped_lock lock(lock_of(bucket));
    const std::optional<range> pages = find(bucket);
    if (!pages) return;
    for (std::uint32_t page = pages->oldest; page <= pages->newest; ++page) erase_page(bucket, page, through);
    erase(bucket);  // (B6)
  }

  // Removes a key that is absent now (B4) from its page. `room` as for `add`, or null: the page stays, if the key is
  // not its only one.
  void remove(std::uint8_t space, std::string_view key, std::uint32_t page, promised_lines* room,
              port<Device>& through) {
    const std::uint64_t bucket = bucket_of(space, key);
    const std::scoped_lock lock(lock_of(bucket));
    std::string content = read_page(bucket, page, through);
    const std::optional<std::size_t> at = place_in(content, key);
    if (!at) return;
    content.erase(*at, 1 + key.size());
    if (content.empty()) {
      erase_page(bucket, page, through);  // (B5)
      shorten(bucket, page, through);
    } else if (room != nullptr) {
      static_cast<void>(write_page(bucket, page, content, *room, through));  // (B5b) before the return
    }
  }

  // A rebuilt index has this page: so has the directory. Throws pmlab::error: no space.
  void list_page(std::string_view name) {
    const auto [bucket, number] = page_of_name(name);
    list_page(bucket, number);
  }
  // Keys are added to a page with a greater number only. Throws pmlab::error: no space.
  void end_page(std::uint64_t bucket, std::uint32_t number) { list_page(bucket, number + 1); }

  // Buckets from `from` on, in ascending order. Throws kv_damaged: a link of the directory is damaged.
  [[nodiscard]] std::size_t scan(std::uint64_t from, std::span<indexes::entry> out) {
    return in_directory([&] { return directory_->scan(from, out); });
  }
  // The pages of a bucket, if it has any. Throws kv_damaged: its word of the directory is damaged.
  [[nodiscard]] std::optional<range> find(std::uint64_t bucket) {
    const std::optional<std::uint64_t> w = word_of(bucket);
    if (!w) return std::nullopt;
    if (const page_range pages(*w); pages.is_whole(bucket)) return range{pages.oldest(), pages.newest()};
    throw_damaged(bucket);
  }
  [[noreturn]] void throw_damaged(std::uint64_t bucket) const {
    throw kv_damaged("the directory of device " + core_.device.name() + " is damaged: pages of keys of key space " +
                         std::to_string(bucket >> 32) + " are not found",
                     is_sound()
                         ? "repair the device: the directory is written again"
                         : "open the device again: the directory is written again, if the medium has room for it");
  }
  // Those whose word of the directory is damaged.
  [[nodiscard]] std::vector<std::uint64_t> damaged() {
    std::vector<std::uint64_t> found;
    static_cast<void>(for_each_word([&](std::uint64_t bucket, page_range pages) {
      if (!pages.is_whole(bucket)) found.push_back(bucket);
    }));
    return found;
  }

  // False: links or bounds of the directory are damaged, and the medium had no room to write it again.
  [[nodiscard]] bool is_sound() const noexcept { return is_sound_.load(std::memory_order_acquire); }
  // Hashes of the names of pages, as the index has them.
  using page_names = std::unordered_set<std::uint64_t>;
  // The directory does not lead to all pages, and nothing of it shows which are missing.
  [[nodiscard]] bool lacks_pages() const noexcept { return lacks_pages_.load(std::memory_order_acquire); }
  // Opening. `pages` has all that the index has. Where the directory does not lead to each of them, it is written
  // again, durably; for_each_name(missing, visit) calls visit(name) for those of `missing` whose names can be read.
  // Returns how many words of it were damaged, at least. REQUIRES: no other operation.
  template <class ForEachName>
  std::uint64_t mend(page_names pages, ForEachName&& for_each_name) {
    if (leads_to(pages)) return 0;
    std::uint64_t mended = directory_->mend_keys(
        [&](std::uint64_t bucket, std::uint64_t w, bool) { return name_of(bucket, page_range(w), pages); });
    if (mended == 0 || !leads_to(pages)) {
      ranges found;
      const page_names missing = pages;
      for_each_name(missing, [&](std::string_view name) {
        const auto [bucket, number] = page_of_name(name);
        extend(found, bucket, {number, number});
        pages.erase(hash_of_page(bucket, number));
      });
      if (is_sound())
        set_words(found, pages.empty());
      else
        write_again(found);
      ++mended;
    }
    lacks_pages_.store(!is_sound() || !pages.empty(), std::memory_order_release);
    return mended;
  }
  // Beside other operations: looks whether the directory leads to all of `pages` now.
  void look_for(page_names pages) {
    const bool is_ascending = for_each_word([&](std::uint64_t bucket, page_range w) {
      if (word_of(bucket) == w.word()) leave_out(bucket, w, pages);
    });
    const bool lacks = !is_ascending || !pages.empty() || !is_sound();
    lacks_pages_.store(lacks, std::memory_order_release);
  }
  // A walk that was at `from` goes on behind `bucket`. A damaged name may be any number: no walk turns back.
  [[nodiscard]] static bool is_followed(std::uint64_t bucket, std::uint64_t from) noexcept {
    return bucket >= from && bucket != ~std::uint64_t{0};
  }
  // A bucket whose word is damaged or lost has these pages, or none.
  void mend(std::uint64_t bucket, std::optional<range> pages) {
    const std::scoped_lock lock(lock_of(bucket));
    const std::optional<std::uint64_t> w = word_of(bucket);
    if (w && page_range(*w).is_whole(bucket)) {
      if (pages) list_pages(bucket, *pages);
    } else if (pages) {
      must_set(bucket, *pages);
    } else {
      erase(bucket);
    }
  }
  // The keys that a page lists, one after the other, each behind its length; empty: there is no such page. Throws
  // kv_damaged.
  [[nodiscard]] std::string page(std::uint64_t bucket, std::uint32_t number, port<Device>& through) {
    const std::scoped_lock lock(lock_of(bucket));
    return read_page(bucket, number, through);
  }
  // The same. std::nullopt: it is damaged.
  [[nodiscard]] std::optional<std::string> page_if_readable(std::uint64_t bucket, std::uint32_t number,
                                                            port<Device>& through) {
    const std::scoped_lock lock(lock_of(bucket));
    return readable_page(bucket, number, through);
  }
  // Calls visit(key) for each.
  template <class Visit>
  static void for_each_key(std::string_view page, Visit&& visit) {
    for (std::size_t at = 0; at < page.size();) {
      const std::size_t length = static_cast<std::uint8_t>(page[at]);
      visit(page.substr(at + 1, length));
      at += 1 + length;
    }
  }
  [[nodiscard]] static bool lists(std::string_view page, std::string_view key) {
    return place_in(page, key).has_value();
  }
  // The content that a page's record has as its value.
  [[nodiscard]] static std::string_view text_of(std::span<const std::byte> value) noexcept {
    return {reinterpret_cast<const char*>(value.data()), value.size()};
  }

  // The key of a page, in the key space of bucket pages.
  [[nodiscard]] static std::array<char, name_bytes> name_of_page(std::uint64_t bucket, std::uint32_t page) noexcept {
    std::array<char, name_bytes> name{};
    std::memcpy(name.data(), &bucket, sizeof bucket);
    std::memcpy(name.data() + sizeof bucket, &page, sizeof page);
    return name;
  }

  // The bucket and the number of the page with this key.
  [[nodiscard]] static std::pair<std::uint64_t, std::uint32_t> page_of_name(std::string_view name) noexcept {
    std::pair<std::uint64_t, std::uint32_t> page{};
    std::memcpy(&page.first, name.data(), sizeof page.first);
    std::memcpy(&page.second, name.data() + sizeof page.first, sizeof page.second);
    return page;
  }

  // 0: the directory is not sound.
  [[nodiscard]] std::uint64_t medium_bytes() const { return is_sound() ? directory_->stats().medium_bytes : 0; }
  [[nodiscard]] indexes::check_report check() {
    indexes::check_report report = directory_->check();
    if (is_sound())
      for (const std::uint64_t bucket : damaged())
        report.add("the word of bucket " + std::to_string(bucket) + " in the directory is damaged");
    if (lacks_pages()) report.add("the directory is damaged: it does not lead to all pages of keys");
    return report;
  }

 private:
  static constexpr std::size_t locks = 64;
  static constexpr std::uint32_t most_names = 8;  // tries of a new page
  enum class written : std::uint8_t { yes, no_slot, no_room };

  // Calls visit(bucket, word) for each bucket. False: their names do not ascend.
  template <class Visit>
  [[nodiscard]] bool for_each_word(Visit&& visit) {
    bool is_ascending = true;
    std::array<indexes::entry, 16> some;
    for (std::uint64_t next = 0;;) {
      const std::uint64_t from = next;
      const std::size_t count = scan(from, some);
      for (const indexes::entry& e : std::span(some).first(count)) {
        visit(e.key, page_range(e.value));
        if (e.key < next)
          is_ascending = false;
        else
          next = e.key + 1;
      }
      if (count < some.size() || next <= from) return is_ascending;
    }
  }
  using tree = indexes::fast_fair<Medium>;
  using ranges = std::map<std::uint64_t, range>;

  [[nodiscard]] std::unique_ptr<tree> open(const std::string& name) {
    return std::unique_ptr<tree>(new tree(tree::open(core_.medium, name)));
  }
  // Calls visit(bucket, word) for each, as the leaves have them. REQUIRES: no other operation.
  template <class Visit>
  void for_each_in_leaves(Visit&& visit) {
    directory_->mend_keys([&](std::uint64_t bucket, std::uint64_t w, bool is_entry) -> std::optional<std::uint64_t> {
      if (is_entry) visit(bucket, page_range(w));
      return std::nullopt;
    });
  }
  // Leaves in `pages` those that the directory does not lead to. True: there are none, and each way to a bucket is the
  // right one. REQUIRES: no other operation.
  [[nodiscard]] bool leads_to(page_names& pages) {
    for_each_in_leaves([&](std::uint64_t bucket, page_range w) { leave_out(bucket, w, pages); });
    bool are_ways_right = directory_->check().ok();
    bool is_whole = pages.empty();
    if (are_ways_right)
      directory_->for_each([&](std::uint64_t bucket, std::uint64_t w) {
        are_ways_right &= directory_->find(bucket) == w;
        is_whole &= page_range(w).is_whole(bucket);
      });
    is_sound_.store(are_ways_right, std::memory_order_release);
    return are_ways_right && is_whole;
  }
  static void extend(ranges& words, std::uint64_t bucket, range pages) {
    range& all = words.try_emplace(bucket, pages).first->second;
    all = {std::min(all.oldest, pages.oldest), std::max(all.newest, pages.newest)};
  }
  // The directory, which is sound, gets these pages in its place. `are_all`: what its damaged words led to is among
  // them.
  void set_words(const ranges& found, bool are_all) try {
    for (const std::uint64_t bucket : damaged())
      if (are_all && !found.contains(bucket)) erase(bucket);
    for (const auto& [bucket, pages] : found) mend(bucket, pages);
  } catch (const error&) {
    is_sound_.store(false, std::memory_order_release);  // no room in the medium
  }
  // Another directory has these pages, and those that the whole words of this one lead to. Without room in the medium
  // there is none, and this one is not sound.
  void write_again(ranges found) try {
    for_each_in_leaves([&](std::uint64_t bucket, page_range w) {
      if (w.is_whole(bucket)) extend(found, bucket, {w.oldest(), w.newest()});
    });
    const std::string beside = name_.substr(0, name_.size() - 1) + "r";
    const auto root_of = [&](const std::string& name) -> word& {
      return *core_.medium.named_root(name, tree::layout_name, tree::layout_version).word;
    };
    is_sound_.store(false, std::memory_order_release);
    replace_root(root_of(beside), 0, root_of(beside));  // what a crash, or an opening without room, has left
    {
      tree made = tree::open(core_.medium, beside);
      for (const auto& [bucket, pages] : found)
        if (made.upsert(bucket, page_range(bucket, pages.oldest, pages.newest).word()) == indexes::outcome::full)
          return;
    }                                                                                                // (B7)
    replace_root(root_of(name_), root_of(beside).load(std::memory_order_acquire), root_of(beside));  // (B8)
    directory_ = open(name_);
    is_sound_.store(true, std::memory_order_release);
  } catch (const error&) {
    // The medium has no room for one name more, or for a node.
  }
  // `root` gets the word w, and `left` none.
  void replace_root(word& root, std::uint64_t w, word& left) {
    typename Medium::publication change(core_.medium);
    change.store(left, 0);
    if (&root != &left) change.store(root, w);
    change.commit();
  }
  // The directory leads to the pages of this word.
  static void leave_out(std::uint64_t bucket, page_range w, page_names& pages) {
    // More pages than that are those of a damaged word of a release before.
    if (!w.is_whole(bucket) || w.newest() - w.oldest() > std::uint32_t{1} << 24) return;
    for (std::uint64_t page = w.oldest(); page <= w.newest() && !pages.empty(); ++page)
      pages.erase(hash_of_page(bucket, static_cast<std::uint32_t>(page)));
  }
  [[nodiscard]] static std::uint64_t hash_of_page(std::uint64_t bucket, std::uint32_t page) noexcept {
    const std::array<char, name_bytes> name = name_of_page(bucket, page);
    return parts::base_of(bucket_space, {name.data(), name.size()});
  }
  // The bucket that a word of the directory is of, if a bit of its name has flipped, and if it has one of `pages`.
  [[nodiscard]] static std::optional<std::uint64_t> name_of(std::uint64_t damaged, page_range w,
                                                            const page_names& pages) {
    if (w.is_whole(damaged)) return std::nullopt;
    for (unsigned bit = 0; bit < 64; ++bit) {
      const std::uint64_t bucket = damaged ^ std::uint64_t{1} << bit;
      if (w.is_whole(bucket) &&
          (pages.contains(hash_of_page(bucket, w.oldest())) || pages.contains(hash_of_page(bucket, w.newest()))))
        return bucket;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::mutex& lock_of(std::uint64_t bucket) noexcept { return mutexes_[mix_bits(bucket) % locks]; }
  [[nodiscard]] static std::size_t page_bytes(std::size_t content) noexcept {
    return record_bytes(name_bytes, content);
  }

  static void list_key(std::string& content, std::string_view key) {
    content.push_back(static_cast<char>(key.size()));
    content.append(key);
  }

  // `add`, of a bucket that the directory has. REQUIRES: its lock is held.
  [[nodiscard]] std::optional<std::uint32_t> add_to(std::uint64_t bucket, range pages, std::string_view key,
                                                    promised_lines& room, port<Device>& through) {
    std::optional<std::string> newest = readable_page(bucket, pages.newest, through);
    if (newest && place_in(*newest, key)) return pages.newest;
    // One that is damaged takes no key: what it lists would be lost.
    const bool is_full = !newest || page_bytes(newest->size() + 1 + key.size()) > core_.sizes.bucket_bytes;
    std::string content = is_full ? std::string() : std::move(*newest);
    list_key(content, key);
    range more = pages;
    const auto restore = [&] {
      if (more.newest != pages.newest) static_cast<void>(set(bucket, pages));
    };
    auto result = written::no_slot;
    // An index that is nearly full may have no slot for the name of one page, and have some for the next. A page that
    // is there has its slot.
    try {
      for (std::uint32_t tries = 0; tries < most_names && result == written::no_slot; ++tries) {
        if (is_full || tries > 0) {
          ++more.newest;
          if (!set(bucket, more)) break;  // (B1b) before (B2)
        }
        result = write_page(bucket, more.newest, content, room, through);  // (B2)
      }
    } catch (...) {
      restore();
      throw;
    }
    if (result == written::yes) return more.newest;
    restore();
    return std::nullopt;
  }

  void list_page(std::uint64_t bucket, std::uint32_t number) { list_pages(bucket, {number, number}); }
  // Beside those that it has.
  void list_pages(std::uint64_t bucket, range pages) {
    if (const std::optional<range> there = find(bucket))
      pages = {std::min(there->oldest, pages.oldest), std::max(there->newest, pages.newest)};
    must_set(bucket, pages);
  }
  void must_set(std::uint64_t bucket, range pages) {
    if (!set(bucket, pages))
      throw error("no space in " + core_.medium.name() + " for the directory of the device", "make the pool larger");
  }
  [[nodiscard]] bool set(std::uint64_t bucket, range pages) {
    const std::uint64_t w = page_range(bucket, pages.oldest, pages.newest).word();
    return in_directory([&] { return directory_->upsert(bucket, w); }) != indexes::outcome::full;
  }
  void erase(std::uint64_t bucket) {
    static_cast<void>(in_directory([&] { return directory_->erase(bucket); }));
  }
  [[nodiscard]] std::optional<std::uint64_t> word_of(std::uint64_t bucket) {
    return in_directory([&] { return directory_->find(bucket); });
  }
  // What operation() returns. Throws kv_damaged: a link of the directory is damaged.
  template <class Operation>
  auto in_directory(Operation&& operation) try {
    return operation();
  } catch (const error& e) {
    is_sound_.store(false, std::memory_order_release);
    lacks_pages_.store(true, std::memory_order_release);
    throw kv_damaged("the directory of device " + core_.device.name() + " is damaged: " + e.what(),
                     "open the device again: the directory is written again, if the medium has room for it");
  }
  // Where a page lists the key.
  [[nodiscard]] static std::optional<std::size_t> place_in(std::string_view page, std::string_view key) {
    std::optional<std::size_t> found;
    for_each_key(page, [&](std::string_view k) {
      if (k == key) found = static_cast<std::size_t>(k.data() - page.data()) - 1;
    });
    return found;
  }

  [[nodiscard]] std::string read_page(std::uint64_t bucket, std::uint32_t page, port<Device>& through) {
    const std::array<char, name_bytes> name = name_of_page(bucket, page);
    const std::string_view key(name.data(), name.size());
    const std::uint64_t base = parts::base_of(bucket_space, key);
    const std::shared_lock lock(core_.lock_of(bucket_space, base));
    const auto there = pairs_.find(bucket_space, key, base, through, true);
    return {reinterpret_cast<const char*>(there.value.data()), there.value.size()};
  }
  // std::nullopt: it is damaged.
  [[nodiscard]] std::optional<std::string> readable_page(std::uint64_t bucket, std::uint32_t page,
                                                         port<Device>& through) try {
    return read_page(bucket, page, through);
  } catch (const kv_damaged&) {
    return std::nullopt;
  }
  // It is there, whole or damaged.
  [[nodiscard]] bool has_page(std::uint64_t bucket, std::uint32_t page, port<Device>& through) {
    const std::optional<std::string> content = readable_page(bucket, page, through);
    return !content || !content->empty();
  }
  // Unless the page is written, nothing has changed; no_slot: `room` was not used, either.
  [[nodiscard]] written write_page(std::uint64_t bucket, std::uint32_t page, const std::string& content,
                                   promised_lines& room, port<Device>& through) {
    const std::array<char, name_bytes> name = name_of_page(bucket, page);
    const std::string_view key(name.data(), name.size());
    const std::uint64_t base = parts::base_of(bucket_space, key);
    const std::uint32_t units = core_.sizes.units_for(page_bytes(content.size()));
    const std::scoped_lock lock(core_.lock_of(bucket_space, base));
    auto before = pairs_.find(bucket_space, key, base, through, false);
    if (const auto charged = pairs_.charge(before, units); charged != all_pairs::charged::yes)
      return charged == all_pairs::charged::no_slot ? written::no_slot : written::no_room;
    const std::span<const std::byte> value = std::as_bytes(std::span(content));
    bool is_done = false;
    try {
      is_done = pairs_.put(before, {.space = bucket_space, .key = key, .value = value}, room);
    } catch (...) {
      pairs_.refund(before, units);
      throw;
    }
    if (is_done) return written::yes;
    pairs_.refund(before, units);
    return written::no_room;
  }
  void erase_page(std::uint64_t bucket, std::uint32_t page, port<Device>& through) {
    const std::array<char, name_bytes> name = name_of_page(bucket, page);
    const std::string_view key(name.data(), name.size());
    const std::uint64_t base = parts::base_of(bucket_space, key);
    const std::scoped_lock lock(core_.lock_of(bucket_space, base));
    const auto before = pairs_.find(bucket_space, key, base, through, false);
    if (before.is_there()) pairs_.erase(before);
  }

  // The page `gone` does not exist any more: the directory's range begins with one that does, as far as it is the
  // oldest.
  void shorten(std::uint64_t bucket, std::uint32_t gone, port<Device>& through) {
    const std::optional<range> there = find(bucket);
    if (!there || gone != there->oldest) return;
    range pages = *there;
    while (pages.oldest < pages.newest && !has_page(bucket, pages.oldest, through)) ++pages.oldest;
    if (pages.oldest == pages.newest && !has_page(bucket, pages.newest, through))
      erase(bucket);  // (B6)
    else
      static_cast<void>(set(bucket, pages));
  }

  parts& core_;
  all_pairs pairs_;
  std::string name_;
  std::unique_ptr<tree> directory_;
  std::atomic<bool> is_sound_{true};      // as the opening, or an operation since, has found it
  std::atomic<bool> lacks_pages_{false};  // since the device was opened
  std::array<std::mutex, locks> mutexes_;
};

}  // namespace pmlab::stores::detail::kv_ssd
