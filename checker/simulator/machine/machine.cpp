// The simulated machine.
#include "checker/simulator/machine/machine.hpp"
#include "checker/simulator/machine/code_address.hpp"
#include "checker/simulator/machine/fiber_stack.hpp"
#include <pmlab/base/hash.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

#include <dlfcn.h>
#include <immintrin.h>

namespace pmlab::simulator {
namespace {

constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

// A core may run this far ahead of the others while its accesses are private.
constexpr std::uint64_t private_slack = 1'000'000;

// Accesses of a fiber to its own stack are no steps of the run, but so many of them without another one are a livelock.
constexpr std::uint64_t most_accesses_to_stack = std::uint64_t{1} << 30;

constexpr unsigned probe_bits = 20;

[[gnu::target("fsgsbase")]] void set_thread_pointer(std::uint64_t pointer) noexcept { _writefsbase_u64(pointer); }

}  // namespace

namespace detail {
constinit machine instance{};
}

// ---- beginning and end ----

void machine::begin(const machine_options& options) {
  if (dram_ == nullptr) dram_ = new heap;
  if (options.heap_of_libraries) libraries_ = code_of_simulated_libraries();
  options_ = options;
  limit_of_dram_ = {};
  limit_of_heap_ = {};
  dram_->quarantine(options.watch_freed);
  dram_->skip(options.heap_offset);
  fibers_.push_back(std::make_unique<fiber>());
  fiber& first = *fibers_.back();
  first.thread_pointer = reinterpret_cast<std::uint64_t>(__builtin_thread_pointer());
  pthread_attr_t attributes;
  void* low = nullptr;
  std::size_t bytes = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    pthread_attr_getstack(&attributes, &low, &bytes);
    pthread_attr_destroy(&attributes);
  }
  first.stack_low = reinterpret_cast<std::uintptr_t>(low);
  first.stack_bytes = bytes;
  next_number_ = 1;
  accesses_ = 0;
  accesses_to_stack_ = 0;
  probe_ = probe::off;
  extensions_ = 0;
  pending_count_ = 0;
  horizon_ = never;
  first_deadline_ = never;
  running_ = true;
  watching_ = false;
  hosts_ = options.hosts != nullptr && options.hosts->count() > 1 ? options.hosts : nullptr;
  owned_.assign(options.loaded_by_hosts.begin(), options.loaded_by_hosts.end());
  own_page_ = 0;
  if (hosts_ != nullptr) hosts_->show(0);
  begin_store_order(options.store_buffers);
  enter(&first);
  restart_quantum();
}

void machine::begin_in_copy(const machine_options& options) {
  // Their kernel threads do not exist here, so nothing can wait for their end.
  for (std::unique_ptr<fiber>& f : fibers_) static_cast<void>(f.release());
  fibers_.clear();
  aside_ = false;
  drives_ = {};
  use(nullptr);
  begin(options);
}

void machine::allow(std::uint64_t accesses) noexcept {
  accesses_to_stack_ = 0;
  probe_ = probe::off;
  extensions_ = 0;
  const std::uint64_t before = std::exchange(options_.access_limit, accesses_ + accesses);
  // The limit is the next turn if no other fiber's turn comes before.
  if (next_turn_ == before) next_turn_ = options_.access_limit;
}

void machine::end() {
  watch(false);
  running_ = false;
  begin_store_order(0);
  hosts_ = nullptr;
  options_.timed_hosts = nullptr;
  durability_ = nullptr;
  fibers_.clear();
  current_ = nullptr;
  use(nullptr);
  use_drives({});
}

void machine::use(persistent_memory* memory) noexcept {
  memory_ = memory;
  memory_start_ = memory == nullptr ? 0 : reinterpret_cast<std::uintptr_t>(memory->start());
  memory_bytes_ = memory == nullptr ? 0 : memory->bytes();
}

void machine::watch(bool on) noexcept {
  settle();
  watching_ = on;
}

void machine::violated(std::string what) {
  watching_ = false;
  if (running_) what += positions();
  if (on_violation != nullptr) on_violation(what);
  std::fprintf(stderr, "simulated machine: %s\n", what.c_str());
  std::abort();
}

