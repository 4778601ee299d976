// Calls of malloc, new and their kin under pool_malloc.h, for pool_test.py: `run` returns 0, or the line of the first
// wrong one.
#include <pmlab/pibench/pool.hpp>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <malloc.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

namespace pibench = pmlab::pibench;

constexpr std::size_t pool_bytes = std::size_t{8} << 20;

// Its functions are its own.
struct own {
  void* free(int) { return this; }
  static void* malloc(int) { return nullptr; }
};

bool in_pool(const void* p) { return pibench::detail::holds(p); }
bool is_aligned(const void* p, std::size_t alignment) { return reinterpret_cast<std::uintptr_t>(p) % alignment == 0; }

#define EXPECT(what)              \
  do {                            \
    if (!(what)) return __LINE__; \
  } while (0)

int before_and_after(const char* path) {
  void* early = malloc(40);
  auto* const text = new std::string(100, 'x');
  EXPECT(!in_pool(early) && !in_pool(text));
  pibench::open_pool(path, pool_bytes);
  early = realloc(early, 4000);
  EXPECT(!in_pool(early));
  std::free(early);
  delete text;
  char* const foreign = strdup("text");
  EXPECT(!in_pool(foreign));
  free(foreign);
  free(nullptr);
  own o;
  EXPECT(o.free(1) == &o && own::malloc(1) == nullptr);
  return 0;
}

int blocks() {
  char* const a = static_cast<char*>(std::malloc(40));
  EXPECT(in_pool(a) && is_aligned(a, 16));
  std::memset(a, 7, 40);
  EXPECT(realloc(a, 48) == a);
  char* const larger = static_cast<char*>(realloc(a, 4000));
  EXPECT(larger != a && in_pool(larger) && larger[39] == 7);
  EXPECT(malloc(33) == a);  // freed, and of the same size
  std::memset(a, 7, 40);
  free(a);
  char* const zero = static_cast<char*>(calloc(3, 16));
  EXPECT(zero == a);
  for (int i = 0; i < 48; ++i) EXPECT(zero[i] == 0);
  const volatile std::size_t much = ~std::size_t{0};
  EXPECT(calloc(much, 16) == nullptr && errno == ENOMEM);
  errno = 0;
  EXPECT(malloc(pool_bytes) == nullptr && errno == ENOMEM);
  EXPECT(malloc(much) == nullptr && realloc(larger, much) == nullptr && larger[39] == 7);
  char* const big = static_cast<char*>(malloc(1 << 20));
  char* const next = static_cast<char*>(malloc(1 << 20));
  EXPECT(in_pool(big) && (next >= big + (1 << 20) || big >= next + (1 << 20)));
  void* aligned = nullptr;
  EXPECT(posix_memalign(&aligned, 4096, 5000) == 0 && in_pool(aligned) && is_aligned(aligned, 4096));
  EXPECT(posix_memalign(&aligned, 24, 5000) == EINVAL);
  EXPECT(posix_memalign(&aligned, 64, pool_bytes) == ENOMEM);
  EXPECT(is_aligned(aligned_alloc(64, 64), 64) && in_pool(memalign(256, 8)));
  for (int i = 0; i < 5000; ++i) {
    void* const block = malloc(100);
    EXPECT(in_pool(block));
    if (i % 3 != 0) free(block);
  }
  return 0;
}

int of_cpp() {
  EXPECT(in_pool(::operator new(8)) && is_aligned(::operator new (256, std::align_val_t{128}), 128));
  EXPECT(::operator new(pool_bytes, std::nothrow) == nullptr);
  try {
    std::vector<char> huge(pool_bytes);
    return __LINE__;
  } catch (const std::bad_alloc&) {
  }
  // The C++ library's own code takes part in these.
  std::string s(100, 'a');
  EXPECT(in_pool(s.data()));
  for (int i = 0; i < 1000; ++i) s += "some text";
  s.insert(3, s);
  s.resize(5);
  s.shrink_to_fit();
  std::vector<std::string> strings(100, std::string(50, 'q'));
  strings.resize(1000);
  std::map<int, std::string> map;
  for (int i = 0; i < 100; ++i) map[i] = std::to_string(i) + std::string(40, 'y');
  std::ostringstream out;
  for (int i = 0; i < 1000; ++i) out << i << "text";
  std::string t = out.str();
  t += t;
  const std::shared_ptr<int> shared = std::make_shared<int>(3);
  const std::function<std::size_t()> f = [s, t] { return s.size() + t.size(); };
  EXPECT(f() == s.size() + t.size() && *shared == 3);
  std::thread([] {
    for (std::size_t i = 0; i < 1000; ++i) std::string(i, 'c').append("d");
  }).join();
  try {
    throw std::runtime_error(t);
  } catch (const std::exception& e) {
    EXPECT(t == e.what());
  }
  return 0;
}

