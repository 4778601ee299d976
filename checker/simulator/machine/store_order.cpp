// x86-TSO on the simulated machine: when stores leave the store buffer of their thread, and the effects.
//
// A store that leaves is seen by all threads from then on, and is logged in persistent memory: what is still in a
// buffer when the power fails is lost, whatever the platform saves.
#include "checker/simulator/machine/code_address.hpp"
#include "checker/simulator/machine/machine.hpp"

#include <algorithm>
#include <utility>

namespace pmlab::simulator {

void machine::begin_store_order(std::uint64_t seed) noexcept {
  buffers_ = seed != 0;
  buffering_ = buffers_;
  drainage_ = store_drainage(seed);
}

// The store is about to be done. Wide ones do not wait: they would fill the buffer.
void machine::buffer_store(store_buffer::kind what, std::uintptr_t address, std::size_t bytes, const void* caller) {
  if (bytes <= store_buffer::widest) {
    add_to_buffer(what, address, bytes, caller);
    last_was_write_ = what == store_buffer::kind::store;
    return;
  }
  drain_current();
  if (address - memory_start_ < memory_bytes_)
    pending_[pending_count_++] = {address, bytes, caller, what == store_buffer::kind::around};
}

void machine::add_to_buffer(store_buffer::kind what, std::uintptr_t address, std::size_t bytes, const void* caller) {
  if (current_->stores.size() >= drainage_.room()) drain_current(current_->stores.size() - drainage_.room() + 1);
  current_->stores.add(what, address, bytes, caller, accesses_);
}

// The shared content is in memory.
void machine::leave_buffer(fiber& f) {
  const store_buffer::entry e = f.stores.take_oldest(true);
  const bool persistent = memory_ != nullptr && e.address - memory_start_ < memory_bytes_;
  switch (e.what) {
    case store_buffer::kind::store:
    case store_buffer::kind::around:
      if (options_.watch_freed && !persistent && dram_->contains(e.address) && dram_->is_freed(e.address))
        violated("a store that was waiting in its thread's store buffer reached freed memory: it is of " +
                 code_address(e.caller));
      if (!persistent) return;
      if (e.what == store_buffer::kind::around) return put_store_around(f, e.address, e.bytes, e.caller);
      put_store(e.address, e.bytes, e.caller);
      save_visible(e.address, e.bytes, true);
      return;
    case store_buffer::kind::unseen:
      if (!persistent) return;
      put_store(e.address, media::cache_line_bytes, e.caller);
      save_visible(e.address, media::cache_line_bytes, true);
      return;
    case store_buffer::kind::write_back:
      if (persistent) put_flush(f, e.address);
      return;
    case store_buffer::kind::fence:
      if (memory_ != nullptr) put_fence(f, false);
      return;
  }
}

void machine::drain_current(std::size_t count) {
  fiber& self = *current_;
  count = std::min(count, self.stores.size());
  if (count == 0) return;
  const bool watched = std::exchange(watching_, false);
  buffering_ = false;
  self.stores.take_out();
  for (; count > 0; --count) leave_buffer(self);
  self.stores.put_in();
  buffering_ = true;
  watching_ = watched;
}

// At a turn, of every thread. A thread that waits, or ends, has executed a locked instruction.
void machine::let_stores_leave(turn why) {
  current_->stores.take_out();
  for (const auto& f : fibers_) {
    std::size_t count = f->stores.size();
    // Memory holds what the current host sees: stores of another one leave when it runs.
    if (count == 0 || f->host != current_->host) continue;
    const bool waits = f.get() == current_ && why == turn::blocked;
    if (!waits) count = drainage_.leaving(count, accesses_ - f->stores.oldest().since);
    for (; count > 0; --count) leave_buffer(*f);
  }
}

// The caller's own stores to it are not to reach memory of another block.
void machine::about_to_free(const void* block) {
  if (!buffering_ || current_->stores.empty()) return;
  drain_current(current_->stores.up_to(reinterpret_cast<std::uintptr_t>(block), dram_->size_of(block)));
}

void machine::announced_store(const void* address, std::size_t bytes, const void* caller) {
  const bool locked = buffering_ && last_fence_ != nullptr &&
                      (caller == last_fence_ || caller == static_cast<const char*>(last_fence_) + bytes_of_call);
  access(address, bytes, locked ? access_kind::read_modify_write : access_kind::write, caller);
  if (!locked || !watching_) return;
  drain_current();
  const auto a = reinterpret_cast<std::uintptr_t>(address);
  if (a - memory_start_ < memory_bytes_) pending_[pending_count_++] = {a, bytes, caller, false};
}

void machine::stored_unseen(const void* line, const void* caller) {
  if (buffering_ && watching_ && !current_->stores.empty() && memory_ != nullptr) {
    const auto a = reinterpret_cast<std::uintptr_t>(line);
    if (a - memory_start_ < memory_bytes_) add_to_buffer(store_buffer::kind::unseen, a, 0, caller);
    return;
  }
  settle();
  // Known content is no store: the flush of it has no effect.
  if (durability_ != nullptr && memory_ != nullptr && memory_->contains(reinterpret_cast<std::uintptr_t>(line)) &&
      memory_->is_known(reinterpret_cast<std::uintptr_t>(line), media::cache_line_bytes))
    return;
  stored_atomically(line, media::cache_line_bytes, caller);
}

}  // namespace pmlab::simulator
