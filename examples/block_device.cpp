// A block device that survives kill -9: volumes of a chunk store, served over the NBD protocol on a Unix socket.
//
//   block_device POOL DRIVE serve SOCKET VOLUME=SIZE...   serves the volumes; sizes like 4096, 64M, 10G
//   block_device POOL DRIVE check                         walks all of the store: who owns which block
//
// POOL is a file on persistent memory (or /dev/shm), DRIVE a file or an NVMe device; both are made if they do not
// exist. Any NBD client attaches: qemu-img info 'nbd+unix:///vm1?socket=SOCKET', nbd-client -unix SOCKET -N vm1
// /dev/nbd0.
//
// A write is durable when its answer is sent, and atomic within each MiB of a volume. There is no shutdown: ending the
// process by any signal is the ordinary way. A connection has a thread; clients open several for more requests at a
// time.
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/file.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/stores/chunk_store.hpp>

#include <charconv>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace {

using pmlab::error;
namespace blocks = pmlab::blocks;
using store = pmlab::stores::chunk_store<pmlab::media::pmem, blocks::file>;
using volumes = std::map<std::string, store::volume_handle, std::less<>>;

// The NBD protocol, fixed newstyle (doc/proto.md of the nbd project). All numbers are big-endian.
namespace nbd {
constexpr std::uint64_t greeting = 0x4e42444d41474943;      // "NBDMAGIC"
constexpr std::uint64_t have_options = 0x49484156454f5054;  // "IHAVEOPT"
constexpr std::uint64_t option_answer = 0x0003e889045565a9;
constexpr std::uint32_t request = 0x25609513;
constexpr std::uint32_t answer = 0x67446698;
constexpr std::uint16_t fixed_newstyle = 1;
constexpr std::uint16_t no_zeroes = 2;
// Flush, force unit access, trim, write zeroes; several connections see each other's writes.
constexpr std::uint16_t export_flags = 1 | 4 | 8 | 32 | 64 | 256;
constexpr std::uint16_t no_hole = 2;  // flag of write_zeroes
constexpr std::uint32_t most_bytes = 32 << 20;
enum option : std::uint32_t { export_name = 1, abort = 2, list = 3, info = 6, go = 7 };
enum reply : std::uint32_t {
  acknowledged = 1,
  server = 2,
  information = 3,
  unsupported = (1U << 31) + 1,
  unknown = (1U << 31) + 6
};
enum command : std::uint16_t { read = 0, write = 1, disconnect = 2, flush = 3, trim = 4, write_zeroes = 6 };
enum failure : std::uint32_t { none = 0, io = 5, invalid = 22, no_space = 28, not_supported = 95 };
}  // namespace nbd

// The client has gone, or speaks no NBD.
struct hung_up {};

class connection {
 public:
  explicit connection(int socket) : socket_(socket) {}
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;
  ~connection() { ::close(socket_); }

  void receive(void* to, std::size_t bytes) {
    for (auto* at = static_cast<char*>(to); bytes > 0;) {
      const ssize_t got = ::recv(socket_, at, bytes, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) throw hung_up();
      at += got;
      bytes -= static_cast<std::size_t>(got);
    }
  }
  template <class Number>
  Number number() {
    unsigned char bytes[sizeof(Number)];
    receive(bytes, sizeof bytes);
    std::uint64_t value = 0;
    for (const unsigned char b : bytes) value = value << 8 | b;
    return static_cast<Number>(value);
  }
  std::string text(std::size_t bytes) {
    if (bytes > 4096) throw hung_up();
    std::string s(bytes, '\0');
    receive(s.data(), bytes);
    return s;
  }
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) throw hung_up();
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

 private:
  int socket_;
};

template <class... Numbers>
std::string packed(Numbers... numbers) {
  std::string bytes;
  const auto add = [&](auto n) {
    for (std::size_t i = sizeof n; i > 0; --i)
      bytes += static_cast<char>(static_cast<std::uint64_t>(n) >> (8 * i - 8) & 0xff);
  };
  (add(numbers), ...);
  return bytes;
}

// One client, on a thread of its own.
class session {
 public:
  session(int socket, store& s, const volumes& all) : client_(socket), store_(s), all_(all) {}

  void run() try {
    if (const store::volume_handle* chosen = negotiate()) serve(*chosen);
  } catch (const hung_up&) {
  } catch (const std::exception& e) {
    std::cerr << "block_device: a connection ended: " << e.what() << '\n';
  }