std::string machine::positions() const {
  std::string text;
  for (const auto& f : fibers_) {
    if (f->state == fiber_state::finished) continue;
    text += "\n  thread " + std::to_string(f->number) +
            (hosts_ != nullptr ? " of host " + std::to_string(f->host) : std::string()) + " at " +
            code_address(f->last_caller);
    if (f->state == fiber_state::blocked) text += ", waits for " + std::string(f->why);
  }
  if (hosts_ != nullptr) text += hosts_->story();
  return text;
}

machine::aside_section::aside_section(machine& m, persistent_memory& memory, std::span<persistent_drive* const> drives)
    : machine_(m),
      watching_(m.watching_),
      memory_(m.memory_),
      hosts_(m.hosts_),
      drives_(m.drives_),
      flushes_(std::move(m.current_->flushes)),
      last_caller_(m.current_->last_caller),
      began_(m.accesses_),
      left_(m.next_turn_ - m.accesses_) {
  m.settle();
  buffering_ = std::exchange(m.buffering_, false);
  limit_of_heap_ = std::exchange(m.limit_of_heap_, {});  // that of the run
  m.hosts_ = nullptr;
  m.use(&memory);
  m.use_drives(drives);
  m.current_->flushes.clear();
  m.next_turn_ = m.accesses_ + patience;
  m.aside_ = true;
  m.watching_ = true;
}

machine::aside_section::~aside_section() {
  machine_.settle();
  machine_.watching_ = watching_;
  machine_.buffering_ = buffering_;
  machine_.limit_of_heap_ = limit_of_heap_;
  machine_.aside_ = false;
  machine_.use(memory_);
  machine_.hosts_ = hosts_;
  machine_.use_drives(drives_);
  machine_.current_->flushes = std::move(flushes_);
  machine_.current_->last_caller = last_caller_;
  // The limit is one for the accesses of the run alone.
  const std::uint64_t aside = machine_.accesses_ - began_;
  std::uint64_t& limit = machine_.options_.access_limit;
  limit = limit > ~aside ? never : limit + aside;
  machine_.next_turn_ = left_ > ~machine_.accesses_ ? never : machine_.accesses_ + left_;
}

// ---- accesses ----

void machine::saw(std::uintptr_t address, std::size_t bytes, access_kind kind, const void* caller) {
  if (pending_count_ != 0) log_pending();
  last_was_written_range_ = false;
  last_was_write_ = false;
  last_fence_ = nullptr;
  note(caller);
  if (address - stack_low_ < stack_bytes_) {
    // Others wait for such a store, on whatever stack. It stays where the machine's own frames are soon: it cannot
    // wait.
    if (buffering_ && kind == access_kind::atomic_write) drain_current();
    if (++accesses_to_stack_ >= most_accesses_to_stack) never_ends();
    return;
  }
  current_->last_caller = caller;
  ++accesses_;
  if (probe_ != probe::off) [[unlikely]] {
    auto seen = probed_[(address / media::cache_line_bytes * golden_ratio) >> (64 - probe_bits)];
    if (!seen && probe_ == probe::second_window) ++new_lines_;
    seen = true;
  }
  if (options_.cost != nullptr) {
    if (current_->timed) charge(address, bytes, kind);
  }
  if (accesses_ >= next_turn_)
    time_is_up();
  else if (kind == access_kind::read_modify_write)
    before_change();
  const bool persistent = address - memory_start_ < memory_bytes_;
  if (options_.watch_freed && (persistent || dram_->contains(address))) check_freed(address, caller);
  if (hosts_ != nullptr) [[unlikely]] {
    if (persistent) {
      does_to_hosts(kind == access_kind::read_modify_write ? shared_event::lock_word : shared_event::access, caller);
      if (!current_->around_caches) meet_other_hosts(address, bytes);
    } else {
      check_owner(address, caller);
    }
  }
  if (buffering_) [[unlikely]] {
    if (kind == access_kind::write || kind == access_kind::atomic_write)
      buffer_store(store_buffer::kind::store, address, bytes, caller);
    return;
  }
  if (watcher_ != nullptr) tell_watcher(address, bytes, kind);
  if (kind == access_kind::write && persistent) {
    if (pending_count_ == pending_.size()) log_pending();
    // Not earlier: others may have run since the beginning.
    last_was_write_ = true;
    pending_[pending_count_++] = {address, bytes, caller, false};
  }
}