int again(const char* path) {
  char* const root = static_cast<char*>(malloc(4000));
  std::memset(root, 9, 4000);
  EXPECT(pibench::pool_root() == nullptr);
  pibench::set_pool_root(root);
  const void* const last = malloc(16);
  pibench::close_pool();
  void* const dram = malloc(8);
  EXPECT(!in_pool(dram));
  pibench::open_pool(path, pool_bytes);
  EXPECT(pibench::pool_root() == root && root[3999] == 9);
  EXPECT(malloc(16) > last);
  free(dram);
  free(root);
  EXPECT(malloc(4000) == root);
  pibench::close_pool();
  pibench::open_pool("", pool_bytes);
  void* const none = malloc(8);
  EXPECT(!in_pool(none));
  pibench::set_pool_root(none);
  EXPECT(pibench::pool_root() == none);
  free(none);
  pibench::close_pool();
  return 0;
}

bool is_refused(const std::string& path, const std::string& because) {
  try {
    pibench::open_pool(path, pool_bytes);
  } catch (const std::runtime_error& e) {
    return std::string(e.what()).find(because) != std::string::npos && !in_pool(std::unique_ptr<int>(new int).get());
  }
  return false;
}

// `path`: of a pool.
int files_that_are_no_pools(const std::string& path) {
  EXPECT(::truncate(path.c_str(), pool_bytes / 4) == 0);
  EXPECT(is_refused(path, "cut off"));
  for (const off_t bytes : {1, 100, 4096, 100'000}) {
    EXPECT(std::remove(path.c_str()) == 0);
    std::unique_ptr<FILE, int (*)(FILE*)>(std::fopen(path.c_str(), "w"), std::fclose).reset();
    EXPECT(::truncate(path.c_str(), bytes) == 0);
    EXPECT(is_refused(path, "too small"));
  }
  // The image of a disk, with holes.
  EXPECT(std::remove(path.c_str()) == 0);
  const std::string begin = std::string(8, '\0') + "data";
  {
    const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "w"), std::fclose);
    EXPECT(std::fwrite(begin.data(), 1, begin.size(), file.get()) == begin.size());
  }
  EXPECT(::truncate(path.c_str(), pool_bytes) == 0);
  EXPECT(is_refused(path, "is no pool"));
  struct stat status {};
  EXPECT(::stat(path.c_str(), &status) == 0 && status.st_blocks * 512 < static_cast<off_t>(pool_bytes / 2));
  char found[12] = {};
  const std::unique_ptr<FILE, int (*)(FILE*)> image(std::fopen(path.c_str(), "r"), std::fclose);
  EXPECT(std::fread(found, 1, sizeof found, image.get()) == sizeof found && begin == std::string(found, sizeof found));
  // No space, as a full file system has none.
  EXPECT(std::remove(path.c_str()) == 0);
  rlimit before{};
  EXPECT(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit none{4096, before.rlim_max};
  EXPECT(::signal(SIGXFSZ, SIG_IGN) != SIG_ERR && ::setrlimit(RLIMIT_FSIZE, &none) == 0);
  EXPECT(is_refused(path, "no space"));
  EXPECT(::setrlimit(RLIMIT_FSIZE, &before) == 0 && ::signal(SIGXFSZ, SIG_DFL) != SIG_ERR);
  return 0;
}

// Every form of delete is that of the library: another one would be given blocks of the pool.
int deletes(const char* path) {
  struct alignas(128) wide {
    explicit wide(bool fails) {
      if (fails) throw std::runtime_error("a constructor");
    }
    char bytes[128];
  };
  pibench::open_pool(path, pool_bytes);
  for (int array = 0; array < 2; ++array) {
    try {
      if (array == 0)
        delete new (std::nothrow) wide(true);
      else
        delete[] new (std::nothrow) wide[1]{wide(true)};
      return __LINE__;
    } catch (const std::runtime_error&) {
    }
  }
  pibench::close_pool();
  return 0;
}

// Where the kernel maps no library: a later process would find its pool's address taken.
int address(const char* path) {
  pibench::open_pool(path, pool_bytes);
  const auto start = reinterpret_cast<std::uintptr_t>(pibench::detail::the_pool.start);
  EXPECT(start >= std::uintptr_t{1} << 44 && start < std::uintptr_t{1} << 46);
  pibench::close_pool();
  return 0;
}

}  // namespace

extern "C" int run(const char* path) {
  for (const int wrong : {before_and_after(path), blocks(), of_cpp(), again(path), files_that_are_no_pools(path),
                          deletes(path), address(path)})
    if (wrong != 0) return wrong;
  return 0;
}
