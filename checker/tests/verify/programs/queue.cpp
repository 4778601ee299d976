// A queue on libpmemobj-cpp, as PMDK's queue example.
// 1: its length is a plain integer, which no transaction snapshots. 2: an entry is linked before the transaction
// begins.
#include "program.h"

#include <libpmemobj++/make_persistent.hpp>
#include <libpmemobj++/p.hpp>
#include <libpmemobj++/persistent_ptr.hpp>
#include <libpmemobj++/pool.hpp>
#include <libpmemobj++/transaction.hpp>

#include <cstdint>
#include <exception>

namespace {

namespace obj = pmem::obj;
constexpr std::uint64_t pushes = 8;

struct entry {
  obj::p<std::uint64_t> value;
  obj::persistent_ptr<entry> next;
};

struct queue {
  obj::persistent_ptr<entry> head, tail;
  obj::p<std::uint64_t> length;
  char line[64];
  std::uint64_t plain_length;

  [[nodiscard]] std::uint64_t size() const { return defect() == 1 ? plain_length : length.get_ro(); }

  void push(obj::pool<queue>& pool, std::uint64_t value) {
    if (defect() == 1) {
      ++plain_length;
      pool.persist(&plain_length, sizeof(plain_length));
    }
    obj::transaction::run(pool, [&] {
      const auto made = obj::make_persistent<entry>();
      made->value = value;
      made->next = nullptr;
      if (head == nullptr)
        head = made;
      else if (defect() == 2)
        *reinterpret_cast<PMEMoid*>(&tail->next) = made.raw();  // around the assignment that snapshots
      else
        tail->next = made;
      tail = made;
      if (defect() != 1) length = length + 1;
    });
  }
};

}  // namespace

static void run(const char* path) {
  unlink(path);
  auto pool = obj::pool<queue>::create(path, "queue", POOL_BYTES, 0600);
  const auto q = pool.root();
  pmlab_mark("created");
  for (std::uint64_t i = 0; i < pushes; ++i) {
    q->push(pool, i + 1);
    mark("pushed", i);
  }
  pool.close();
}

static void check(const char* path, unsigned long made) {
  try {
    auto pool = obj::pool<queue>::open(path, "queue");
    const auto q = pool.root();
    std::uint64_t found = 0;
    for (auto e = q->head; e != nullptr; e = e->next)
      if (e->value != ++found) UNSOUND("entry %lu holds %lu", found, e->value.get_ro());
    if (found != q->size()) UNSOUND("the queue counts %lu entries, and has %lu", q->size(), found);
    if (made != 0 && (found < made - 1 || found > made)) UNSOUND("%lu entries after %lu pushes", found, made - 1);
    pool.close();
  } catch (const std::exception& e) {
    if (made != 0) UNSOUND("the queue cannot be opened: %s", e.what());
  }
}