 private:
  // The volume that the client chose; nullptr: it left.
  const store::volume_handle* negotiate() {
    const auto own = static_cast<std::uint16_t>(nbd::fixed_newstyle | nbd::no_zeroes);
    client_.send(packed(nbd::greeting, nbd::have_options, own));
    const bool zeroes = (client_.number<std::uint32_t>() & nbd::no_zeroes) == 0;
    for (;;) {
      if (client_.number<std::uint64_t>() != nbd::have_options) throw hung_up();
      const auto option = client_.number<std::uint32_t>();
      const std::string data = client_.text(client_.number<std::uint32_t>());
      if (option == nbd::export_name) {
        const auto at = all_.find(data);
        if (at == all_.end()) return nullptr;  // the protocol has no other answer
        client_.send(packed(at->second.bytes(), nbd::export_flags) + std::string(zeroes ? 124 : 0, '\0'));
        return &at->second;
      }
      if (option == nbd::info || option == nbd::go) {
        const auto at = all_.find(name_in(data));
        if (at == all_.end()) {
          reply(option, nbd::unknown);
          continue;
        }
        reply(option, nbd::information, packed(std::uint16_t{0}, at->second.bytes(), nbd::export_flags));
        reply(option, nbd::information,
              packed(std::uint16_t{3}, store_.block_bytes(), store_.block_bytes(), nbd::most_bytes));
        reply(option, nbd::acknowledged);
        if (option == nbd::go) return &at->second;
      } else if (option == nbd::list) {
        for (const auto& [name, volume] : all_)
          reply(option, nbd::server, packed(static_cast<std::uint32_t>(name.size())) + name);
        reply(option, nbd::acknowledged);
      } else if (option == nbd::abort) {
        reply(option, nbd::acknowledged);
        return nullptr;
      } else {
        reply(option, nbd::unsupported);
      }
    }
  }

  void reply(std::uint32_t option, nbd::reply kind, const std::string& data = {}) {
    client_.send(
        packed(nbd::option_answer, option, static_cast<std::uint32_t>(kind), static_cast<std::uint32_t>(data.size())) +
        data);
  }

  // The name of an option: its length in four bytes, then the name.
  static std::string_view name_in(std::string_view data) {
    std::size_t length = 0;
    for (const char c : data.substr(0, 4)) length = length << 8 | static_cast<unsigned char>(c);
    return data.size() >= 4 ? data.substr(4, length) : data;
  }

  void serve(store::volume_handle volume) {
    for (;;) {
      if (client_.number<std::uint32_t>() != nbd::request) throw hung_up();
      const auto flags = client_.number<std::uint16_t>();
      const auto command = client_.number<std::uint16_t>();
      const auto cookie = client_.number<std::uint64_t>();
      const auto offset = client_.number<std::uint64_t>();
      const auto length = client_.number<std::uint32_t>();
      if (command == nbd::disconnect) return;
      const bool has_data = command == nbd::read || command == nbd::write;
      if (has_data && length > nbd::most_bytes) throw hung_up();
      if (has_data && length > data_.size()) data_ = blocks::buffer(length);
      const std::span<std::byte> data = has_data ? data_.bytes().first(length) : std::span<std::byte>();
      if (command == nbd::write) client_.receive(data.data(), length);
      const nbd::failure failed = perform(volume, command, flags, offset, length, data);
      client_.send(packed(nbd::answer, static_cast<std::uint32_t>(failed), cookie));
      if (command == nbd::read && failed == nbd::none)
        client_.send({reinterpret_cast<const char*>(data.data()), length});
    }
  }

  nbd::failure perform(store::volume_handle& volume, std::uint16_t command, std::uint16_t flags, std::uint64_t offset,
                       std::uint32_t length, std::span<std::byte> data) {
    const std::uint32_t block = store_.block_bytes();
    const bool whole = offset % block == 0 && length % block == 0;
    if (!whole || offset > volume.bytes() || length > volume.bytes() - offset)
      return command == nbd::write && whole ? nbd::no_space : nbd::invalid;
    try {
      switch (command) {
        case nbd::read: volume.read(offset, data); break;
        case nbd::write: volume.write(offset, data); break;
        case nbd::flush: break;  // what was answered is durable
        case nbd::trim: volume.discard(offset, length); break;
        case nbd::write_zeroes:
          // Zeros need no space, unless the client requests to keep it.
          if ((flags & nbd::no_hole) != 0) return nbd::not_supported;
          volume.discard(offset, length);
          break;
        default: return nbd::invalid;
      }
    } catch (const pmlab::stores::chunk_store_full&) {
      return nbd::no_space;
    } catch (const error& e) {
      std::cerr << "block_device: " << e.what() << '\n';
      return nbd::io;
    }
    return nbd::none;
  }

