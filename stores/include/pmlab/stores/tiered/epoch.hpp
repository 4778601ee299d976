// Whether the parts of a store are of one moment: its manifest, the drive without manifests, the persistent memory.
//
// Each opening begins a session, with a manifest of its own: a moment (stores/moment.hpp). A part knows the session,
// the manifest that was about to be written at its last entry (promised), and one that was durable (confirmed). A
// manifest knows its session and the one before, which a part may have until the first manifest of the session is
// confirmed.
//
// (E1) < (E2) < (E3): a part has promised a manifest before that one is written, and confirms it when it is durable.
// So a crash leaves a part that has promised the manifest or a later one: less than that, and the part is older. It has
// confirmed the manifest or an earlier one: more than that, and the manifest is older, or its newest version is
// damaged.
//
// Persistent memory knows of each manifest. The other drive knows when a session begins and ends, and of each manifest
// that names keys or values on it: two writes of a block for these, none for a flush of the log. Groups of the log that
// a full staging drive sends to the other drive are no reason for an entry.
//
// A store of layout 2 has no epochs. (U1) < (U2) < (U3): the header of the other drive becomes one of layout 4, then a
// manifest has an epoch, then the drive of the manifests gets its header. So a program that knows layout 2 only refuses
// the store behind (U1), and a header with epochs beside a manifest without one is the sign of a damaged manifest.
//
// A store of layout 3 has other checksums. (U4) < (U5): the drive of the manifests gets its header of layout 4, then a
// manifest has the checksum of today. So a program that knows layout 3 only, to which that manifest and later groups of
// the log are torn writes, refuses the store instead of going on without them.
#pragma once

#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include <pmlab/stores/moment.hpp>
#include <pmlab/stores/tiered/drives.hpp>
#include <pmlab/stores/tiered/findings.hpp>
#include <pmlab/stores/tiered/layout.hpp>
#include <pmlab/stores/tiered/manifest.hpp>
#include <pmlab/stores/tiered/segment_io.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

namespace pmlab::stores::detail::tiered {

// Throws pmlab::error, or notes it: `part` and the manifest of `version` on `with_manifests` have different moments.
// `needs`: of the part.
inline void check_moment(const std::string& part, const std::string& with_manifests, const drive_epoch& known,
                         const manifest_epoch& named, std::uint64_t needs, std::uint64_t version, findings& found) {
  static const std::string remedy =
      "give drives and memory of one moment: restore all of them from one copy; option `read_only` opens what can be "
      "read";
  const moment has(known.session), wanted(named.session);
  const auto in_words = [](const moment& session, std::uint64_t manifest) {
    return " (session " + std::to_string(session.number()) + ", manifest " + std::to_string(manifest) + ")";
  };
  const std::string verb = with_manifests == "the drives" ? " are" : " is";
  const bool is_before =
      wanted.mark() != 0 && known.session == named.follows && known.promised >= named.opened && has != wanted;
  const bool is_older = has.number() < wanted.number() ? !is_before : has == wanted && known.promised < needs;
  if (named.session != 0 && (is_older || (is_before && known.promised < needs)))
    found.refuse(part + " is of an older moment" + in_words(has, known.promised) + " than " + with_manifests +
                     in_words(wanted, needs),
                 remedy);
  else if (known.confirmed > version)
    found.refuse(with_manifests + verb + " of an older moment (manifest " + std::to_string(version) + ") than " + part +
                     " (manifest " + std::to_string(known.confirmed) + "), or its newest manifest is damaged",
                 remedy);
  // A release before had numbers without marks, and gave the next one to a part before the manifest had it.
  else if (named.session != 0 && has != wanted && !is_before && (has.mark() != 0 || wanted.mark() != 0))
    found.refuse(part + in_words(has, known.promised) + " and " + with_manifests + in_words(wanted, version) +
                     " are of different moments: of two copies of the store that were both used",
                 remedy);
}

// The epoch of the drive without manifests. Thread safety: none.
template <blocks::device Device>
class epoch_keeper {
 public:
  // `with_manifests`: the class of the other drive.
  epoch_keeper(const drive_pair<Device>& on, media_class with_manifests) : own_(index_of(with_manifests)) {
    parts_[own_] = std::make_unique<part>(*on.devices[own_]);
    const std::size_t other = 1 - own_;
    if (on.devices[other] != nullptr && on.where.drives[other].blocks > 0)
      parts_[other] = std::make_unique<part>(*on.devices[other]);
  }

  // Reads it, and compares it with the manifest of `version`. Throws pmlab::error, or notes: see check_moment; the
  // epoch is damaged; the drive fails.
  void check(const manifest_epoch& named, std::uint64_t version, findings& found) {
    if (parts_[own_]->has_epochs() && !named.is_there)
      found.refuse("the newest manifest of the tiered store is damaged, and the one before is of an older layout",
                   "restore drives and memory from one copy; option `read_only` opens what can be read");
    if (parts_[1 - own_] == nullptr) return;
    if (const part& p = *parts_[1 - own_]; p.has_epochs()) {
      std::memcpy(&known_, p.block.data() + drive_epoch::offset, sizeof known_);
      if (!has_right_checksum(known_)) {
        known_ = {};
        found.refuse("the epoch in the header of " + name_of_part(1 - own_) + " is damaged",
                     "restore the drive; option `read_only` opens what can be read");
        return;
      }
    }
    check_moment(name_of_part(1 - own_), name_of_part(own_), known_, named, named.needs, version, found);
  }
  // Changes up to this sequence were durable at its last entry.
  [[nodiscard]] std::uint64_t durable() const noexcept { return known_.durable; }
  [[nodiscard]] std::string with_manifests() const { return name_of_part(own_); }

  // Durable on return.
  void enter(const drive_epoch& next) {
    if (parts_[1 - own_] != nullptr) parts_[1 - own_]->write(next);  // (U1), of a store of layout 2
  }
  // No manifest of this release is written yet.
  void begin_upgrade() {
    if (parts_[own_]->has_epochs() && parts_[own_]->header().version != drive_header::current_version)
      parts_[own_]->write({});  // (U4)
  }
  // A manifest with an epoch is durable, (U2), (U5).
  void upgrade() {
    if (parts_[own_]->header().version != drive_header::current_version) parts_[own_]->write({});  // (U3)
  }

 private:
  struct part {
    explicit part(Device& device) : drive(device), block(device.shape().block_bytes) { drive.read(0, block.bytes()); }
    [[nodiscard]] drive_header header() const noexcept {
      drive_header h;
      std::memcpy(&h, block.data(), sizeof h);
      return h;
    }
    [[nodiscard]] bool has_epochs() const noexcept {
      return header().version >= drive_header::first_version_with_epochs;
    }
    void write(const drive_epoch& e) {
      drive_header h = header();
      h.version = drive_header::current_version;
      put_header(block.bytes(), h, e);
      drive.write_durable(0, block.bytes(), blocks::stream::manifest);
    }
    blocks::synchronous<Device> drive;
    blocks::buffer block;
  };
  [[nodiscard]] static std::string name_of_part(std::size_t c) {
    return "the " +
           std::string(name_of(c == index_of(media_class::staging) ? drive_role::staging : drive_role::capacity)) +
           " drive";
  }

  std::size_t own_;
  std::array<std::unique_ptr<part>, classes> parts_{};
  drive_epoch known_{};
};

}  // namespace pmlab::stores::detail::tiered