void machine::tell_watcher(std::uintptr_t address, std::size_t bytes, access_kind kind) {
  if (address - memory_start_ >= memory_bytes_) return;
  const bool before = std::exchange(watching_, false);
  if (kind != access_kind::write && kind != access_kind::atomic_write) watcher_->before_read(address, bytes);
  if (kind != access_kind::read && kind != access_kind::atomic_read) watcher_->before_write(address, bytes);
  watching_ = before;
}

void machine::charge(std::uintptr_t address, std::size_t bytes, access_kind kind) {
  timing& cost = *options_.cost;
  const std::uint64_t now = current_->clock;
  const bool by_device = current_->around_caches && options_.timed_hosts != nullptr;
  const auto is_private = [&] { return !by_device && cost.is_private(current_->number, address, bytes, kind); };
  // Whether the access is private is looked up only where it decides: that costs as much as the access.
  if (horizon_ == never) {
    // The only fiber that can run. A sleeper's time comes while it uses lines of its own.
    if (first_deadline_ <= now && is_private()) take_turn(turn::time_is_up);
  } else if (now > horizon_) {
    const bool may_be_ahead = now - horizon_ <= private_slack;
    if (may_be_ahead && !by_device) {
      const std::uint64_t done = cost.hit(current_->number, address, bytes, kind, now);
      if (done != timing::no_hit) {
        current_->clock = done;
        return;
      }
    }
    if (!may_be_ahead || !is_private()) take_turn(turn::time_is_up);
  }
  current_->clock = by_device ? cost.exchange_on_device(current_->number, address, current_->clock)
                              : cost.access(current_->number, address, bytes, kind, current_->clock);
}

void machine::log_store(std::uintptr_t address, std::size_t bytes, const void* caller) {
  watching_ = false;
  if (durability_ != nullptr) durability_->stored(address, bytes);
  put_store(address, bytes, caller);
  save_visible(address, bytes, true);
  watching_ = true;
}

// Where the caches survive, the stores to these lines are durable by now. `published`: not those of a block that
// nothing leads to yet.
void machine::save_visible(std::uintptr_t address, std::size_t bytes, bool published) {
  if (!caches_survive()) return;
  flush_list visible;
  media::for_each_line(reinterpret_cast<const void*>(address), bytes, [&](std::uintptr_t line) {
    const auto number = static_cast<std::uint32_t>((line - memory_start_) / media::cache_line_bytes);
    const unpersisted_line* const log = memory_->log_of(number);
    if (log != nullptr && (log->position != nowhere || !published)) memory_->flushed(line, visible);
  });
  memory_->fenced(visible);
}

void machine::log_pending() {
  const bool before = std::exchange(watching_, false);
  const std::uint32_t count = std::exchange(pending_count_, 0);
  // Copies: an observer of a store may run a recovery aside, whose stores are pending in the same places.
  decltype(pending_) pending;
  std::copy_n(pending_.begin(), count, pending.begin());
  if (memory_ != nullptr)
    for (std::uint32_t i = 0; i < count; ++i) {
      const pending_store& p = pending[i];
      if (durability_ != nullptr)
        p.around ? durability_->stored_around(p.address, p.bytes) : durability_->stored(p.address, p.bytes);
      if (p.around) {
        put_store_around(*current_, p.address, p.bytes, p.caller);
        continue;
      }
      put_store(p.address, p.bytes, p.caller);
      save_visible(p.address, p.bytes, true);
    }
  watching_ = before;
}

bool machine::copy_may_be_under_way(std::size_t bytes) const noexcept {
  const pending_store& last = pending_[pending_count_ - 1];
  return last_was_write_ && !last.around && last.bytes == bytes &&
         (hosts_ != nullptr ? hosts_->is_known(last.address, last.bytes) : memory_->is_known(last.address, last.bytes));
}

void machine::check_freed(std::uintptr_t address, const void* caller) {
  const bool persistent = address - memory_start_ < memory_bytes_;
  if (persistent ? memory_->covers(address) : !dram_->is_freed(address)) return;
  if (hosts_ != nullptr && !persistent) check_owner(address, caller);
  watching_ = false;
  violated(std::string(persistent ? "use of persistent memory that is not allocated" : "use of freed memory") + " at " +
           code_address(caller));
}

