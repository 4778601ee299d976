/* The SNIA Key Value Storage API in C, as libpmlab_kvssd.so provides it: a key-value SSD in a file.
 *
 *   kvs_open_device("/mnt/kv.drive?size=1G", &device);
 *   kvs_create_key_space(device, &name, 0, option);  kvs_open_key_space(device, "orders", &space);
 *   kvs_store_kvp(space, &key, &value, NULL);
 *
 * Programs that were written for this API compile against this header, and link with -lpmlab_kvssd. Names, types and
 * numbers come from the API; what each of them does here: docs/kv-ssd.md.
 *
 * Thread safety: every function from any thread; a handle is not closed while another thread uses it. Asynchronous
 * functions return when the request is accepted, and call `post_fn` from a thread of the library. The buffers of a
 * request belong to it until then. Closing waits for the requests that were accepted; a callback cannot close
 * (KVS_ERR_SYS_IO). A forked child has no handle of its parent: their use is KVS_ERR_DEV_NOT_EXIST or
 * KVS_ERR_KS_NOT_EXIST.
 * Durability: a store or delete that has succeeded survives the end of the process and a power failure. */
#ifndef PMLAB_KVSSD_KVS_API_H
#define PMLAB_KVSSD_KVS_API_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- limits */

#define KVS_MIN_KEY_LENGTH 4 /* bytes; 1 for a device that was made with mode=nvme, whose longest key has 16 */
#define KVS_MAX_KEY_LENGTH 255
#define KVS_MIN_VALUE_LENGTH 0
#define KVS_MAX_VALUE_LENGTH (2 * 1024 * 1024)
#define KVS_OPTIMAL_VALUE_LENGTH 4096
#define KVS_ALIGNMENT_UNIT 512 /* of the offset of a retrieve */
#define KVS_VALUE_LENGTH_ALIGNMENT_UNIT 4
#define KVS_MAX_ITERATE_HANDLE 16 /* open iterators of a device */
#define KVS_MAX_KEY_GROUP_BYTES 4
#define KVS_ITERATOR_BUFFER_SIZE (32 * 1024)
#define MAX_KEYSPACE_NAME_LEN 255

/* ---- results */

typedef enum {
  KVS_SUCCESS = 0,
  KVS_ERR_BUFFER_SMALL = 0x001,     /* the caller's buffer does not hold all of it */
  KVS_ERR_DEV_CAPAPCITY = 0x002,    /* the device has no space (the API spells it so) */
  KVS_ERR_DEV_NOT_EXIST = 0x003,    /* no such file, or no such handle */
  KVS_ERR_KS_CAPACITY = 0x004,      /* the key space or the device is full; nothing has changed */
  KVS_ERR_KS_EXIST = 0x005,         /* the name is taken */
  KVS_ERR_KS_INDEX = 0x006,         /* beyond the last key space */
  KVS_ERR_KS_NAME = 0x007,          /* empty, too long, or with a 0 within */
  KVS_ERR_KS_NOT_EXIST = 0x008,     /* no such key space or handle */
  KVS_ERR_KS_NOT_OPEN = 0x009,      /* the handle was closed, and its device was not */
  KVS_ERR_KS_OPEN = 0x00A,          /* it is open already */
  KVS_ERR_ITERATOR_FILTER_INVALID = 0x00B, /* the pattern has bits that the mask does not have */
  KVS_ERR_ITERATOR_MAX = 0x00C,     /* 16 are open */
  KVS_ERR_ITERATOR_NOT_EXIST = 0x00D,
  KVS_ERR_ITERATOR_OPEN = 0x00E,    /* one with this filter is open */
  KVS_ERR_KEY_LENGTH_INVALID = 0x00F,
  KVS_ERR_KEY_NOT_EXIST = 0x010,
  KVS_ERR_OPTION_INVALID = 0x011,   /* a value that the option does not have, or has not here */
  KVS_ERR_PARAM_INVALID = 0x012,    /* a pointer that must not be NULL */
  KVS_ERR_SYS_IO = 0x013,           /* the drive failed, or a record is damaged */
  KVS_ERR_VALUE_LENGTH_INVALID = 0x014,
  KVS_ERR_VALUE_OFFSET_INVALID = 0x015,    /* beyond the end of the value */
  KVS_ERR_VALUE_OFFSET_MISALIGNED = 0x016, /* no multiple of KVS_ALIGNMENT_UNIT */
  KVS_ERR_VALUE_UPDATE_NOT_ALLOWED = 0x017, /* the key exists, and the store must not overwrite */
  KVS_ERR_DEV_NOT_OPENED = 0x018
} kvs_result;

