// An index of pmlab behind PiBench's interface. Compiled once, for all libraries.
//
// Keys of 8 bytes are the unsigned integers that their bytes are on this machine, and scans return them in the order of
// these integers: the order in which PiBench makes and compares them. Keys of any other size are in the order of their
// bytes.
//
// Thread safety, progress and durability are the index's: results survive a crash if the pool does. Every function of a
// tree throws pmlab::error, and prints it to stderr: a key or value of another size; an operation for which the medium
// has no space, since `false` would mean that the key was present.
#pragma once

#include "tools/pibench/wrapper/words_behind.hpp"
#include <pmlab/pibench/tree_api.hpp>

#include <memory>
#include <string_view>

namespace pmlab::pibench {

// Throws pmlab::error, in the words of PiBench's options: sizes of keys and values that are not offered.
void check_sizes(const tree_options_t& options);

// The tree of the library `name` for other sizes than 8 and 8 bytes (tree_of_words.hpp): a string index
// (strings/string_index.hpp) over its words. Keys of 8 bytes are stored with their most significant byte first; values
// of 8 bytes as words, others in blocks. Throws the exceptions of the index; also pmlab::error if the pool holds keys
// or values of another size than was passed to create_tree.
[[nodiscard]] std::unique_ptr<tree_api> make_tree_of_strings(std::string_view name, const tree_options_t& options,
                                                             std::unique_ptr<words_behind> words);

}  // namespace pmlab::pibench