// Time passes for the current fiber, after that of those who are behind it.
template <class Cost>
void machine::take_time(Cost&& cost) {
  if (options_.cost == nullptr || !running_ || !current_->timed) return;
  if (current_->clock > horizon_) take_turn(turn::time_is_up);
  current_->clock = cost(*options_.cost, current_->number, current_->clock);
}

// An event that is no access, but is scheduled like one.
template <class Cost>
void machine::moment(const void* caller, Cost&& cost) {
  if (pending_count_ != 0) log_pending();
  last_was_write_ = false;
  last_fence_ = nullptr;
  current_->last_caller = caller;
  take_time(cost);
  if (++accesses_ >= next_turn_) time_is_up();
}

void machine::flush(const void* address, const void* caller, bool evicts) {
  if (!watching_ || caches_survive()) return;
  const auto a = reinterpret_cast<std::uintptr_t>(address);
  if (running_ && current_->timed) {
    ++persists_.flushes;
    persists_.invalidations += evicts ? 1 : 0;
  }
  moment(caller, [=](timing& t, unsigned core, std::uint64_t now) { return t.flush(core, a, evicts, now); });
  const bool persistent = a - memory_start_ < memory_bytes_;
  if (durability_ != nullptr) quietly([&] { durability_->flushed(a, persistent, caller); });
  if (!persistent) return;
  if (hosts_ != nullptr) does_to_hosts(evicts ? shared_event::access : shared_event::write_back, caller);
  if (hosts_ != nullptr && evicts) hosts_->invalidates(a, current_->invalidations);
  if (buffering_ && !current_->stores.empty())
    add_to_buffer(store_buffer::kind::write_back, a, 0, caller);
  else
    quietly([&] { put_flush(*current_, a); });
}

void machine::fence(const void* caller, bool all) {
  if (!watching_) return;
  if (running_ && current_->timed) ++persists_.fences;
  moment(caller, [all](timing& t, unsigned core, std::uint64_t now) {
    return all ? t.load_fence(core, now) : t.fence(core, now);
  });
  if (hosts_ != nullptr) does_to_hosts(shared_event::access, caller);
  if (durability_ != nullptr) quietly([&] { durability_->fenced(caller); });
  const bool orders_loads = all || (hosts_ != nullptr && hosts_->sfence_invalidates());
  if (buffering_ && !orders_loads && !current_->stores.empty()) {
    add_to_buffer(store_buffer::kind::fence, 0, 0, caller);
    return;
  }
  if (buffering_) drain_current();
  if (all) last_fence_ = caller;
  if (memory_ != nullptr) quietly([&] { put_fence(*current_, orders_loads); });
}

void machine::drive_called(const void* caller) {
  if (!watching_) return;
  settle();
  current_->last_caller = caller;
  if (++accesses_ >= next_turn_) time_is_up();
}

// A locked instruction waits for the stores and write-backs of its core, as mfence does.
void machine::locked_instruction() {
  if (!watching_) return;
  if (buffering_) drain_current();
  if (memory_ == nullptr || (current_->flushes.empty() && current_->invalidations.empty())) return;
  quietly([&] { put_fence(*current_, true); });
}

void machine::store_around(void* address, std::size_t bytes, const void* caller) {
  if (!watching_) return;
  const auto a = reinterpret_cast<std::uintptr_t>(address);
  moment(caller, [=](timing& t, unsigned core, std::uint64_t now) { return t.write_around(core, a, bytes, now); });
  if (hosts_ != nullptr && a - memory_start_ < memory_bytes_) does_to_hosts(shared_event::access, caller);
  if (watcher_ != nullptr) tell_watcher(a, bytes, access_kind::write);
  if (buffering_)
    buffer_store(store_buffer::kind::around, a, bytes, caller);
  else if (a - memory_start_ < memory_bytes_)
    pending_[pending_count_++] = {a, bytes, caller, true};
}

