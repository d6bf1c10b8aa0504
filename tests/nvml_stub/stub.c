/* A driver library made of a text file: what pynvml calls, answered from the file named by NVML_STUB_STATE.
 *
 * The file is read again at each call, so a test changes the machine by replacing it. Lines:
 *   init CODE                          answer of nvmlInitWithFlags
 *   every CODE                         answer of every other call
 *   missing SYMBOL                     that call answers "function not found"
 *   block NTH SECONDS                  the NTH memory call of this process (0: every one) hangs, until the line goes
 *   device UUID TOTAL USED RESERVED FAIL FAIL_MEMORY BUSY NAME...    BUSY -1: not supported
 *   part UUID PARENT PLACE TOTAL USED ...                            an instance of a device, the rest as above
 *   mig UUID                           MIG is on there
 *   compute|graphics|mps UUID PID BYTES GPU_INSTANCE COMPUTE_INSTANCE    BYTES -1: not told
 *   sm UUID PID PERCENT
 *   limits CODE                        what may be done with limits per group: 0 all, else that answer to setting one
 *   group PATH BYTES                   what a control group uses on any device
 * Limits that are set are kept in the file of that name with ".limits" behind it, one "UUID PATH SOFT HARD" a line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
#define MANY 64
#define NO_LIMIT (~0ULL)
enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, UNSUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7,
       NO_FUNCTION = 13, LOST = 15 };

typedef unsigned long long u64;
typedef struct { unsigned pid; u64 used; unsigned gi, ci; } process_t;
typedef struct { unsigned pid; u64 stamp; unsigned sm, mem, enc, dec; } sample_t;
typedef struct {
    char uuid[80], name[96], parent[80];
    long long total, used, reserved;
    int fail, fail_memory, busy, place;
} device_t;
typedef struct { int kind; char uuid[80]; long long pid, bytes; unsigned gi, ci; } entry_t;
typedef struct {
    int init, every, devices, entries, missing, block_nth, limits, migs;
    double block_s;
    char names[16][64], mig[MANY][80];
    device_t device[MANY];
    entry_t entry[512];
} state_t;

static char handles[MANY][80]; /* a handle is a place in this list: it stays with its UUID */
static int known;
static pid_t owner;
static int memory_calls;

static state_t *state(void) {
    static __thread state_t s;
    char line[512], word[64];
    memset(&s, 0, sizeof s);
    const char *path = getenv("NVML_STUB_STATE");
    FILE *f = path ? fopen(path, "r") : NULL;
    if (!f) { s.init = 9; s.every = 9; return &s; }
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%63s", word) != 1) continue;
        const char *rest = line + strlen(word);
        if (!strcmp(word, "init")) s.init = atoi(rest);
        else if (!strcmp(word, "every")) s.every = atoi(rest);
        else if (!strcmp(word, "missing") && s.missing < 16) sscanf(rest, "%63s", s.names[s.missing++]);
        else if (!strcmp(word, "limits")) s.limits = atoi(rest);
        else if (!strcmp(word, "group")) continue;
        else if (!strcmp(word, "block")) sscanf(rest, "%d %lf", &s.block_nth, &s.block_s);
        else if (!strcmp(word, "device") && s.devices < MANY) {
            device_t *d = &s.device[s.devices++];
            sscanf(rest, "%79s %lld %lld %lld %d %d %d %95[^\n]", d->uuid, &d->total, &d->used, &d->reserved,
                   &d->fail, &d->fail_memory, &d->busy, d->name);
        } else if (!strcmp(word, "mig") && s.migs < MANY) sscanf(rest, "%79s", s.mig[s.migs++]);
        else if (!strcmp(word, "part") && s.devices < MANY) { /* behind the devices, which are counted */
            device_t *d = &s.device[s.devices++];
            sscanf(rest, "%79s %79s %d %lld %lld %lld %d %d %d %95[^\n]", d->uuid, d->parent, &d->place, &d->total,
                   &d->used, &d->reserved, &d->fail, &d->fail_memory, &d->busy, d->name);
        } else if (s.entries < 512) {
            entry_t *e = &s.entry[s.entries++];
            e->kind = word[0];
            sscanf(rest, "%79s %lld %lld %u %u", e->uuid, &e->pid, &e->bytes, &e->gi, &e->ci);
        }
    }
    fclose(f);
    return &s;
}

static int refuse(state_t *s, const char *name) {
    if (owner != getpid()) return UNINITIALIZED;
    if (s->every) return s->every;
    for (int i = 0; i < s->missing; i++)
        if (!strcmp(s->names[i], name)) return NO_FUNCTION;
    return OK;
}

static int reach(state_t *s, void *handle, const char *name, device_t **found) {
    int code = refuse(s, name);
    if (code) return code;
    long place = (long)handle - 1;
    if (place < 0 || place >= known) return INVALID;
    for (int i = 0; i < s->devices; i++)
        if (!strcmp(s->device[i].uuid, handles[place])) {
            *found = &s->device[i];
            return s->device[i].fail;
        }
    return LOST;
}

