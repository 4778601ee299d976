// What the machine does with stores, flushes and fences: with one host they go to the memory, with several to the
// caches of the host on which they run.
#include "checker/simulator/calls.hpp"
#include "checker/simulator/machine/code_address.hpp"
#include "checker/simulator/machine/machine.hpp"

#include <utility>

namespace pmlab::simulator {

void machine::put_store(std::uintptr_t address, std::size_t bytes, const void* caller) {
  if (hosts_ != nullptr)
    hosts_->stored(address, bytes, caller);
  else
    memory_->stored(address, bytes, caller);
}

// A non-temporal store needs no flush, only the fence.
void machine::put_store_around(fiber& by, std::uintptr_t address, std::size_t bytes, const void* caller) {
  if (hosts_ != nullptr) return hosts_->stored_around(address, bytes, by.flushes, caller);
  memory_->stored(address, bytes, caller);
  media::for_each_line(reinterpret_cast<const void*>(address), bytes,
                       [&](std::uintptr_t line) { memory_->flushed(line, by.flushes); });
}

void machine::put_flush(fiber& by, std::uintptr_t address) {
  if (hosts_ != nullptr)
    hosts_->flushed(address, by.flushes);
  else
    memory_->flushed(address, by.flushes);
}

void machine::put_fence(fiber& by, bool orders_loads) {
  if (hosts_ == nullptr) return memory_->fenced(by.flushes);
  hosts_->fenced(by.flushes);
  if (orders_loads) hosts_->invalidated(by.invalidations);
}

void machine::put_publication(persistent_memory& m, std::span<const pmlab_change> changes, const void* caller,
                              std::string& wrong) {
  const auto for_each_word = [&](auto&& visit) {
    if (hosts_ == nullptr || &m != memory_) return;
    for (const pmlab_change& c : changes)
      if (c.kind == 1) visit(reinterpret_cast<std::uintptr_t>(c.address));
  };
  for_each_word([&](std::uintptr_t word) { hosts_->before_publication(word); });
  wrong = m.publish(changes);
  for_each_word([&](std::uintptr_t word) { hosts_->after_publication(word, caller); });
}

// Before an access: the host may see another version of the line from now on. The thread's waiting stores stay above
// it.
void machine::meet_other_hosts(std::uintptr_t address, std::size_t bytes) {
  const bool watched = std::exchange(watching_, false);
  const bool buffered = std::exchange(buffering_, false);
  const bool waiting = buffered && !current_->stores.empty();
  if (waiting) current_->stores.take_out();
  hosts_->before_access(address, bytes, current_->last_caller, current_->invalidations);
  if (waiting) current_->stores.put_in();
  buffering_ = buffered;
  watching_ = watched;
}

void machine::does_to_hosts(shared_event what, const void* caller) {
  if (hosts_->dies_before(what)) let_host_die(caller);
}

// Its threads end here, the current one among them, and with them the stores in their buffers.
void machine::let_host_die(const void* caller) {
  watching_ = false;
  if (!current_->stores.empty()) current_->stores.take_out();
  for (const auto& f : fibers_) {
    const bool runs_here = f->number != 0 && f->host == current_->host && f->state != fiber_state::finished;
    if (!runs_here) continue;
    f->dead = true;
    f->state = fiber_state::finished;
    f->stores = {};
    f->flushes.clear();
    f->invalidations.clear();
    if (f.get() != current_) f->abandon();
    make_runnable(f.get(), true);
  }
  hosts_->die(caller);
  fiber* const next = choose(turn::blocked);
  restart_quantum();
  hosts_->show(next->host);
  next->stores.put_in();
  switch_to(next);
}

void machine::host_ends() { does_to_hosts(shared_event::end, nullptr); }

void machine::move_to_host(unsigned host) {
  quietly([&] {
    current_->host = host;
    if (hosts_ != nullptr) hosts_->show(host);
  });
}

bool machine::device_compare_exchange(std::uint64_t* word, std::uint64_t& expected, std::uint64_t desired,
                                      const void* caller) {
  const std::uint64_t wanted = expected;
  const auto a = reinterpret_cast<std::uintptr_t>(word);
  current_->around_caches = true;
  access(word, sizeof *word, access_kind::read_modify_write, caller);
  current_->around_caches = false;
  locked_instruction();
  if (hosts_ != nullptr && a - memory_start_ < memory_bytes_) {
    std::string wrong;
    quietly([&] { wrong = hosts_->device_compare_exchange(word, expected, desired, caller); });
    if (!wrong.empty()) violated(wrong + " at " + code_address(caller));
    return expected == wanted;
  }
  expected = *word;
  if (expected != wanted) return false;
  *word = desired;
  stored_atomically(word, sizeof *word, caller);
  return true;
}

}  // namespace pmlab::simulator

using pmlab::simulator::the_machine;

extern "C" {

unsigned pmlab_machine_hosts() noexcept {
  const auto* const hosts = the_machine().hosts_in_use();
  return hosts == nullptr ? 1 : hosts->count();
}
unsigned pmlab_machine_host() noexcept { return the_machine().host(); }
bool pmlab_machine_host_is_alive(unsigned host) noexcept { return the_machine().seems_alive(host); }
bool pmlab_machine_is_coherent(const void* address) noexcept {
  const auto* const hosts = the_machine().hosts_in_use();
  return hosts == nullptr || hosts->is_coherent(reinterpret_cast<std::uintptr_t>(address));
}
bool pmlab_machine_device_exchange(std::uint64_t* word, std::uint64_t* expected, std::uint64_t desired,
                                   const void* caller) noexcept {
  return the_machine().device_compare_exchange(word, *expected, desired, caller);
}
}