void machine::publish(persistent_memory& m, std::span<const pmlab_change> changes, const void* caller) {
  std::string wrong;
  const auto apply = [&] {
    charge_publication(changes);
    if (watcher_ != nullptr && &m == memory_)
      for (const pmlab_change& c : changes)
        if (c.kind == 1)
          tell_watcher(reinterpret_cast<std::uintptr_t>(c.address), sizeof(std::uint64_t), access_kind::write);
    if (&m == memory_ && caches_survive())
      for (const pmlab_change& c : changes)
        if (c.kind == 0)  // a block to which something leads from now on
          save_visible(
              reinterpret_cast<std::uintptr_t>(c.address),
              m.blocks().reserved_bytes(static_cast<std::size_t>(static_cast<std::byte*>(c.address) - m.start())),
              false);
    put_publication(m, changes, caller, wrong);
    if (durability_ != nullptr && &m == memory_)
      for (const pmlab_change& c : changes)
        if (c.kind == 1) durability_->published(reinterpret_cast<std::uintptr_t>(c.address));
  };
  if (watching_) {
    // A store that is announced is done by now: it is this thread's, and not of the next one to run.
    if (pending_count_ != 0) log_pending();
    current_->last_caller = caller;
    if (++accesses_ >= next_turn_)
      time_is_up();
    else
      before_change();
    if (hosts_ != nullptr && &m == memory_) {
      const bool grows = std::any_of(changes.begin(), changes.end(), [](const pmlab_change& c) { return c.kind == 0; });
      does_to_hosts(grows ? shared_event::growth : shared_event::publication, caller);
    }
    quietly(apply);
  } else {
    apply();
  }
  if (!wrong.empty()) violated(wrong + " at " + code_address(caller));
}

void machine::charge_publication(std::span<const pmlab_change> changes) {
  if (options_.cost == nullptr) return;
  std::array<std::uintptr_t, 32> words;
  std::size_t count = 0;
  std::size_t blocks = 0;
  for (const pmlab_change& c : changes) {
    if (c.kind != 1)
      ++blocks;
    else if (count < words.size())
      words[count++] = reinterpret_cast<std::uintptr_t>(c.address);
  }
  take_time([&](timing& t, unsigned core, std::uint64_t now) {
    return t.publication(core, std::span(words).first(count), blocks, now);
  });
}

// No access: it is private.
void machine::prefetch(const void* address, std::size_t bytes) {
  if (!watching_) return;
  const auto a = reinterpret_cast<std::uintptr_t>(address);
  take_time([=](timing& t, unsigned core, std::uint64_t now) { return t.prefetch(core, a, bytes, now); });
}

void machine::begin_timing() noexcept {
  if (running_) current_->timed = true;
}
void machine::end_timing() noexcept {
  if (!running_) return;
  settle();
  current_->timed = false;
}

// ---- turns ----

void machine::time_is_up() {
  if ((aside_ || accesses_ >= options_.access_limit) && !touches_new_lines()) never_ends();
  take_turn(turn::time_is_up);
}

void machine::extend_limit(std::uint64_t accesses) noexcept {
  if (aside_)
    next_turn_ = accesses_ + accesses;
  else
    options_.access_limit = accesses_ + accesses;
}

// Code that fills a large area passes every limit, and is no livelock: it goes on to lines that it has not touched. At
// the limit two windows of accesses show whether it does.
bool machine::touches_new_lines() {
  constexpr std::uint64_t window = std::uint64_t{1} << 18;
  constexpr std::uint64_t few_lines = 64;
  constexpr unsigned most_extensions = 200;
  const bool before = std::exchange(watching_, false);
  switch (probe_) {
    case probe::off:
      probed_.assign(std::size_t{1} << probe_bits, false);
      new_lines_ = 0;
      probe_ = probe::first_window;
      extend_limit(window);
      break;
    case probe::first_window:
      probe_ = probe::second_window;
      extend_limit(window);
      break;
    case probe::second_window:
      probe_ = probe::off;
      if (new_lines_ < few_lines || ++extensions_ > most_extensions) return false;
      extend_limit(patience);
      break;
  }
  watching_ = before;
  return true;
}

void machine::never_ends() {
  watching_ = false;
  violated("no end after " + std::to_string(steps()) +
           " accesses: a thread waits for an event that never happens (livelock)");
  std::abort();
}

void machine::restart_quantum() {
  std::uint64_t quantum = never;
  if (options_.who != nullptr && fibers_.size() > 1) quantum = options_.who->quantum();
  next_turn_ = std::min(options_.access_limit, quantum == never ? never : accesses_ + quantum);
}

std::vector<fiber*>& machine::runnable() {
  runnable_.clear();
  for (const auto& f : fibers_)
    if (f->state == fiber_state::runnable) runnable_.push_back(f.get());
  return runnable_;
}