/* ---- options */

typedef enum {
  KVS_CMD_DELETE = 0x01,
  KVS_CMD_DELETE_GROUP = 0x02,
  KVS_CMD_EXIST = 0x03,
  KVS_CMD_ITER_CREATE = 0x04,
  KVS_CMD_ITER_DELETE = 0x05,
  KVS_CMD_ITER_NEXT = 0x06,
  KVS_CMD_RETRIEVE = 0x07,
  KVS_CMD_STORE = 0x08
} kvs_context;

typedef enum { KVS_KEY_ORDER_NONE = 0, KVS_KEY_ORDER_ASCEND = 1, KVS_KEY_ORDER_DESCEND = 2 } kvs_key_order;

typedef struct {
  kvs_key_order ordering; /* KVS_KEY_ORDER_NONE; the others: KVS_ERR_OPTION_INVALID */
} kvs_option_key_space;

typedef struct {
  bool kvs_delete_error; /* an absent key is KVS_ERR_KEY_NOT_EXIST, not success */
} kvs_option_delete;

typedef enum { KVS_ITERATOR_KEY = 0, KVS_ITERATOR_KEY_VALUE = 1 } kvs_iterator_type;

typedef struct {
  kvs_iterator_type iter_type;
} kvs_option_iterator;

typedef struct {
  bool kvs_retrieve_delete; /* deletes the pair that it returns, in one step */
} kvs_option_retrieve;

typedef enum {
  KVS_STORE_POST = 0,        /* present or not */
  KVS_STORE_UPDATE_ONLY = 1, /* must be present */
  KVS_STORE_NOOVERWRITE = 2, /* must be absent */
  KVS_STORE_APPEND = 3       /* adds to the end of the value */
} kvs_store_type;

typedef enum { KVS_NOASSOCIATION = 0, KVS_ASSOCIATION_STREAM = 1 } kvs_association_type;

typedef struct {
  kvs_association_type assoc_type;
  uint16_t assoc_hint;
} kvs_association;

typedef struct {
  kvs_store_type st_type;
  kvs_association *assoc; /* a hint; may be NULL */
} kvs_option_store;

/* ---- data */

typedef struct {
  uint8_t major, minor, micro;
} kvs_api_version;

typedef struct {
  void *key;
  uint16_t length; /* bytes */
} kvs_key;

typedef struct {
  void *value;
  uint32_t length;            /* of the buffer; after a retrieve, bytes in it */
  uint32_t actual_value_size; /* after a retrieve: of the value that is stored */
  uint32_t offset;            /* a retrieve begins there */
} kvs_value;

struct _kvs_device_handle;
struct _kvs_key_space_handle;
typedef struct _kvs_device_handle *kvs_device_handle;
typedef struct _kvs_key_space_handle *kvs_key_space_handle;
typedef uint8_t kvs_iterator_handle;

typedef struct {
  uint32_t name_len;
  char *name;
} kvs_key_space_name;

typedef struct {
  bool opened;
  uint64_t capacity;  /* bytes */
  uint64_t free_size; /* bytes */
  uint64_t count;     /* pairs */
  kvs_key_space_name *name;
} kvs_key_space;