static int handle_of(const char *uuid, void **handle) {
    int place = 0;
    while (place < known && strcmp(handles[place], uuid)) place++;
    if (place == MANY) return INVALID;
    if (place == known) strcpy(handles[known++], uuid);
    *handle = (void *)(long)(place + 1);
    return OK;
}

API int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    int code = state()->init;
    if (!code) owner = getpid();
    return code;
}
API int nvmlShutdown(void) { owner = 0; return OK; }

API const char *nvmlErrorString(int code) {
    switch (code) {
    case 1: return "Uninitialized";
    case 3: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case 9: return "Driver Not Loaded";
    case 13: return "Function Not Found";
    case 15: return "GPU is lost";
    case 18: return "Driver/library version mismatch";
    default: return "Unknown Error";
    }
}

API int nvmlDeviceGetCount_v2(unsigned *count) {
    state_t *s = state();
    int code = refuse(s, "nvmlDeviceGetCount_v2");
    *count = 0;
    for (int i = 0; i < s->devices; i++) *count += !s->device[i].parent[0];
    return code;
}

API int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    state_t *s = state();
    int code = refuse(s, "nvmlDeviceGetHandleByIndex_v2");
    if (code) return code;
    if ((int)index >= s->devices) return INVALID;
    return s->device[index].fail ? s->device[index].fail : handle_of(s->device[index].uuid, handle);
}

API int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) {
    state_t *s = state();
    int code = refuse(s, "nvmlDeviceGetHandleByUUID");
    if (code) return code;
    for (int i = 0; i < s->devices; i++)
        if (!strcmp(s->device[i].uuid, uuid)) return s->device[i].fail ? s->device[i].fail : handle_of(uuid, handle);
    return NOT_FOUND;
}

static int text_of(void *handle, const char *call, int uuid, char *text, unsigned length) {
    device_t *d;
    int code = reach(state(), handle, call, &d);
    if (!code) snprintf(text, length, "%s", uuid ? d->uuid : d->name);
    return code;
}
API int nvmlDeviceGetUUID(void *h, char *text, unsigned n) { return text_of(h, "nvmlDeviceGetUUID", 1, text, n); }
API int nvmlDeviceGetName(void *h, char *text, unsigned n) { return text_of(h, "nvmlDeviceGetName", 0, text, n); }

static int memory_of(void *handle, const char *call, device_t **d) {
    int mine = ++memory_calls;
    state_t *s = state();
    for (double waited = 0; (!s->block_nth || s->block_nth == mine) && waited < s->block_s; waited += 0.02) {
        struct timespec pause = {0, 20000000};
        nanosleep(&pause, NULL);
        s = state();
    }
    int code = reach(s, handle, call, d);
    return code ? code : (*d)->fail_memory;
}

API int nvmlDeviceGetMemoryInfo(void *handle, u64 *out) { /* total, free, used: the reserved part is in used */
    device_t *d;
    int code = memory_of(handle, "nvmlDeviceGetMemoryInfo", &d);
    if (code) return code;
    out[0] = d->total;
    out[1] = d->total - d->used - d->reserved;
    out[2] = d->used + d->reserved;
    return OK;
}

#ifndef WITHOUT_MEMORY_V2
typedef struct { unsigned version; u64 total, reserved, free, used; } memory2_t;
API int nvmlDeviceGetMemoryInfo_v2(void *handle, memory2_t *out) {
    device_t *d;
    int code = memory_of(handle, "nvmlDeviceGetMemoryInfo_v2", &d);
    if (code) return code;
    if (out->version != 0x02000028) return 25;
    out->total = d->total;
    out->reserved = d->reserved;
    out->free = d->total - d->used - d->reserved;
    out->used = d->used;
    return OK;
}
#endif

static int listed(void *handle, const char *call, int kind, unsigned *count, process_t *out) {
    device_t *d;
    state_t *s = state();
    int code = reach(s, handle, call, &d);
    if (code) return code;
    unsigned n = 0, room = *count;
    for (int i = 0; i < s->entries; i++) {
        entry_t *e = &s->entry[i];
        if (e->kind != kind || strcmp(e->uuid, d->uuid)) continue;
        if (out && n < room) out[n] = (process_t){(unsigned)e->pid, e->bytes < 0 ? ~0ULL : (u64)e->bytes, e->gi, e->ci};
        n++;
    }
    *count = n;
    return n > room ? TOO_SMALL : OK;
}
#define LISTS(call, kind) \
    API int call##_v3(void *h, unsigned *n, process_t *out) { return listed(h, #call "_v3", kind, n, out); } \
    API int call##_v2(void *h, unsigned *n, process_t *out) { return listed(h, #call "_v2", kind, n, out); }
LISTS(nvmlDeviceGetComputeRunningProcesses, 'c')
LISTS(nvmlDeviceGetGraphicsRunningProcesses, 'g')
LISTS(nvmlDeviceGetMPSComputeRunningProcesses, 'm')