// The runnable fiber with the lowest clock; sets the horizon to the second lowest.
fiber* machine::lowest_clock() noexcept {
  fiber* lowest = nullptr;
  horizon_ = never;
  for (fiber* f : runnable_) {
    if (lowest == nullptr || f->clock < lowest->clock) {
      if (lowest != nullptr) horizon_ = lowest->clock;
      lowest = f;
    } else {
      horizon_ = std::min(horizon_, f->clock);
    }
  }
  return lowest;
}

// The fiber whose wait ends first, if it does by `clock`. Notes when the next one does.
bool machine::wake_sleeper_due_by(std::uint64_t clock) noexcept {
  fiber* first = nullptr;
  for (const auto& f : fibers_)
    if (f->state == fiber_state::blocked && f->deadline != 0 && (first == nullptr || f->deadline < first->deadline))
      first = f.get();
  first_deadline_ = first == nullptr ? never : first->deadline;
  if (first_deadline_ > clock || first == nullptr) return false;
  first->clock = std::max(first->clock, first->deadline);
  first->timed_out = true;
  first->state = fiber_state::runnable;
  return true;
}

void machine::take_turn(turn why) {
  if (aside_) {
    if (why == turn::blocked) violated("deadlock: a recovery waits for another thread");
    return;
  }
  const bool watched = std::exchange(watching_, false);
  const bool buffered = std::exchange(buffering_, false);
  if (buffers_) let_stores_leave(why);
  if (hosts_ != nullptr) hosts_->turn_ends();
  fiber* const next = choose(why);
  restart_quantum();
  if (hosts_ != nullptr) hosts_->show(next->host);
  if (buffers_) next->stores.put_in();
  if (next != current_) switch_to(next);
  buffering_ = buffered;
  watching_ = watched;
}

// The next fiber to run. The current fiber may have ended.
fiber* machine::choose(turn why) {
  for (;;) {
    if (runnable().empty()) {
      // A fiber that waits for a time continues when no other fiber can run.
      if (!wake_sleeper_due_by(never)) violated("deadlock: every thread waits");
      continue;
    }
    if (options_.cost != nullptr) {
      // A sleeper whose deadline is earlier runs first.
      fiber* const lowest = lowest_clock();
      if (wake_sleeper_due_by(lowest->clock)) continue;
      return lowest;
    }
    if (options_.who != nullptr) return options_.who->next(runnable_, current_, why);
    if (why == turn::time_is_up) return current_;
    // Round robin.
    const auto after =
        std::find_if(runnable_.begin(), runnable_.end(), [&](const fiber* f) { return f->number > current_->number; });
    return after != runnable_.end() ? *after : runnable_.front();
  }
}

void machine::enter(fiber* f) noexcept {
  current_ = f;
  stack_low_ = f->stack_low;
  stack_bytes_ = f->stack_bytes;
}

// All of a switch but the jump.
void machine::leave_for(fiber* next) noexcept {
  came_from_ = current_;
  enter(next);
  set_thread_pointer(next->thread_pointer);
}

void machine::switch_to(fiber* next) {
  leave_for(next);
  boost::context::fiber from = std::move(next->context).resume();
  // A fiber has switched back to here: the switching fiber is suspended where it called.
  came_here(std::move(from));
}

void machine::came_here(boost::context::fiber&& from) noexcept {
  came_from_->context = std::move(from);
  if (came_from_->dead) came_from_->abandon();
}

// Destructors of the thread whose storage is in use, as the C library runs them when a thread ends: on the fiber, since
// they may lock mutexes that other fibers hold. The storage's lender has none left to run.
static void run_thread_local_destructors() {
  static auto* const run = reinterpret_cast<void (*)()>(dlvsym(RTLD_DEFAULT, "__call_tls_dtors", "GLIBC_PRIVATE"));
  if (run != nullptr) run();
}

boost::context::fiber machine::run_fiber(machine& m, fiber* self, boost::context::fiber&& from) {
  m.came_here(std::move(from));
  m.watching_ = true;
  m.buffering_ = m.buffers_;
  self->result = self->start(self->argument);
  run_thread_local_destructors();
  m.watch(false);
  // A thread's end is no fence, but its flushes belong to no thread any more.
  self->flushes.clear();
  self->invalidations.clear();
  m.take_storage_back(*self);
  self->state = fiber_state::finished;
  m.make_runnable(self, true);
  fiber* const next = m.choose(turn::blocked);
  m.restart_quantum();
  if (m.hosts_ != nullptr) m.hosts_->show(next->host);
  next->stores.put_in();
  m.leave_for(next);
  return std::move(next->context);
}

