// Objects that a program and a library that it has loaded use together.
#include "interface.hpp"

#include <memory>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <dlfcn.h>

#include <gtest/gtest.h>

namespace pmlab::tests {
namespace {

class loaded_library {
 public:
  loaded_library() : handle_(::dlopen(PLUGIN_PATH, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) throw std::runtime_error(::dlerror());
  }
  loaded_library(const loaded_library&) = delete;
  loaded_library& operator=(const loaded_library&) = delete;
  ~loaded_library() { ::dlclose(handle_); }

  template <class Function>
  [[nodiscard]] Function* function(const char* name) const {
    return reinterpret_cast<Function*>(::dlsym(handle_, name));
  }
  [[nodiscard]] numbered_blocks* make() const { return function<make_blocks_function>("make_blocks")(); }
  void end(numbered_blocks* blocks) const { function<end_blocks_function>("end_blocks")(blocks); }
  [[nodiscard]] numbered_block* local(numbered_blocks& blocks) const {
    return function<local_block_function>("local_block")(&blocks);
  }

 private:
  void* handle_;
};

// As many as make each place of the last used blocks be taken by several.
constexpr std::size_t objects = 20;

TEST(modules, of_one_program_have_objects_with_blocks_of_their_own) {
  const loaded_library library;
  std::vector<std::unique_ptr<numbered_blocks>> own;
  std::vector<numbered_blocks*> all;
  for (std::size_t i = 0; i < objects; ++i) {
    own.push_back(std::make_unique<numbered_blocks>());
    all.push_back(own.back().get());
    all.push_back(library.make());
  }
  for (int round = 0; round < 2; ++round) {
    std::set<const numbered_block*> of_program, of_library;
    for (numbered_blocks* const blocks : all) {
      of_program.insert(&blocks->local(make_numbered));
      of_library.insert(library.local(*blocks));
    }
    EXPECT_EQ(of_program.size(), all.size());
    EXPECT_EQ(of_library.size(), all.size());
  }
  for (numbered_blocks* const blocks : all) {
    std::set<const numbered_block*> visited;
    blocks->for_each([&](const numbered_block& b) { visited.insert(&b); });
    EXPECT_TRUE(visited.contains(&blocks->local(make_numbered)));
    EXPECT_TRUE(visited.contains(library.local(*blocks)));
  }
  for (std::size_t i = 1; i < all.size(); i += 2) library.end(all[i]);
}

// The memory of an ended object may be another one's.
TEST(modules, do_not_take_an_object_for_one_that_has_ended) {
  const loaded_library library;
  for (std::size_t i = 0; i < 100; ++i) {
    numbered_blocks* const of_library = library.make();
    of_library->local(make_numbered).number = i + 1;
    library.end(of_library);
    numbered_blocks own;
    EXPECT_EQ(own.local(make_numbered).number, 0U);
    EXPECT_EQ(library.local(own)->number, 1U);
  }
}

// A thread that used an object outlives it and its library.
TEST(modules, may_be_unloaded_when_their_objects_have_ended) {
  std::thread([] {
    numbered_blocks own;
    {
      const loaded_library library;
      numbered_blocks* const of_library = library.make();
      of_library->local(make_numbered).number = 7;
      library.end(of_library);
    }
    for (std::size_t i = 0; i < objects; ++i) {
      numbered_blocks another;
      EXPECT_EQ(another.local(make_numbered).number, 0U);
    }
    EXPECT_EQ(own.local(make_numbered).number, 0U);
  }).join();
}

}  // namespace
}  // namespace pmlab::tests
