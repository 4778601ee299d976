// An index of pmlab with keys and values of any other size than 8 bytes each, behind PiBench's interface: a string
// index (strings/string_index.hpp) whose words are in the index of a library. Compiled once, for all libraries.
//
// Scans return keys of 8 bytes in the order of the unsigned integers that they are on this machine, as
// tree_of_words.hpp does: such a key is stored with its most significant byte first. Keys of any other size are in the
// order of their bytes.
//
// Thread safety, progress and durability are the string index's: results survive a crash if the pool does.
#pragma once

#include "tools/pibench/wrapper/words_behind.hpp"
#include <pmlab/pibench/tree_api.hpp>

#include <memory>
#include <string_view>

namespace pmlab::pibench {

// Throws pmlab::error, in the words of PiBench's options: sizes of keys and values that are not offered.
void check_sizes(const tree_options_t& options);

// The tree of the library `name`: values of 8 bytes are stored as words, others in blocks. Throws as tree_of_words
// does; also if the pool holds keys or values of another size than was passed to create_tree.
[[nodiscard]] std::unique_ptr<tree_api> make_tree_of_strings(std::string_view name, const tree_options_t& options,
                                                             std::unique_ptr<words_behind> words);

}  // namespace pmlab::pibench