  connection client_;
  store& store_;
  const volumes& all_;
  blocks::buffer data_;
};

// "64M" is 67108864.
std::uint64_t bytes_of(std::string_view text) {
  constexpr std::string_view units = "KMGT";
  std::string_view digits = text;
  unsigned shift = 0;
  if (!text.empty())
    if (const std::size_t at = units.find(text.back()); at != std::string_view::npos) {
      shift = 10 * (static_cast<unsigned>(at) + 1);
      digits.remove_suffix(1);
    }
  std::uint64_t number = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (failed != std::errc() || end != digits.data() + digits.size() || number == 0 ||
      number > (std::uint64_t{1} << 50) >> shift)
    throw error("'" + std::string(text) + "' is no size", "write it like 4096, 64M or 10G");
  return number << shift;
}

using sizes = std::vector<std::pair<std::string, std::uint64_t>>;

sizes sizes_of(int count, char** words) {
  sizes all;
  for (int i = 0; i < count; ++i) {
    const std::string_view word = words[i];
    const std::size_t at = word.find('=');
    if (at == 0 || at == std::string_view::npos)
      throw error("'" + std::string(word) + "' names no volume with its size", "write it like vm1=10G");
    all.emplace_back(word.substr(0, at), bytes_of(word.substr(at + 1)));
  }
  return all;
}

// A new drive has space for its volumes and for writes that are redirected.
const std::string& made_drive(const std::string& path, const sizes& wanted) {
  if (std::filesystem::exists(path)) return path;
  std::uint64_t bytes = 64 << 20;
  for (const auto& [name, size] : wanted) bytes += size + size / 4;
  // Under another name until it is complete: a kill may come at any moment.
  const std::string incomplete = path + ".new";
  std::filesystem::remove(incomplete);
  blocks::create_file(incomplete, bytes / 4096 * 4096);
  std::filesystem::rename(incomplete, path);
  return path;
}

int listening(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    throw error("the name " + path + " is too long for a socket", "choose a shorter one");
  std::memcpy(address.sun_path, path.data(), path.size());
  // A process that was killed may have left one. The pool is locked: no other process serves it.
  if (std::filesystem::is_socket(path)) std::filesystem::remove(path);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 || ::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener, 64) != 0)
    throw error("cannot listen at " + path + ": " + std::strerror(errno), "check the path and its permissions");
  return listener;
}

void serve(store& s, const std::string& socket, const sizes& wanted) {
  volumes all;
  for (const auto& [name, bytes] : wanted) all.emplace(name, s.volume(name, {.bytes = bytes}));
  const int listener = listening(socket);
  for (const auto& [name, volume] : all) std::cout << name << ": " << volume.bytes() << " bytes\n";
  std::cout << "serving at " << socket << std::endl;
  for (;;) {
    const int client = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (client < 0) throw error(std::string("cannot accept a client: ") + std::strerror(errno), "end some clients");
    std::thread([client, &s, &all] { session(client, s, all).run(); }).detach();
  }
}

int check(store& s) {
  const pmlab::indexes::check_report report = s.check();
  for (const std::string& problem : report.violations) std::cout << problem << '\n';
  const auto now = s.stats();
  std::cout << now.chunks << " chunks, " << now.free_bytes << " bytes free, " << (report.ok() ? "all well" : "damaged")
            << '\n';
  return report.ok() ? 0 : 1;
}

int run(int count, char** arguments) {
  const std::string_view command = count > 3 ? arguments[3] : "";
  if (!(command == "serve" && count > 5) && !(command == "check" && count == 4)) {
    std::cerr << "usage: block_device POOL DRIVE serve SOCKET VOLUME=SIZE... | check\n";
    return 2;
  }
  const bool serves = command == "serve";
  const sizes wanted = serves ? sizes_of(count - 5, arguments + 5) : sizes();
  std::uint64_t bytes = 0;
  for (const auto& [name, size] : wanted) bytes += size;
  // A chunk of a MiB has at most 1.3 KB of records and maps.
  pmlab::media::pmem pool(arguments[1], {.create_bytes = serves ? (64 << 20) + bytes / 256 : 0});
  const std::string drive_path = arguments[2];
  blocks::file drive(serves ? made_drive(drive_path, wanted) : drive_path);
  store s = store::open(pool, drive);
  if (!serves) return check(s);
  serve(s, arguments[4], wanted);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run(count, arguments);
  } catch (const std::exception& e) {
    std::cerr << "block_device: error: " << e.what() << '\n';
    return 1;
  }
}
