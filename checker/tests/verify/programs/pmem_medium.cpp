// pmlab's own medium on libpmemobj: a pool is created, a stack of blocks changes by publications, and an index works
// beside it. A crash may hit any store of libpmemobj.
// 1: the content of a block is not durable before its publication. 2: the stack's head is stored outside of the
// publication.
#include "program.h"

#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/media/pool_name.hpp>

#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string>

namespace {

namespace media = pmlab::media;
using stack_word = std::atomic<std::uint64_t>;
using index_type = pmlab::indexes::fast_fair<media::pmem>;

constexpr std::uint64_t steps = 24, keys = 5;
constexpr std::uint64_t content_words = 22;

struct block {
  std::uint64_t value;
  std::uint64_t next;
  std::uint64_t content[content_words];
};

media::pmem open_pool(const std::string& path) {
  return media::pmem(path, {.create_bytes = POOL_BYTES, .huge_pages = false, .reserve_space = false});
}

stack_word& stack_of(media::pmem& pool) { return *pool.named_root("stack", "stack-1", 1).word; }

block* top_of(media::pmem& pool, std::uint64_t word) { return pool.resolve(media::pointer<block>(word)); }

// Two pushes of three steps, and a pop.
bool pushes(std::uint64_t step) { return step % 3 != 2; }

void push(media::pmem& pool, stack_word& head, std::uint64_t value) {
  media::pmem::publication change(pool);
  auto* const made = static_cast<block*>(change.allocate(sizeof(block), 64));
  if (made == nullptr) throw std::runtime_error("no space");
  made->value = value;
  made->next = head.load();
  for (std::uint64_t i = 0; i < content_words; ++i) made->content[i] = value + i;
  if (defect() != 1) media::persist(pool, *made);
  const std::uint64_t word = pool.locate(made).word();
  if (defect() != 2) change.store(head, word);
  change.commit();
  if (defect() == 2) {
    head.store(word);
    media::persist(pool, head);
  }
}

void pop(media::pmem& pool, stack_word& head) {
  block* const gone = top_of(pool, head.load());
  media::pmem::publication change(pool);
  change.store(head, gone->next);
  change.release(gone, sizeof(block));
  change.commit();
}

std::uint64_t key_of(std::uint64_t step) { return 1 + step % keys; }

void work(media::pmem& pool, stack_word& head, index_type& index, std::uint64_t step) {
  if (pushes(step))
    push(pool, head, 1000 + step);
  else
    pop(pool, head);
  mark("stack", step);
  static_cast<void>(step % 4 == 3 ? index.erase(key_of(step)) : index.upsert(key_of(step), 100 + step));
  mark("index", step);
}

// Objects of the pool, the root object excluded.
std::uint64_t objects(PMEMobjpool* pool) {
  std::uint64_t count = 0;
  for (PMEMoid o = pmemobj_first(pool); !OID_IS_NULL(o); o = pmemobj_next(o)) ++count;
  return count;
}

std::string stack_after(std::uint64_t done) {
  std::string values;
  for (std::uint64_t s = 0; s < done; ++s) {
    if (pushes(s))
      values += ' ' + std::to_string(1000 + s);
    else
      values.erase(values.rfind(' '));
  }
  return values;
}

std::uint64_t value_after(std::uint64_t done, std::uint64_t key) {
  std::uint64_t value = 0;
  for (std::uint64_t s = 0; s < done; ++s)
    if (key_of(s) == key) value = s % 4 == 3 ? 0 : 100 + s;
  return value;
}

void check_stack(media::pmem& pool, stack_word& head, std::uint64_t done) {
  std::string values;
  for (std::uint64_t word = head.load(); word != 0; word = top_of(pool, word)->next) {
    const block& b = *top_of(pool, word);
    for (std::uint64_t i = 0; i < content_words; ++i)
      if (b.content[i] != b.value + i) UNSOUND("block %lu has content %lu at %lu", b.value, b.content[i], i);
    values.insert(0, ' ' + std::to_string(b.value));
  }
  if (values != stack_after(done) && values != stack_after(done + 1))
    UNSOUND("the stack is%s, after %lu steps", values.c_str(), done);
}

void check_index(index_type& index, std::uint64_t done) {
  if (const auto report = index.check(); !report.ok()) UNSOUND("the index: %s", report.violations.front().c_str());
  for (std::uint64_t key = 1; key <= keys; ++key) {
    const std::uint64_t found = index.find(key).value_or(0);
    if (found != value_after(done, key) && found != value_after(done + 1, key))
      UNSOUND("key %lu has value %lu, after %lu steps", key, found, done);
  }
}

}  // namespace

static void run(const char* path) {
  media::pmem pool = open_pool(path);
  pmlab_mark("pool made");
  stack_word& head = stack_of(pool);
  index_type index = index_type::open(pool);
  pmlab_mark("roots made");
  for (std::uint64_t s = 0; s < steps; ++s) work(pool, head, index, s);
}

static void check(const char* path, unsigned long made) {
  try {
    // A crash while the pool is made leaves it without its name.
    if (made == 0) std::filesystem::rename(path, media::unfinished_name(path));
    media::pmem pool = open_pool(path);
    stack_word& head = stack_of(pool);
    index_type index = index_type::open(pool);
    PMEMobjpool* const handle = pmemobj_pool_by_ptr(&head);
    const std::uint64_t done = made < 2 ? 0 : made - 2;
    check_stack(pool, head, (done + 1) / 2);
    check_index(index, done / 2);
    pmlab_mark("recovered");
    // It remains usable, and holds no block that was lost: an emptied stack leaves what an empty pool has.
    push(pool, head, 1);
    while (head.load() != 0) pop(pool, head);
    for (std::uint64_t key = 1; key <= keys; ++key) static_cast<void>(index.erase(key));
    constexpr std::uint64_t blocks_of_the_index = 1;  // an empty tree
    if (objects(handle) > blocks_of_the_index) UNSOUND("%lu blocks are lost", objects(handle) - blocks_of_the_index);
  } catch (const std::exception& e) {
    UNSOUND("%s", e.what());
  }
  if (made == 0) std::filesystem::remove(path);
}