typedef struct {
  uint64_t capacity;         /* bytes */
  uint64_t unalloc_capacity; /* bytes that no key space has reserved */
  uint32_t max_value_len;
  uint32_t max_key_len;
  uint32_t optimal_value_len;
  uint32_t optimal_value_granularity;
  void *extended_info; /* NULL */
} kvs_device;

typedef struct {
  uint32_t num_keys;
  kvs_key *keys;
  uint32_t length;        /* bytes of result_buffer */
  uint8_t *result_buffer; /* a bit for each key, the first one in the lowest bit of byte 0 */
} kvs_exist_list;

/* The keys whose first four bytes, masked, are the pattern. */
typedef struct {
  uint8_t bitmask[KVS_MAX_KEY_GROUP_BYTES];
  uint8_t bit_pattern[KVS_MAX_KEY_GROUP_BYTES];
} kvs_key_group_filter;

/* Entries follow each other: a uint32_t with the length of the key, the key; with KVS_ITERATOR_KEY_VALUE a uint32_t with
 * the length of the value, the value. */
typedef struct {
  uint32_t num_entries;
  bool end;      /* there are no more */
  uint32_t size; /* bytes of it_list; afterwards, bytes in it */
  uint8_t *it_list;
} kvs_iterator_list;

/* A request that has ended, as its callback receives it. */
typedef struct {
  kvs_context context;
  kvs_key_space_handle ks_hd;
  kvs_key *key;
  kvs_value *value;
  void *option;
  void *private1;
  void *private2;
  kvs_result result;
  kvs_iterator_handle iter_hd;
  union {
    kvs_iterator_list *iter_list;
    kvs_exist_list *list;
  } result_buffer;
} kvs_postprocess_context;

typedef void (*kvs_postprocess_function)(kvs_postprocess_context *ctx);

typedef struct {
  uint16_t key_len;
  uint8_t *key; /* the caller's buffer, of KVS_MAX_KEY_LENGTH bytes */
  uint32_t value_len;
} kvs_kvp_info;

/* ---- devices. URI: the path of the backing file, and ?size=1G to make it, &profile=NAME to model a drive's time. */

kvs_result kvs_open_device(char *URI, kvs_device_handle *dev_hd);
kvs_result kvs_close_device(kvs_device_handle dev_hd);
kvs_result kvs_get_device_info(kvs_device_handle dev_hd, kvs_device *dev_info);
kvs_result kvs_get_device_capacity(kvs_device_handle dev_hd, uint64_t *dev_capacity);
/* 0 to 10000: hundredths of a percent. */
kvs_result kvs_get_device_utilization(kvs_device_handle dev_hd, uint32_t *dev_utilization);
kvs_result kvs_get_min_key_length(kvs_device_handle dev_hd, uint32_t *min_key_length);
kvs_result kvs_get_max_key_length(kvs_device_handle dev_hd, uint32_t *max_key_length);
kvs_result kvs_get_min_value_length(kvs_device_handle dev_hd, uint32_t *min_value_length);
kvs_result kvs_get_max_value_length(kvs_device_handle dev_hd, uint32_t *max_value_length);
kvs_result kvs_get_optimal_value_length(kvs_device_handle dev_hd, uint32_t *opt_value_length);

/* ---- key spaces */

/* size: bytes of keys and values; 0: as many as the device has. */
kvs_result kvs_create_key_space(kvs_device_handle dev_hd, kvs_key_space_name *key_space_name, uint64_t size,
                                kvs_option_key_space opt);
kvs_result kvs_delete_key_space(kvs_device_handle dev_hd, kvs_key_space_name *key_space_name);
/* buffer_size: bytes of the array `names`: as many names as it has elements, from number `index` on; ks_cnt: how many.
 * Without room for one: KVS_ERR_BUFFER_SMALL. Each element has a buffer for its name of MAX_KEYSPACE_NAME_LEN + 1 bytes,
 * or NULL; name_len is set, and not read. */
