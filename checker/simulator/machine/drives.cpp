// The drives of the device `simulated_drive`, by handles.
#include "checker/simulator/calls.hpp"
#include "checker/simulator/drive_clock.hpp"
#include "checker/simulator/machine/machine.hpp"
#include "checker/simulator/machine/persistent_drive.hpp"

#include <algorithm>
#include <string>
#include <vector>

using pmlab::simulator::machine;
using pmlab::simulator::persistent_drive;
using pmlab::simulator::the_machine;
namespace blocks = pmlab::blocks;

namespace {

persistent_drive::queue& queue_of(void* handle) noexcept { return *static_cast<persistent_drive::queue*>(handle); }

// A read is a store of the program's, if its data lie in the memory that the machine observes.
void read_into(void* data, std::size_t bytes, const void* caller) {
  pmlab::simulator::persistent_memory* const memory = the_machine().memory();
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  if (memory != nullptr && memory->contains(address)) memory->stored(address, bytes, caller);
}

// Others run meanwhile. On virtual clocks the drive itself takes no time: blocks::timed is for that.
void wait_for_one(persistent_drive::queue& q) {
  machine& m = the_machine();
  if (m.watching() && m.cost() == nullptr) m.yield();
  // Another queue's thread may have completed it.
  m.quietly([&] {
    if (!q.in_flight.empty()) q.of.complete_one(q);
  });
}

}  // namespace

extern "C" {

void* pmlab_drive_watched(unsigned number) noexcept {
  const auto drives = the_machine().drives();
  return number < drives.size() ? drives[number] : nullptr;
}

void* pmlab_drive_make(const pmlab_drive_shape* shape) noexcept {
  return the_machine().quietly([&]() -> void* {
    try {
      return new persistent_drive({shape->blocks, shape->block_bytes, shape->atomic_bytes, shape->volatile_cache != 0});
    } catch (...) {
      return nullptr;
    }
  });
}
void pmlab_drive_drop(void* drive) noexcept {
  the_machine().quietly([&] { delete static_cast<persistent_drive*>(drive); });
}

void pmlab_drive_shape_of(const void* drive, pmlab_drive_shape* shape) noexcept {
  const blocks::geometry& g = static_cast<const persistent_drive*>(drive)->shape();
  *shape = {g.blocks, g.block_bytes, g.atomic_bytes, g.volatile_cache ? 1U : 0U};
}

void* pmlab_drive_open_queue(void* drive) noexcept {
  return the_machine().quietly([&] { return new persistent_drive::queue(*static_cast<persistent_drive*>(drive)); });
}

void pmlab_drive_close_queue(void* queue) noexcept {
  persistent_drive::queue& q = queue_of(queue);
  while (!q.in_flight.empty()) wait_for_one(q);
  the_machine().quietly([&] { delete &q; });
}

void pmlab_drive_submit(void* queue, const pmlab_drive_request* request, const void* caller) noexcept {
  persistent_drive::queue& q = queue_of(queue);
  machine& m = the_machine();
  m.drive_called(caller);
  m.quietly([&] {
    q.of.on_misuse = [](const std::string& what) { the_machine().violated(what); };
    q.of.on_read = read_into;
    blocks::request r;
    r.what = static_cast<blocks::operation>(request->what);
    r.count = request->count;
    r.first = request->first;
    r.data = static_cast<std::byte*>(request->data);
    r.tag = request->tag;
    if (!blocks::has_blocks_of(q.of.shape(), r)) return q.done.push_back({r.tag, blocks::beyond_end});
    q.of.submit(q, r, caller);
    q.of.progress();
  });
}

std::size_t pmlab_drive_reap(void* queue, std::uint64_t* tags, std::size_t room, std::size_t at_least,
                             const void* caller) noexcept {
  persistent_drive::queue& q = queue_of(queue);
  machine& m = the_machine();
  m.drive_called(caller);
  m.quietly([&] { q.of.progress(); });
  const std::size_t wanted = std::min({at_least, room, q.in_flight.size() + q.done.size()});
  while (q.done.size() < wanted) wait_for_one(q);
  return m.quietly([&] {
    // A thread that polls finds something in the end.
    if (!q.in_flight.empty() && q.done.empty() && room != 0) q.of.complete_one(q);
    const std::size_t count = std::min(room, q.done.size());
    for (std::size_t i = 0; i < count; ++i) {
      tags[i] = q.done[i].tag;
      if (!q.done[i].succeeded()) q.refused.push_back(tags[i]);
    }
    q.done.erase(q.done.begin(), q.done.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  });
}

bool pmlab_drive_was_refused(void* queue, std::uint64_t tag) noexcept {
  return the_machine().quietly([&] {
    std::vector<std::uint64_t>& refused = queue_of(queue).refused;
    const auto at = std::find(refused.begin(), refused.end(), tag);
    if (at == refused.end()) return false;
    refused.erase(at);
    return true;
  });
}

std::size_t pmlab_drive_in_flight(const void* queue) noexcept {
  const auto& q = *static_cast<const persistent_drive::queue*>(queue);
  return q.in_flight.size() + q.done.size();
}

void pmlab_machine_wait_until(std::uint64_t clock) noexcept {
  machine& m = the_machine();
  if (m.running() && m.current()->clock < clock) m.sleep_until(clock);
}
}
