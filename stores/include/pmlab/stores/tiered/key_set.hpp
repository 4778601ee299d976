// A key/value set: sorted pages of keys, written once. Values of a set of the root stay in the log segments that they
// are in; values of a leaf's set are in segments of values.
//
// In DRAM: the first version of each page (fences), and a Bloom filter of 10 bits a key. Both are rebuilt when the set
// is opened, by reading its pages.
#pragma once

#include <pmlab/base/hash.hpp>
#include <pmlab/stores/tiered/findings.hpp>
#include <pmlab/stores/tiered/manifest.hpp>
#include <pmlab/stores/tiered/pages.hpp>
#include <pmlab/stores/tiered/segment_io.hpp>
#include <pmlab/stores/tiered/value_reader.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::tiered {

[[nodiscard]] inline std::uint64_t hash_of(std::uint16_t table, std::string_view key) noexcept {
  return hash_of_bytes(key.data(), key.size(), 16 + table);
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

// How well the values of a set in one segment would fill other segments. Volatile.
struct value_shape {
  std::uint32_t count = 0;
  std::uint32_t largest = 0;
  void add(const value_shape& more) noexcept {
    count += more.count;
    largest = std::max(largest, more.largest);
  }
};

template <blocks::device Device>
class key_set {
 public:
  // Has a reference to each of its segments.
  key_set(const set_context<Device>& context, set_description described)
      : context_(context), described_(std::move(described)) {
    described_.for_each_segment([&](std::uint32_t s) { context_.segments.refer(s); });
    for (const segment_share& v : described_.value_segments) value_bytes_ += v.bytes;
  }
  key_set(const key_set&) = delete;
  key_set& operator=(const key_set&) = delete;
  ~key_set() {
    described_.for_each_segment([&](std::uint32_t s) { context_.segments.drop(s); });
  }

  [[nodiscard]] const set_description& described() const noexcept { return described_; }
  // The bytes of DRAM.
  [[nodiscard]] std::size_t memory() const noexcept { return memory_; }
  [[nodiscard]] bool may_have(std::uint64_t hash) const { return !unreadable_.empty() || filter_.may_have(hash); }
  // The bytes of values that its versions refer to.
  [[nodiscard]] std::uint64_t value_bytes() const noexcept { return value_bytes_; }
  // The bytes of keys and values.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return value_bytes_ + described_.pages * context_.page_bytes; }
  // The values of each segment.
  [[nodiscard]] const std::map<std::uint32_t, value_shape>& shapes() const noexcept { return shapes_; }

  // Reads all pages: fences and filter. A damaged page is noted, and never read again: its fence is the last version
  // before it, so that searches that may end in it fail, and others do not need it. Throws pmlab::error: the drive
  // fails, unless `found` tolerates it.
  void load(findings& found) {
    std::vector<std::uint64_t> hashes;
    fence last{0, {}, newest};
    std::uint32_t one_by_one = 0;
    for (std::uint32_t p = 0; p < described_.pages;) {
      for (const std::shared_ptr<const page>& one : read_if_whole(p, one_by_one, found)) {
        if (one == nullptr) {
          fences_.push_back(last);
          unreadable_.push_back(p++);
          continue;
        }
        add_fence(one->name(0));
        for (std::size_t i = 0; i < one->count(); ++i) {
          const found_version v = one->at(i);
          hashes.push_back(hash_of(v.table, v.key));
          if (v.has_value()) shapes_[v.place.segment].add({1, v.value_bytes});
        }
        const version_name end = one->name(one->count() - 1);
        last = {end.table, std::string(end.key), end.sequence};
        ++p;
      }
    }
    // The values that a damaged page names are unknown.
    for (const segment_share& v : described_.value_segments) shapes_.try_emplace(v.segment, value_shape{1, v.bytes});
    finish(hashes);
    for (const std::uint32_t p : unreadable_) found.note(described_as_lost(p));
  }

  // Pages that are read at once where all of them are needed.
  static constexpr std::size_t pages_ahead = 32;

  // Up to `most` pages from `first` on: those that lie in one segment.
  [[nodiscard]] std::vector<std::shared_ptr<const page>> read(std::uint32_t first, std::size_t most = 1) const {
    const std::size_t count = count_from(first, most);
    if (const std::optional<std::uint32_t> lost = lost_among(first, count))
      throw error(described_as_lost(*lost), "check the drive; the store answers nothing from this page");
    blocks::buffer bytes(count * context_.page_bytes);
    const block_read from = place_of(first, bytes.bytes());
    context_.readers.with(
        [&](auto& drives) { drives.read(from.segment, from.offset, from.data, blocks::stream::keys); });
    return pages_in(std::move(bytes), first);
  }
  // Whether up to `most` pages from `first` on, those that lie in one segment, may be read. Returns how many; 0: one of
  // them is damaged.
  [[nodiscard]] std::size_t readable_from(std::uint32_t first, std::size_t most) const {
    const std::size_t count = count_from(first, most);
    return lost_among(first, count) ? 0 : count;
  }
  // The place of the pages from `first` on that fill `data`. REQUIRES: readable_from counts them.
  [[nodiscard]] block_read place_of(std::uint32_t first, std::span<std::byte> data) const noexcept {
    const std::size_t per_segment = context_.pages_per_segment();
    const std::uint64_t at = described_.start_page + first;
    return {described_.key_segments[at / per_segment],
            static_cast<std::uint32_t>(at % per_segment * context_.page_bytes), data};
  }
  // The pages from `first` on that were read. Throws damaged_page.
  [[nodiscard]] std::vector<std::shared_ptr<const page>> pages_in(blocks::buffer bytes, std::uint32_t first) const {
    const std::size_t count = bytes.size() / context_.page_bytes;
    std::vector<std::shared_ptr<const page>> pages;
    if (count == 1) {
      pages.push_back(std::make_shared<const page>(std::move(bytes), described_.id, first));
      return pages;
    }
    for (std::size_t i = 0; i < count; ++i) {
      blocks::buffer one(context_.page_bytes);
      std::memcpy(one.data(), bytes.data() + i * context_.page_bytes, context_.page_bytes);
      pages.push_back(
          std::make_shared<const page>(std::move(one), described_.id, first + static_cast<std::uint32_t>(i)));
    }
    return pages;
  }

  // The page `number`, if the cache has it.
  [[nodiscard]] std::shared_ptr<const page> find(std::uint32_t number) const {
    return context_.cache.template find<page>({described_.id, number});
  }
  // Puts the page `number` into the cache.
  void keep(std::uint32_t number, const std::shared_ptr<const page>& one) const {
    context_.cache.add({described_.id, number}, one, context_.page_bytes + one->count() * sizeof(std::uint32_t));
  }
  // Up to `most` pages from `first` on, for a reader: from the cache, or into it. Where they cannot be read together,
  // the first one.
  [[nodiscard]] std::vector<std::shared_ptr<const page>> cached(std::uint32_t first, std::size_t most) const {
    std::vector<std::shared_ptr<const page>> found{find(first)};
    if (found.front() != nullptr) return found;
    if (most > 1) try {
        found = read(first, most);
      } catch (const error&) {  // another one may be the reason
        found.assign(1, nullptr);
      }
    if (found.front() == nullptr) found = read(first);
    for (std::size_t i = 0; i < found.size(); ++i) keep(first + static_cast<std::uint32_t>(i), found[i]);
    return found;
  }
  [[nodiscard]] const set_context<Device>& context() const noexcept { return context_; }

  // The page that holds the last version before `name`, if there is one; else 0.
  [[nodiscard]] std::uint32_t page_before(const version_name& name) const {
    const auto behind =
        std::partition_point(fences_.begin(), fences_.end(), [&](const fence& f) { return f.name() < name; });
    return static_cast<std::uint32_t>(behind == fences_.begin() ? 0 : behind - fences_.begin() - 1);
  }

 private:
  template <blocks::device>
  friend class set_writer;

  static constexpr std::size_t bytes_of_a_shape = 48;  // with its links

  struct fence {
    std::uint16_t table;
    std::string key;
    std::uint64_t sequence;
    [[nodiscard]] version_name name() const noexcept { return {table, key, sequence}; }
  };
  // Up to pages_ahead pages, or the one page, which is null if it is damaged. `one_by_one`: pages before this one are
  // read alone, since one of them is.
  [[nodiscard]] std::vector<std::shared_ptr<const page>> read_if_whole(std::uint32_t p, std::uint32_t& one_by_one,
                                                                       const findings& found) const {
    if (p >= one_by_one) try {
        return read(p, pages_ahead);
      } catch (const error&) {
        one_by_one = p + static_cast<std::uint32_t>(pages_ahead);
      }
    try {
      return read(p);
    } catch (const damaged_page&) {
    } catch (const error&) {
      if (!found.tolerates()) throw;
    }
    return {nullptr};
  }
  // The pages from `first` on, at most `most`, that lie in one segment.
  [[nodiscard]] std::size_t count_from(std::uint32_t first, std::size_t most) const noexcept {
    const std::size_t per_segment = context_.pages_per_segment();
    const std::uint64_t at = described_.start_page + first;
    return std::min<std::size_t>(
        {most, per_segment - at % per_segment, static_cast<std::size_t>(described_.pages - first)});
  }
  // The first damaged one of these.
  [[nodiscard]] std::optional<std::uint32_t> lost_among(std::uint32_t first, std::size_t count) const noexcept {
    const auto lost = std::lower_bound(unreadable_.begin(), unreadable_.end(), first);
    if (lost == unreadable_.end() || *lost >= first + count) return std::nullopt;
    return *lost;
  }
  // Keys of a page that cannot be read lie between the keys of its neighbours.
  [[nodiscard]] std::string described_as_lost(std::uint32_t p) const {
    const std::uint64_t at = described_.start_page + p;
    const auto text = [](const fence& f) {
      std::string shown = "'";
      for (const char c : f.key.substr(0, 40)) shown.push_back(c >= ' ' && c <= '~' ? c : '?');
      return shown + "' of table " + std::to_string(f.table);
    };
    std::string range = fences_.size() > p ? " (keys from " + text(fences_[p]) : std::string(" (keys");
    std::size_t next = p + 1;
    while (std::binary_search(unreadable_.begin(), unreadable_.end(), next)) ++next;
    range += next < fences_.size() ? " to " + text(fences_[next]) + ")" : " up to the last one of the set)";
    return "page " + std::to_string(p) + " of the keys of set " + std::to_string(described_.id) + " in " +
           in_words(described_.key_segments[at / context_.pages_per_segment()]) + " is damaged" + range;
  }
  void add_fence(const version_name& name) { fences_.push_back({name.table, std::string(name.key), name.sequence}); }
  void finish(const std::vector<std::uint64_t>& hashes) {
    filter_.build(hashes);
    memory_ = filter_.bytes() + shapes_.size() * bytes_of_a_shape;
    for (const fence& f : fences_) memory_ += sizeof f + f.key.capacity();
  }

  set_context<Device> context_;
  set_description described_;
  std::vector<fence> fences_;
  std::vector<std::uint32_t> unreadable_;  // pages that were damaged when it was opened
  bloom_filter filter_;
  std::map<std::uint32_t, value_shape> shapes_;
  std::size_t memory_ = 0;
  std::uint64_t value_bytes_ = 0;
};

template <blocks::device Device>
class page_wishes;

// The versions of a set, with the pages that were read last: a source (versions.hpp). Thread safety: none.
template <blocks::device Device>
class set_source {
 public:
  // `ahead`: pages that are read at once. 1: for a reader, through the cache; a walk reads more and more of them.
  explicit set_source(std::shared_ptr<const key_set<Device>> of, std::size_t ahead = 1)
      : of_(std::move(of)), ahead_(ahead) {}

  [[nodiscard]] bool seek(const version_name& name) {
    walked_ = 1;
    number_ = of_->page_before(name);
    index_ = load().before(name);
    return settle();
  }
  [[nodiscard]] bool step() {
    ++index_;
    return settle();
  }
  [[nodiscard]] version_name here() const noexcept { return pages_[number_ - first_]->name(index_); }
  void take(found_version& into) const { pages_[number_ - first_]->take(index_, into); }
  [[nodiscard]] std::optional<found_version> less(const version_name& name) {
    walked_ = 1;
    number_ = of_->page_before(name);
    const std::size_t i = load().before(name);
    if (i == 0) return std::nullopt;
    return load().at(i - 1);
  }
  // Adds the page that seek(name) needs, unless it is here or in the cache, and up to `count` - 1 behind it.
  void want(const version_name& name, std::size_t count, page_wishes<Device>& wishes) {
    const std::uint32_t number = of_->page_before(name);
    if (is_here(number)) return;
    if (auto found = of_->find(number); found != nullptr) {
      give(number, {std::move(found)});
    } else {
      wishes.add(*this, number, count);
    }
  }
  [[nodiscard]] const key_set<Device>& of() const noexcept { return *of_; }
  // These were read: from the page `first` on.
  void give(std::uint32_t first, std::vector<std::shared_ptr<const page>> pages) noexcept {
    pages_ = std::move(pages);
    first_ = first;
  }

 private:
  static constexpr std::size_t most_walked = 8;

  // Stands at `index_`, or at the first version of the next page. False: there is none.
  [[nodiscard]] bool settle() {
    if (index_ < load().count()) return true;
    if (number_ + 1 >= of_->described().pages) return false;
    ++number_;
    index_ = 0;
    load();
    return true;
  }
  [[nodiscard]] bool is_here(std::uint32_t number) const noexcept {
    return number >= first_ && number < first_ + pages_.size();
  }
  const page& load() {
    if (!is_here(number_)) {
      if (ahead_ > 1) {
        give(number_, of_->read(number_, ahead_));
      } else {
        give(number_, of_->cached(number_, walked_));
        if (pages_.size() == walked_) walked_ = std::min(2 * walked_, most_walked);
      }
    }
    return *pages_[number_ - first_];
  }
  std::shared_ptr<const key_set<Device>> of_;
  std::size_t ahead_;
  std::size_t walked_ = 1;                          // pages of the next read of a reader
  std::vector<std::shared_ptr<const page>> pages_;  // from first_ on
  std::uint32_t first_ = 0;
  std::uint32_t number_ = 0;  // number of the last page
  std::size_t index_ = 0;     // in it
};

// One of several sets whose versions are merged.
template <blocks::device Device>
struct set_part {
  set_source<Device> source;
  std::optional<version_name> head{};  // where the source stands

  void stand(bool any) {
    head.reset();
    if (any) head = source.here();
  }
};
// The one that stands at the least version; null: none stands at one.
template <blocks::device Device>
[[nodiscard]] set_part<Device>* part_of_least(std::vector<set_part<Device>>& parts) noexcept {
  set_part<Device>* least = nullptr;
  for (set_part<Device>& p : parts)
    if (p.head && (least == nullptr || *p.head < *least->head)) least = &p;
  return least;
}

// Pages that several sources need next: they are read together.
template <blocks::device Device>
class page_wishes {
 public:
  void add(set_source<Device>& by, std::uint32_t first, std::size_t count) {
    if (const std::size_t n = by.of().readable_from(first, count);
        n > 0 && wishes_.size() < value_reader<Device>::depth)
      wishes_.push_back({&by, first, blocks::buffer(n * by.of().context().page_bytes)});
  }
  // Reads them, and gives them to their sources. One that cannot be read is left to its source, which tries it alone.
  void read() {
    if (wishes_.size() > 1) try {
        std::array<block_read, value_reader<Device>::depth> reads;
        for (std::size_t i = 0; i < wishes_.size(); ++i)
          reads[i] = wishes_[i].by->of().place_of(wishes_[i].first, wishes_[i].bytes.bytes());
        wishes_.front().by->of().context().value_readers.with([&](auto& drives) {
          drives.read(std::span<const block_read>(reads).first(wishes_.size()), blocks::stream::keys);
        });
        for (wish& w : wishes_) take(w);
      } catch (const error&) {
      }
    wishes_.clear();
  }

 private:
  struct wish {
    set_source<Device>* by;
    std::uint32_t first;
    blocks::buffer bytes;
  };
  static void take(wish& w) {
    std::vector<std::shared_ptr<const page>> pages;
    try {
      pages = w.by->of().pages_in(std::move(w.bytes), w.first);
    } catch (const damaged_page&) {
      return;
    }
    for (std::size_t i = 0; i < pages.size(); ++i) w.by->of().keep(w.first + static_cast<std::uint32_t>(i), pages[i]);
    w.by->give(w.first, std::move(pages));
  }

  std::vector<wish> wishes_;
};

// Writes a set; versions are added in their order. Its pages follow one another in the segments of `keys`.
template <blocks::device Device>
class set_writer {
 public:
  // `first`, `last`: sequences of its versions.
  set_writer(const set_context<Device>& context, segment_writer<Device>& keys, std::uint64_t id, std::uint64_t first,
             std::uint64_t last)
      : context_(context), keys_(keys), builder_(context.page_bytes, id) {
    described_.id = id;
    described_.first = first;
    described_.last = last;
  }
  set_writer(const set_writer&) = delete;
  set_writer& operator=(const set_writer&) = delete;

  // `covers`: about the bytes of values of older sets that it replaces. False: there is no free segment for its keys.
  [[nodiscard]] bool add(const found_version& v, std::uint64_t covers = 0) {
    if (!builder_.add(v)) {
      if (!write_page()) return false;
      static_cast<void>(builder_.add(v));
    }
    const bool is_old_version = any_ && v.table == table_ && v.key == key_;
    if (v.kind == change_kind::erase || is_old_version) ++described_.loose;
    any_ = true;
    table_ = v.table;
    key_ = v.key;
    if (first_of_page_.empty()) first_of_page_.push_back({v.table, v.key, v.sequence});
    hashes_.push_back(hash_of(v.table, v.key));
    ++described_.entries;
    described_.covers += covers;
    if (v.has_value()) values_[v.place.segment] += v.value_bytes;
    if (v.has_value()) shapes_[v.place.segment].add({1, v.value_bytes});
    value_bytes_ += v.value_bytes;
    return true;
  }
  // The bytes of keys and values so far, about.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return value_bytes_ + described_.pages * context_.page_bytes; }
  // The last version is one of this key.
  [[nodiscard]] bool ends_with(const found_version& v) const noexcept {
    return any_ && v.table == table_ && v.key == key_;
  }
  // The set; its pages are durable after the next flush behind `keys.finish()`. Null: there is no free segment. An
  // empty set is described by no pages.
  [[nodiscard]] std::shared_ptr<key_set<Device>> finish() {
    if (!builder_.empty() && !write_page()) return nullptr;
    for (const auto& [segment, bytes] : values_) described_.value_segments.push_back({segment, bytes});
    auto made = std::make_shared<key_set<Device>>(context_, described_);
    made->fences_ = std::move(fences_);
    made->shapes_ = std::move(shapes_);
    made->finish(hashes_);
    return made;
  }

 private:
  [[nodiscard]] bool write_page() {
    const std::optional<value_place> at = keys_.append(builder_.seal(static_cast<std::uint32_t>(described_.pages)));
    if (!at) return false;
    if (described_.pages == 0) described_.start_page = at->offset / context_.page_bytes;
    if (described_.key_segments.empty() || described_.key_segments.back() != at->segment)
      described_.key_segments.push_back(at->segment);
    ++described_.pages;
    fences_.push_back(std::move(first_of_page_.front()));
    first_of_page_.clear();
    return true;
  }

  set_context<Device> context_;
  segment_writer<Device>& keys_;
  set_description described_{};
  page_builder builder_;
  std::vector<typename key_set<Device>::fence> fences_;
  std::vector<typename key_set<Device>::fence> first_of_page_;
  std::vector<std::uint64_t> hashes_;
  std::map<std::uint32_t, std::uint32_t> values_;
  std::map<std::uint32_t, value_shape> shapes_;
  std::uint64_t value_bytes_ = 0;
  bool any_ = false;
  std::uint16_t table_ = 0;
  std::string key_;
};

}  // namespace pmlab::stores::detail::tiered
