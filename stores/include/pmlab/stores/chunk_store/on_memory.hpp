// The container of a chunk store on persistent memory: superblock, slabs of records, and an index from chunks to
// records.
//
// A change of a record is durable when the words that name it are persisted: before its operation ends. So a record's
// words are always the newest ones and durable, and the operations of a container that tell these apart do nothing.
#pragma once

#include <pmlab/base/checksum.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/base/name.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/stores/chunk_store/chunk.hpp>
#include <pmlab/stores/chunk_store/drive_header.hpp>
#include <pmlab/stores/chunk_store/index_region.hpp>
#include <pmlab/stores/chunk_store/layout.hpp>
#include <pmlab/stores/chunk_store/records.hpp>
#include <pmlab/stores/chunk_store/session.hpp>
#include <pmlab/stores/moment.hpp>
#include <pmlab/sync/run_in_parallel.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::stores::detail::chunk_store {

// Thread safety: as `records`; volumes: the caller has the lock of volumes.
template <media::medium Medium, blocks::device Device, indexes::point_index Index>
class records_in_memory {
  using publication = typename Medium::publication;

 public:
  using medium_type = Medium;
  static constexpr bool settles_at_once = true;
  static constexpr bool may_be_unsure = false;
  static constexpr bool changes_as_a_whole = false;
  static constexpr bool has_maps = true;
  // Records are read where they lie: the first operations need no walk over them.
  static constexpr bool answers_at_once = true;
  static constexpr bool recovers_in_parallel = media::sizes_on<Medium>.recovers_in_parallel;
  static constexpr std::string_view layout_name = "chunk_store";
  static constexpr std::uint64_t layout_version = 1;

  // Opens the records `name` in `medium`, or makes empty ones. `shape` is what a new store is to have, and then what it
  // has.
  records_in_memory(Medium& medium, Device& device, chunk_shape& shape, const store_identity& identity, bool format,
                    std::string_view name)
      : medium_(medium),
        device_(device),
        geometry_(device.shape()),
        super_(open_superblock(shape, identity, format, name)),
        records_(medium, super_->slabs, shape),
        shape_(shape),
        index_(Index::open(medium, std::string(name) + ":i")),
        session_(device) {
    if (!records_.are_possible()) damaged();
    session_.begin(*this, medium_.name());
  }
  records_in_memory(const records_in_memory&) = delete;
  records_in_memory& operator=(const records_in_memory&) = delete;
  ~records_in_memory() { session_.end(*this); }

  [[nodiscard]] Medium& medium() noexcept { return medium_; }
  [[nodiscard]] std::string name() const { return medium_.name(); }
  [[nodiscard]] static std::uint64_t first_data_block() noexcept { return 1; }
  // The bytes of the medium in use.
  [[nodiscard]] std::uint64_t bytes() {
    std::uint64_t sum = sizeof(superblock) + records_.bytes() + index_.stats().medium_bytes;
    records_.for_each([&](record& r) {
      if (r.map.load(std::memory_order_acquire) != 0) sum += map_bytes(shape_.blocks);
    });
    return sum;
  }

  // ---- the session

  // Throws pmlab::error: it is damaged.
  [[nodiscard]] kept_moments known() const {
    const auto known = kept_moments::of(durable_moment().load(std::memory_order_acquire),
                                        begun_moment().load(std::memory_order_acquire));
    if (!known)
      throw error("the session of the chunk store in " + medium_.name() + " is damaged",
                  "restore the pool from a copy");
    return *known;
  }
  [[nodiscard]] bool keep(const kept_moments& k) {
    change(durable_moment(), k.durable.word());  // (S1), (S4)
    change(begun_moment(), k.begun.word());      // (S2)
    return true;
  }

  // ---- level 1

  // The record that has this chunk, or is to have it: the index is a hint, so the caller looks at the record's key.
  [[nodiscard]] record* find(std::uint64_t key) {
    const std::optional<std::uint64_t> at = index_.find(key);
    return at && can_be_record(*at) ? record_at(*at) : nullptr;
  }
  // False: no space.
  [[nodiscard]] bool enter(std::uint64_t key, const record& r) {
    return index_.upsert(key, medium_.locate(&r).word()) != indexes::outcome::full;
  }
  void leave(std::uint64_t key, const record& /*r*/) { static_cast<void>(index_.erase(key)); }
  template <class Visit>
  void for_each_entry(Visit&& visit) {
    index_.for_each([&](std::uint64_t key, std::uint64_t at) {
      if (can_be_record(at)) visit(key, *record_at(at));
    });
  }

  // ---- records

