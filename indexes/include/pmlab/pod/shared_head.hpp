// The head of an index that several hosts share: where its name leads to.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/detail/damaged_tree.hpp>
#include <pmlab/media/hosts.hpp>
#include <pmlab/media/medium.hpp>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace pmlab::pod {

// The head that `name` leads to; make(word) makes one where there is none, and lets the word lead to it. A head begins
// with a line that never changes but by publications, with a word `made_with` in it: Head::sizes, of which the rest of
// the head follows. Throws pmlab::error: the name is another layout's, or the head was made with other sizes, or is
// damaged.
template <class Head, media::medium Medium, class Make>
[[nodiscard]] Head& head_of(Medium& medium, std::string_view name, std::string_view layout, std::uint64_t version,
                            Make&& make) {
  std::atomic<std::uint64_t>& named = *medium.named_root(name, layout, version).word;
  media::refresh(medium, named);
  if (named.load(std::memory_order_acquire) == 0) make(named);
  const media::pointer<Head> at(named.load(std::memory_order_acquire));
  // A head of fewer locks may be at the end of the medium: its sizes come first.
  if (!media::can_name(medium, at, media::cache_line_bytes)) throw indexes::detail::damaged_tree(layout, "its head");
  Head& head = *medium.resolve(at);
  media::refresh(medium, head.made_with);
  if (head.made_with.load(std::memory_order_acquire) != Head::sizes)
    throw error("this " + std::string(layout) + " has another number of locks",
                "open it with the sizes that it was made with");
  if (!media::can_name(medium, at)) throw indexes::detail::damaged_tree(layout, "its head");
  return head;
}

}  // namespace pmlab::pod
