// A library that a program loads, with variables of its own of each template that both use.
#include "interface.hpp"

using namespace pmlab::tests;

extern "C" __attribute__((visibility("default"))) numbered_blocks* make_blocks() { return new numbered_blocks; }
extern "C" __attribute__((visibility("default"))) void end_blocks(numbered_blocks* blocks) { delete blocks; }
extern "C" __attribute__((visibility("default"))) numbered_block* local_block(numbered_blocks* blocks) {
  return &blocks->local(make_numbered);
}