  [[nodiscard]] record* take() { return records_.take(); }
  void give(record& r) noexcept { records_.give(r); }
  void erase(record& r) { records_.erase(r); }
  void clear(record& r) { records_.clear(r); }
  void give_all(std::span<record* const> all, std::size_t known) { records_.give_all(all, known); }
  void forget_all() noexcept { records_.forget_all(); }
  template <class Visit>
  void for_each(Visit&& visit) {
    records_.for_each(visit);
  }
  // Calls visit(walk) for each part of the records, on so many threads; walk(f) calls f(record&) for each of the part.
  // `visit` does not throw. No thread takes or erases records meanwhile.
  template <class Visit>
  void for_each_part(unsigned threads, Visit&& visit) {
    const std::vector<slab*> slabs = records_.slabs();
    constexpr std::size_t grain = 8;
    sync::run_in_parallel(threads, slabs.size(), grain,
                          [&](std::size_t i) { visit([&](auto&& each) { records_.for_each_in(*slabs[i], each); }); });
  }

  // Guards nothing: the lock of the chunk does.
  struct no_guard {
    no_guard() noexcept {}
    ~no_guard() {}
  };
  [[nodiscard]] static no_guard guard(const record& /*r*/) noexcept { return {}; }
  [[nodiscard]] static record& newest(record& r) noexcept { return r; }
  [[nodiscard]] static record& edit(record& r, std::size_t /*most_held*/) noexcept { return r; }
  static void add(const record& /*r*/, const index_change& /*change*/, std::size_t /*most_held*/) noexcept {}
  static void drive_all() noexcept {}
  static void wait_for(const index_change& /*change*/) noexcept {}

  // ---- volumes

  [[nodiscard]] static std::uint32_t volumes() noexcept { return most_volumes; }
  [[nodiscard]] const volume_slot& volume(std::uint32_t i) const noexcept { return super_->volumes[i]; }
  [[nodiscard]] volume_state state_of_volume(std::uint32_t i) const noexcept {
    return checked_state(volume(i).state.load(std::memory_order_acquire)).state();
  }
  // change(volume_slot&), durable on return.
  template <class Change>
  void change_volume(std::uint32_t i, Change&& change) {
    volume_slot& to = super_->volumes[i];
    volume_slot next;
    copy_words(to, next);
    next.state.store(static_cast<std::uint64_t>(state_of_volume(i)), std::memory_order_relaxed);
    change(next);
    const auto state = static_cast<volume_state>(next.state.load(std::memory_order_relaxed));
    copy_words(next, to);
    // (V1) < (V2) in volumes.hpp
    to.state.store(state == volume_state::free ? 0 : checked_state::of(state, to).word(), std::memory_order_release);
    media::persist(medium_, to);
  }
  // A change of a volume in memory does not fail.
  [[nodiscard]] static bool make_volume_sure(std::uint32_t /*i*/) noexcept { return true; }

 private:
  // The size and the name.
  static void copy_words(const volume_slot& from, volume_slot& to) noexcept {
    to.bytes.store(from.bytes.load(std::memory_order_acquire), std::memory_order_relaxed);
    for (std::size_t i = 0; i < from.name.size(); ++i)
      to.name[i].store(from.name[i].load(std::memory_order_acquire), std::memory_order_relaxed);
  }
  [[nodiscard]] word& durable_moment() const noexcept { return super_->volumes[0].session; }
  [[nodiscard]] word& begun_moment() const noexcept { return super_->volumes[1].session; }
  // Durable on return.
  void change(word& w, std::uint64_t to) {
    if (w.load(std::memory_order_acquire) == to) return;
    w.store(to, std::memory_order_release);
    media::persist(medium_, w);
  }

  [[nodiscard]] bool can_be_record(std::uint64_t place) const noexcept {
    return media::can_name(medium_, media::pointer<record>(place), record_bytes(shape_.ring));
  }
  [[nodiscard]] record* record_at(std::uint64_t place) const noexcept {
    return medium_.resolve(media::pointer<record>(place));
  }

  [[nodiscard]] superblock* open_superblock(chunk_shape& shape, const store_identity& given, bool format,
                                            std::string_view name) {
    constexpr std::size_t longest_name = media::root_name_limit - 2;
    check_name(name, longest_name, "a chunk store");
    check_room(device_, shape);
    word& root = *medium_.named_root(name, layout_name, layout_version).word;
    if (root.load(std::memory_order_acquire) == 0) make_superblock(root, shape, given);
    const media::pointer<superblock> at(root.load(std::memory_order_acquire));
    if (!media::can_name(medium_, at)) damaged();
    auto* const super = medium_.resolve(at);
    check_words(*super);
    check_sizes(*super, shape);
    if (super->state.load(std::memory_order_acquire) == forming) {
      claim_drive(device_, header_for(*super), format, "pool");
      super->state.store(ready, std::memory_order_release);
      media::persist(medium_, super->state);
    }
    check_drive(device_, header_for(*super), "in " + medium_.name());
    add_checks(*super);
    return super;
  }

  // ---- the checksum of the superblock. Stores of before have none: they get it when they are opened.
  // (H0) releases of before refuse the store: they would take a volume with a check for an absent one
  // < (H1) each volume has its check < (H2) the superblock has its checksum, from when on each of them needs one.

