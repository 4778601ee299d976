/* Pairs on a key-value SSD in a file, through the SNIA Key Value Storage API, in C.
 *
 *   kv_ssd URI put KEY VALUE | get KEY | delete KEY | list PREFIX
 *
 * URI is the path of the backing file; URI?size=64M makes it. A key has 4 to 255 bytes, PREFIX exactly 4. What `put` has
 * stored survives kill -9 and, with the memory file on persistent memory, a power failure.
 *
 * Build it with -lpmlab_kvssd. Nothing of pmlab but the header pmlab/kvssd/kvs_api.h is needed. */
#include <pmlab/kvssd/kvs_api.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what, kvs_result result) {
  const char *why = pmlab_kvssd_message();
  fprintf(stderr, "kv_ssd: error: %s (0x%03x); %s\n", what, (unsigned)result,
          *why ? why : "pmlab/kvssd/kvs_api.h has the meaning of the number");
  return 1;
}

static kvs_key key_of(char *text) {
  kvs_key key = {text, (uint16_t)strlen(text)};
  return key;
}

static int put(kvs_key_space_handle space, char *text, char *value) {
  kvs_key key = key_of(text);
  kvs_value v = {value, (uint32_t)strlen(value), 0, 0};
  kvs_result result = kvs_store_kvp(space, &key, &v, NULL);
  return result == KVS_SUCCESS ? 0 : fail("put", result);
}

static int get(kvs_key_space_handle space, char *text) {
  kvs_key key = key_of(text);
  kvs_kvp_info info = {0, NULL, 0};
  kvs_result result = kvs_get_kvp_info(space, &key, &info);
  if (result == KVS_ERR_KEY_NOT_EXIST) {
    fprintf(stderr, "kv_ssd: error: there is no key %s; `list` shows the keys\n", text);
    return 1;
  }
  if (result != KVS_SUCCESS) return fail("get", result);
  kvs_value v = {malloc(info.value_len + 1), info.value_len, 0, 0};
  if (v.value == NULL) return fail("get", KVS_ERR_BUFFER_SMALL);
  result = kvs_retrieve_kvp(space, &key, NULL, &v);
  if (result == KVS_SUCCESS) printf("%.*s\n", (int)v.length, (char *)v.value);
  free(v.value);
  return result == KVS_SUCCESS ? 0 : fail("get", result);
}

static int delete_key(kvs_key_space_handle space, char *text) {
  kvs_key key = key_of(text);
  kvs_option_delete option = {true};
  kvs_result result = kvs_delete_kvp(space, &key, &option);
  return result == KVS_SUCCESS ? 0 : fail("delete", result);
}

static int list(kvs_key_space_handle space, const char *prefix) {
  kvs_key_group_filter filter;
  kvs_iterator_handle iterator;
  if (strlen(prefix) != KVS_MAX_KEY_GROUP_BYTES) return fail("a prefix has 4 bytes", KVS_ERR_ITERATOR_FILTER_INVALID);
  memset(filter.bitmask, 0xff, sizeof filter.bitmask);
  memcpy(filter.bit_pattern, prefix, sizeof filter.bit_pattern);
  kvs_result result = kvs_create_iterator(space, NULL, &filter, &iterator);
  if (result != KVS_SUCCESS) return fail("list", result);
  static uint8_t buffer[KVS_ITERATOR_BUFFER_SIZE];
  kvs_iterator_list entries = {0, false, 0, buffer};
  do {
    entries.size = sizeof buffer;
    result = kvs_iterate_next(space, iterator, &entries);
    const uint8_t *at = buffer;
    for (uint32_t i = 0; result == KVS_SUCCESS && i < entries.num_entries; ++i) {
      uint32_t length;
      memcpy(&length, at, sizeof length);
      printf("%.*s\n", (int)length, (const char *)at + sizeof length);
      at += sizeof length + length;
    }
  } while (result == KVS_SUCCESS && !entries.end);
  kvs_delete_iterator(space, iterator);
  return result == KVS_SUCCESS ? 0 : fail("list", result);
}

static int run(kvs_key_space_handle space, int count, char **words) {
  if (count == 3 && strcmp(words[0], "put") == 0) return put(space, words[1], words[2]);
  if (count == 2 && strcmp(words[0], "get") == 0) return get(space, words[1]);
  if (count == 2 && strcmp(words[0], "delete") == 0) return delete_key(space, words[1]);
  if (count == 2 && strcmp(words[0], "list") == 0) return list(space, words[1]);
  fprintf(stderr, "usage: kv_ssd URI put KEY VALUE | get KEY | delete KEY | list PREFIX\n");
  return 2;
}

int main(int argc, char **argv) {
  char name[] = "pairs";
  kvs_key_space_name space_name = {sizeof name - 1, name};
  kvs_option_key_space unordered = {KVS_KEY_ORDER_NONE};
  kvs_device_handle device;
  kvs_key_space_handle space;
  if (argc < 3) return run(NULL, 0, NULL);
  kvs_result result = kvs_open_device(argv[1], &device);
  if (result != KVS_SUCCESS) return fail("cannot open the device", result);
  result = kvs_create_key_space(device, &space_name, 0, unordered);
  if (result == KVS_SUCCESS || result == KVS_ERR_KS_EXIST) result = kvs_open_key_space(device, name, &space);
  const int status = result == KVS_SUCCESS ? run(space, argc - 2, argv + 2) : fail("no key space", result);
  kvs_close_device(device);
  return status;
}