// Its address identifies the thread (pthread_t): storage of a thread that may still be joined is not reused.
void machine::take_storage_back(fiber& self) {
  set_thread_pointer(fibers_.front()->thread_pointer);
  if (self.detached) self.storage.reset();
}

void machine::borrow_first_storage(bool on) noexcept {
  set_thread_pointer(on ? fibers_.front()->thread_pointer : current_->thread_pointer);
}

void machine::borrow_watchers_storage(bool on) {
  static const auto* const watchers = new lent_storage;
  set_thread_pointer(on ? watchers->thread_pointer() : current_->thread_pointer);
}

// ---- threads ----

fiber* machine::spawn(void* (*start)(void*), void* argument) {
  const bool watched = std::exchange(watching_, false);
  if (watched && pending_count_ != 0) log_pending();
  if (buffering_) drain_current();
  std::erase_if(fibers_, [](const auto& f) { return f->detached && f->state == fiber_state::finished; });
  fibers_.push_back(std::make_unique<fiber>());
  fiber* const f = fibers_.back().get();
  f->number = next_number_++;
  f->start = start;
  f->argument = argument;
  f->clock = current_->clock;
  f->host = current_->host;
  // The threads that a timed operation makes are part of it.
  f->timed = current_->timed;
  f->storage = std::make_unique<lent_storage>();
  f->thread_pointer = f->storage->thread_pointer();
  fiber_stacks stacks;
  boost::context::stack_context stack = stacks.allocate();
  f->stack_low = reinterpret_cast<std::uintptr_t>(stack.sp) - stack.size;
  f->stack_bytes = stack.size;
  own_page_ = 0;
  f->context =
      boost::context::fiber(std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack), stacks,
                            [this, f](boost::context::fiber&& from) { return run_fiber(*this, f, std::move(from)); });
  restart_quantum();
  if (options_.cost != nullptr) horizon_ = std::min(horizon_, f->clock);
  watching_ = watched;
  return f;
}

void* machine::join(fiber* which) {
  while (which->state != fiber_state::finished) wait_for(which, "the end of a thread");
  void* const result = which->result;
  quietly([&] { std::erase_if(fibers_, [&](const auto& f) { return f.get() == which; }); });
  return result;
}

fiber* machine::find(pthread_t id) const noexcept {
  for (const auto& f : fibers_)
    if (f->thread_pointer == static_cast<std::uint64_t>(id)) return f.get();
  return nullptr;
}

void machine::yield() {
  quietly([&] {
    if (options_.cost != nullptr) {
      // The cost of the system call.
      constexpr std::uint64_t call = 300'000;
      current_->clock += call;
    }
    take_turn(turn::yields);
  });
}

bool machine::wait_for(const void* object, std::string_view why, std::uint64_t deadline) {
  return quietly([&] {
    current_->state = fiber_state::blocked;
    current_->waits_for = object;
    current_->why = why;
    current_->deadline = deadline;
    current_->timed_out = false;
    take_turn(turn::blocked);
    current_->waits_for = nullptr;
    return !current_->timed_out;
  });
}

void machine::make_runnable(const void* object, bool all) {
  for (const auto& f : fibers_) {
    if (f->state != fiber_state::blocked || f->waits_for != object) continue;
    f->state = fiber_state::runnable;
    f->deadline = 0;
    // The cost of waking another thread.
    constexpr std::uint64_t wake_up = 5'000'000;
    if (options_.cost != nullptr) {
      f->clock = std::max(f->clock, current_->clock + wake_up);
      horizon_ = std::min(horizon_, f->clock);
    }
    if (!all) return;
  }
}

std::uint64_t machine::read_clock() noexcept {
  if (options_.cost != nullptr) return current_->clock;
  constexpr std::uint64_t look = 1'000'000;
  for (const auto& f : fibers_) current_->clock = std::max(current_->clock, f->clock);
  return current_->clock += look;
}

void machine::sleep_until(std::uint64_t clock) {
  wait_for(&current_->clock, "the end of a sleep", std::max<std::uint64_t>(clock, 1));
}

}  // namespace pmlab::simulator
