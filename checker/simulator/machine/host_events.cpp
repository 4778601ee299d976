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

// ---- what is a host's own ----

void machine::check_owner(std::uintptr_t address, const void* caller) {
  if (address - memory_start_ < memory_bytes_) return;
  if (!dram_->contains(address)) return check_owner_of_page(address, caller);
  const unsigned host = dram_->host_of(address);
  if (host == 0 || host == current_->host + 1) return;
  watching_ = false;
  const block_owner by = dram_->owner_of(address);
  uses_dram_of(host - 1, "a block that it has allocated at " + code_address(by.caller), caller);
}

// Few pages are looked up again and again. No block of a stack or an object shares one with another host's.
void machine::check_owner_of_page(std::uintptr_t address, const void* caller) {
  const std::uintptr_t page = address / page_bytes;
  if (page == own_page_ && own_page_of_ == current_->host) return;
  for (const auto& f : fibers_)
    if (f->number != 0 && f->host != current_->host && address - f->stack_low < f->stack_bytes)
      uses_dram_of(f->host, "the stack of its thread " + std::to_string(f->number), caller);
  for (const host_memory& m : owned_)
    if (m.host != current_->host && m.where.contains(reinterpret_cast<const void*>(address)))
      uses_dram_of(m.host,
                   m.is_mapped ? "memory that it has mapped"
                               : "a variable or constant: " + code_address(reinterpret_cast<const void*>(address)),
                   caller);
  own_page_ = page;
  own_page_of_ = current_->host;
}

void machine::uses_dram_of(unsigned host, const std::string& what, const void* caller) {
  watching_ = false;
  violated("host " + std::to_string(current_->host) + " uses DRAM of host " + std::to_string(host) + " at " +
           code_address(caller) + ": " + what +
           ". Each host has DRAM of its own: an address of it means nothing to the others");
  std::abort();
}

void machine::has_mapped(void* address, std::size_t bytes) {
  if (hosts_ == nullptr || !watching_ || !on_a_fiber()) return;
  quietly([&] {
    owned_.push_back({{reinterpret_cast<std::uintptr_t>(address), bytes}, current_->host, true});
    own_page_ = 0;
  });
}

void machine::has_unmapped(void* address, std::size_t bytes) {
  // Quiet: the stores in this thread's buffer come before the call into the kernel, behind which their lines are gone.
  quietly([&] {
    if (hosts_ == nullptr) return;
    const auto start = reinterpret_cast<std::uintptr_t>(address), end = start + bytes;
    std::vector<host_memory> rest;
    for (const host_memory& m : owned_) {
      const std::uintptr_t first = m.where.start, last = first + m.where.bytes;
      if (!m.is_mapped || last <= start || end <= first) {
        rest.push_back(m);
        continue;
      }
      if (first < start) rest.push_back({{first, start - first}, m.host, true});
      if (end < last) rest.push_back({{end, last - end}, m.host, true});
    }
    owned_ = std::move(rest);
  });
}

void machine::refuse_in_shared_memory(const void* object, std::string_view what, const void* caller) {
  if (reinterpret_cast<std::uintptr_t>(object) - memory_start_ >= memory_bytes_) return;
  settle();
  violated(std::string(what) + " of the C library in the shared memory, at " + code_address(caller) +
           ": it works among the threads of one kernel, and is nothing between hosts");
}

bool machine::device_compare_exchange(std::uint64_t* word, std::uint64_t& expected, std::uint64_t desired,
                                      const void* caller) {
  const std::uint64_t wanted = expected;
  const auto a = reinterpret_cast<std::uintptr_t>(word);
  if (watching_ && current_->timed) ++persists_.exchanges;
  current_->around_caches = true;
  access(word, sizeof *word, access_kind::read_modify_write, caller);
  current_->around_caches = false;
  if (hosts_ == nullptr) {
    locked_instruction();
  } else if (buffering_ && watching_) {
    // Its request is a store, behind the thread's earlier ones; write-backs and invalidations need a fence.
    drain_current();
  }
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

unsigned pmlab_machine_hosts() noexcept { return the_machine().count_of_hosts(); }
unsigned pmlab_machine_host() noexcept { return the_machine().host(); }
bool pmlab_machine_host_is_alive(unsigned host) noexcept { return the_machine().seems_alive(host); }
bool pmlab_machine_is_coherent(const void* address) noexcept {
  return the_machine().is_coherent(reinterpret_cast<std::uintptr_t>(address));
}
bool pmlab_machine_device_exchange(std::uint64_t* word, std::uint64_t* expected, std::uint64_t desired,
                                   const void* caller) noexcept {
  return the_machine().device_compare_exchange(word, *expected, desired, caller);
}
}