  [[nodiscard]] static word& checksum_in(superblock& super) noexcept { return super.volumes[2].session; }
  // The parts of the ring's word, without the mark of (H0).
  [[nodiscard]] static ring_word ring_of(const superblock& super) noexcept {
    auto parts = parts_of<ring_word>(super.ring.load(std::memory_order_acquire));
    parts.merge &= ~ring_word::has_checks;
    return parts;
  }
  // The words that do not change are summed, with this word of the ring. Never 0, and no flipped bit makes it 0.
  [[nodiscard]] static std::uint64_t checksum_of_words(const superblock& super, std::uint64_t ring) noexcept {
    std::array<std::uint64_t, 6> words{};
    std::size_t n = 0;
    for (const word* w :
         {&super.identity[0], &super.identity[1], &super.block_bytes, &super.chunk_blocks, &super.ring, &super.blocks})
      words[n++] = w == &super.ring ? ring : w->load(std::memory_order_acquire);
    return pmlab::checksum(words.data(), sizeof words) | std::uint64_t{3} << 62;
  }
  void check_words(superblock& super) const {
    const std::uint64_t sum = checksum_in(super).load(std::memory_order_acquire);
    const std::uint64_t ring = super.ring.load(std::memory_order_acquire);
    const std::uint64_t without_mark = word_of(ring_of(super));
    bool is_whole = sum == 0 || sum == checksum_of_words(super, ring);
    // A crash between (H0) and (H2), of a store that had a checksum and no mark.
    is_whole = is_whole || (ring != without_mark && sum == checksum_of_words(super, without_mark));
    const std::uint64_t state = super.state.load(std::memory_order_acquire);
    is_whole = is_whole && (state == forming || state == ready);
    for (const volume_slot& v : super.volumes)
      is_whole = is_whole && checked_state(v.state.load(std::memory_order_acquire)).is_whole(v, sum != 0);
    if (!is_whole) damaged();
  }
  void add_checks(superblock& super) {
    ring_word marked = ring_of(super);
    marked.merge |= ring_word::has_checks;
    change(super.ring, word_of(marked));  // (H0)
    if (checksum_in(super).load(std::memory_order_acquire) == 0)
      for (volume_slot& v : super.volumes) {
        const volume_state s = checked_state(v.state.load(std::memory_order_acquire)).state();
        if (s != volume_state::free) change(v.state, checked_state::of(s, v).word());  // (H1)
      }
    change(checksum_in(super), checksum_of_words(super, word_of(marked)));  // (H2)
  }
  [[noreturn]] void damaged() const {
    throw error("the superblock of the chunk store in " + medium_.name() + " is damaged",
                "restore the pool from a copy");
  }

  void make_superblock(word& root, const chunk_shape& shape, const store_identity& given) {
    publication change(medium_);
    auto* const made = media::create<superblock>(change);
    if (made == nullptr) throw error("no space for a chunk store in " + medium_.name(), "make the pool larger");
    const store_identity identity = identity_or_drawn(given);
    for (std::size_t i = 0; i < identity.size(); ++i) made->identity[i].store(identity[i], std::memory_order_relaxed);
    made->block_bytes.store(geometry_.block_bytes, std::memory_order_relaxed);
    made->chunk_blocks.store(shape.blocks, std::memory_order_relaxed);
    made->ring.store(word_of(ring_word{shape.ring, static_cast<std::uint32_t>(shape.merge)}),
                     std::memory_order_relaxed);
    made->blocks.store(geometry_.blocks, std::memory_order_relaxed);
    made->state.store(forming, std::memory_order_relaxed);
    media::persist(medium_, *made);
    media::publish_store(change, root, medium_.locate(made).word());
    change.commit();
  }

  // An existing store keeps its sizes, whatever the options give.
  void check_sizes(const superblock& super, chunk_shape& shape) const {
    const std::uint64_t blocks = super.blocks.load(std::memory_order_acquire);
    const std::uint64_t bytes = super.block_bytes.load(std::memory_order_acquire);
    const std::uint64_t chunk_of = super.chunk_blocks.load(std::memory_order_acquire);
    const auto [ring, merge] = ring_of(super);
    if (chunk_of == 0 || chunk_of > most_blocks_of_chunk || ring == 0 || ring > 30 ||
        merge > static_cast<std::uint32_t>(merge_policy::copy))
      damaged();
    check_size("the chunk store in " + medium_.name(), blocks, bytes, "device " + device_.name(), geometry_);
    shape = {static_cast<std::uint32_t>(chunk_of), ring, static_cast<merge_policy>(merge)};
  }

  [[nodiscard]] drive_header header_for(const superblock& super) const {
    drive_header h;
    for (std::size_t i = 0; i < h.identity.size(); ++i)
      h.identity[i] = super.identity[i].load(std::memory_order_relaxed);
    h.block_bytes = geometry_.block_bytes;
    h.chunk_blocks = super.chunk_blocks.load(std::memory_order_relaxed);
    h.blocks = geometry_.blocks;
    return h;
  }

  Medium& medium_;
  Device& device_;
  blocks::geometry geometry_;
  superblock* super_;
  records<Medium> records_;
  chunk_shape shape_;
  Index index_;
  session<Device> session_;
};

}  // namespace pmlab::stores::detail::chunk_store