kvs_result kvs_list_key_spaces(kvs_device_handle dev_hd, uint32_t index, uint32_t buffer_size,
                               kvs_key_space_name *names, uint32_t *ks_cnt);
kvs_result kvs_open_key_space(kvs_device_handle dev_hd, char *name, kvs_key_space_handle *ks_hd);
kvs_result kvs_close_key_space(kvs_key_space_handle ks_hd);
/* ks->name: as an element of kvs_list_key_spaces, or NULL. */
kvs_result kvs_get_key_space_info(kvs_key_space_handle ks_hd, kvs_key_space *ks);

/* ---- pairs. Options may be NULL: the first value of each. */

kvs_result kvs_get_kvp_info(kvs_key_space_handle ks_hd, kvs_key *key, kvs_kvp_info *info);
kvs_result kvs_retrieve_kvp(kvs_key_space_handle ks_hd, kvs_key *key, kvs_option_retrieve *opt, kvs_value *value);
kvs_result kvs_retrieve_kvp_async(kvs_key_space_handle ks_hd, kvs_key *key, kvs_option_retrieve *opt, void *private1,
                                  void *private2, kvs_value *value, kvs_postprocess_function post_fn);
kvs_result kvs_store_kvp(kvs_key_space_handle ks_hd, kvs_key *key, kvs_value *value, kvs_option_store *opt);
kvs_result kvs_store_kvp_async(kvs_key_space_handle ks_hd, kvs_key *key, kvs_value *value, kvs_option_store *opt,
                               void *private1, void *private2, kvs_postprocess_function post_fn);
kvs_result kvs_delete_kvp(kvs_key_space_handle ks_hd, kvs_key *key, kvs_option_delete *opt);
kvs_result kvs_delete_kvp_async(kvs_key_space_handle ks_hd, kvs_key *key, kvs_option_delete *opt, void *private1,
                                void *private2, kvs_postprocess_function post_fn);
kvs_result kvs_delete_key_group(kvs_key_space_handle ks_hd, kvs_key_group_filter *grp_fltr);
kvs_result kvs_delete_key_group_async(kvs_key_space_handle ks_hd, kvs_key_group_filter *grp_fltr, void *private1,
                                      void *private2, kvs_postprocess_function post_fn);
kvs_result kvs_exist_kv_pairs(kvs_key_space_handle ks_hd, uint32_t key_cnt, kvs_key *keys, kvs_exist_list *list);
kvs_result kvs_exist_kv_pairs_async(kvs_key_space_handle ks_hd, uint32_t key_cnt, kvs_key *keys, kvs_exist_list *list,
                                    void *private1, void *private2, kvs_postprocess_function post_fn);

/* ---- iterators: never a deleted key, none twice, each key that was there throughout. */

kvs_result kvs_create_iterator(kvs_key_space_handle ks_hd, kvs_option_iterator *iter_op,
                               kvs_key_group_filter *iter_fltr, kvs_iterator_handle *iter_hd);
kvs_result kvs_delete_iterator(kvs_key_space_handle ks_hd, kvs_iterator_handle iter_hd);
kvs_result kvs_iterate_next(kvs_key_space_handle ks_hd, kvs_iterator_handle iter_hd, kvs_iterator_list *iter_list);
kvs_result kvs_iterate_next_async(kvs_key_space_handle ks_hd, kvs_iterator_handle iter_hd,
                                  kvs_iterator_list *iter_list, void *private1, void *private2,
                                  kvs_postprocess_function post_fn);

/* ---- beyond the API */

/* Why the last function of the calling thread failed that returned KVS_ERR_DEV_NOT_EXIST or KVS_ERR_SYS_IO: names the
 * thing and the remedy. Valid until the thread's next call. */
const char *pmlab_kvssd_message(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