/* The oldest form tells no instance. */
typedef struct { unsigned pid; u64 used; } first_t;
static int listed_first(void *handle, const char *call, int kind, unsigned *count, first_t *out) {
    process_t found[128];
    unsigned room = *count, n = 128;
    int code = listed(handle, call, kind, &n, found);
    if (code) return code;
    for (unsigned i = 0; out && i < n && i < room; i++) out[i] = (first_t){found[i].pid, found[i].used};
    *count = n;
    return n > room ? TOO_SMALL : OK;
}
#define FIRST(call, kind) \
    API int call(void *h, unsigned *n, first_t *out) { return listed_first(h, #call, kind, n, out); }
FIRST(nvmlDeviceGetComputeRunningProcesses, 'c')
FIRST(nvmlDeviceGetGraphicsRunningProcesses, 'g')
FIRST(nvmlDeviceGetMPSComputeRunningProcesses, 'm')

API int nvmlDeviceGetMigMode(void *handle, unsigned *now, unsigned *pending) {
    device_t *d;
    state_t *s = state();
    int code = reach(s, handle, "nvmlDeviceGetMigMode", &d);
    if (code) return code;
    *now = 0;
    for (int i = 0; i < s->migs; i++) *now |= !strcmp(s->mig[i], d->uuid);
    *pending = *now;
    return OK;
}

API int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned *count) {
    device_t *d;
    *count = 7;
    return reach(state(), handle, "nvmlDeviceGetMaxMigDeviceCount", &d);
}

API int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned place, void **part) {
    device_t *d;
    state_t *s = state();
    int code = reach(s, handle, "nvmlDeviceGetMigDeviceHandleByIndex", &d);
    if (code) return code;
    for (int i = 0; i < s->devices; i++)
        if (!strcmp(s->device[i].parent, d->uuid) && s->device[i].place == (int)place)
            return handle_of(s->device[i].uuid, part);
    return NOT_FOUND;
}

API int nvmlDeviceGetUtilizationRates(void *handle, unsigned *out) {
    device_t *d;
    int code = reach(state(), handle, "nvmlDeviceGetUtilizationRates", &d);
    if (code) return code;
    if (d->busy < 0) return UNSUPPORTED;
    out[0] = d->busy;
    out[1] = 0;
    return OK;
}

API int nvmlDeviceGetProcessUtilization(void *handle, sample_t *out, unsigned *count, u64 since) {
    device_t *d;
    state_t *s = state();
    int code = reach(s, handle, "nvmlDeviceGetProcessUtilization", &d);
    if (code) return code;
    unsigned n = 0, room = *count;
    for (int i = 0; i < s->entries; i++) {
        entry_t *e = &s->entry[i];
        if (e->kind != 's' || strcmp(e->uuid, d->uuid)) continue;
        if (out && n < room) out[n] = (sample_t){(unsigned)e->pid, since + 1, (unsigned)e->bytes, 0, 0, 0};
        n++;
    }
    *count = n;
    if (!n) return NOT_FOUND;
    return out && n <= room ? OK : TOO_SMALL;
}

#ifndef WITHOUT_LIMITS
typedef struct { const char *group; u64 soft, hard, used; } limits_t;

static FILE *limits_file(const char *mode) {
    char path[512];
    snprintf(path, sizeof path, "%s.limits", getenv("NVML_STUB_STATE"));
    return fopen(path, mode);
}

static u64 used_by(const char *group) {
    char line[512], name[400];
    u64 bytes = 0;
    FILE *f = fopen(getenv("NVML_STUB_STATE"), "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "group %399s %llu", name, &bytes) == 2 && !strcmp(name, group)) break;
        else bytes = 0;
    if (f) fclose(f);
    return bytes;
}

API int nvmlDeviceSetMemoryLimits_v1(void *handle, const limits_t *wanted) {
    device_t *d;
    state_t *s = state();
    int code = reach(s, handle, "nvmlDeviceSetMemoryLimits_v1", &d);
    if (code || s->limits) return code ? code : s->limits;
    if (access(wanted->group, F_OK)) return NOT_FOUND;
    FILE *f = limits_file("a");
    if (!f) return INVALID;
    fprintf(f, "%s %s %llu %llu\n", d->uuid, wanted->group, wanted->soft, wanted->hard);
    fclose(f);
    return OK;
}

API int nvmlDeviceGetMemoryLimits_v1(void *handle, limits_t *out) {
    device_t *d;
    char line[600], uuid[80], group[400];
    u64 soft, hard;
    int code = reach(state(), handle, "nvmlDeviceGetMemoryLimits_v1", &d);
    if (code) return code;
    out->soft = 0;
    out->hard = NO_LIMIT;
    out->used = used_by(out->group);
    FILE *f = limits_file("r");
    while (f && fgets(line, sizeof line, f)) /* the newest stands last */
        if (sscanf(line, "%79s %399s %llu %llu", uuid, group, &soft, &hard) == 4 && !strcmp(uuid, d->uuid) &&
            !strcmp(group, out->group)) {
            out->soft = soft;
            out->hard = hard;
        }
    if (f) fclose(f);
    return OK;
}
#endif
