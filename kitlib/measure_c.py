"""The C program that a measurement runs: one fixed loop, the member offsets given when it is run.

Before and after run the *same machine code* on the same memory; only the numbers in the offset table
differ. So where the compiler happened to put a loop cannot be mistaken for an effect of the layout.

No text from a layout or profile gets into the program: an access is a number in an offset table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kitlib.access import Op

WORDS = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}


@dataclass(frozen=True, slots=True)
class Step:
    """One access in the loop: ``slot`` in the offset table, the operation and the width in bytes."""

    slot: int
    op: Op
    width: int

    def __post_init__(self) -> None:
        if self.width not in WORDS or self.slot < 0:
            raise ValueError(f"no C access of {self.width} bytes in slot {self.slot}")


@dataclass(frozen=True, slots=True)
class Program:
    """What the loop does: ``rounds`` path runs, each on the next object, and the number of offsets."""

    rounds: tuple[tuple[Step, ...], ...]
    slots: int


def access_code(step: Step) -> str:
    """C statement for one access; ``acc`` takes the value read so that nothing is optimised away."""
    word = WORDS[step.width]
    place = f"(p + o[{step.slot}])"
    if step.op == "read":
        return f"acc += *(const volatile {word} *){place};"
    if step.op == "write":
        return f"*(volatile {word} *){place} = ({word})acc;"
    if step.op == "add":
        return f"acc += __atomic_fetch_add(({word} *){place}, ({word})1, __ATOMIC_SEQ_CST);"
    return f"acc += take{step.width}(({word} *){place});"


def program_text(program: Program) -> str:
    """The whole program as C11 with GNU extensions."""
    body: list[str] = []
    for steps in program.rounds:
        body.append("    p = base + (size_t)order[at] * spacing + (acc & zero);")
        body.append("    at = at + 1 == count ? 0 : at + 1;")
        body += [f"    {access_code(step)}" for step in steps]
        body.append("    dice = dice * 0x5851f42d4c957f2dULL + 0x14057b7ef767814fULL;")
        body.append("    for (k = ((dice >> 32) * most) >> 32; k > 0; k--) acc = acc * 0x5851f42d4c957f2dULL + 1;")
        body.append('    __asm__ volatile("" : "+r"(acc) : : "memory");')
    text = _TEMPLATE.replace("@SLOTS@", str(program.slots))
    text = text.replace("@ROUNDS@", str(len(program.rounds)))
    return text.replace("@BODY@", "\n".join(body)).replace("@CAS@", "\n".join(_cas(w) for w in WORDS))


def arguments(
    *,
    cpus: Sequence[int],
    shared: bool,
    samples: int,
    sample_ms: int,
    work_ns: float,
    objects: int,
    limit_s: int,
    seed: int,
    layouts: Sequence[tuple[int, int, Sequence[int]]],
    place_step: int = 128,
) -> list[str]:
    """Command line of the program; `layouts` are (spacing, phase, offsets), run in turn in every sample.

    A shared object is put somewhere else for every sample, at a multiple of `place_step` bytes that is the same for
    all layouts. How long a line takes to move depends on its address (which slice of the cache looks after it): by up
    to 1.5 % of a run as measured here, as much as many layouts differ by.
    """
    head = [
        ",".join(map(str, cpus)),
        int(shared),
        samples,
        sample_ms,
        f"{work_ns:.3f}",
        objects,
        limit_s,
        seed,
        place_step,
    ]
    tail = [",".join(map(str, (step, phase, *offsets))) for step, phase, offsets in layouts]
    return [str(x) for x in (*head, *tail)]


def _cas(width: int) -> str:
    """A compare-exchange loop; the value it returns is the exchange's own, so that later work waits for it.

    The empty asm statement keeps the compiler from using the first load's value instead: the processor
    would then run ahead of the exchange, as no code can that goes on to touch memory.
    """
    word = WORDS[width]
    return (
        f"static inline uint64_t take{width}({word} *a) {{\n"
        f"  {word} seen = __atomic_load_n(a, __ATOMIC_RELAXED);\n"
        "  for (;;) {\n"
        f"    {word} was = __sync_val_compare_and_swap(a, seen, ({word})(seen + 1));\n"
        '    __asm__ volatile("" : "+r"(was));\n'
        "    if (was == seen) return was;\n"
        "    seen = was, retries++;\n"
        "  }\n}"
    )


_TEMPLATE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = @SLOTS@, ROUNDS = @ROUNDS@, MAX_CPUS = 1024, MAX_LAYOUTS = 256, PAGE = 4096, ROOM = 64 << 20 };
struct layout { size_t spacing, phase; int64_t offset[SLOTS]; };

static volatile int stop __attribute__((aligned(256)));
static char pad_after_stop[256] __attribute__((aligned(256), used));
static __thread uint64_t retries;
static pthread_barrier_t gate;
static struct layout layouts[MAX_LAYOUTS];
static const struct layout *now;
static uint64_t work;
static size_t place; /* bytes into the memory: see arguments() */
static volatile uint64_t no_bits = 0;

struct worker {
  pthread_t thread;
  int cpu;
  char *memory;
  uint32_t *order;
  size_t count, at; /* at: where the next sample goes on, so that cold objects stay cold */
  uint64_t runs, retries;
  double ns;
  long preempted;
} __attribute__((aligned(256)));
static struct worker workers[MAX_CPUS];

@CAS@

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(3);
}

__attribute__((noinline)) static uint64_t turns(struct worker *w, const struct layout *l, uint64_t limit) {
  const uint64_t zero = no_bits;
  const uint32_t *order = w->order;
  const size_t count = w->count, spacing = l->spacing;
  char *base = w->memory + place + l->phase, *p;
  int64_t o[SLOTS];
  const uint64_t most = 2 * work; /* a random amount, so that threads do not fall into step */
  uint64_t acc = 0, done = 0, dice = (uint64_t)w->cpu + 1, k;
  size_t at = w->at;
  memcpy(o, l->offset, sizeof o);
  do {
@BODY@
    done += ROUNDS;
  } while (!stop && done < limit);
  w->runs = done, w->at = at;
  return acc;
}

static void *worker_main(void *given) {
  struct worker *w = given;
  struct rusage before, after;
  volatile uint64_t sink;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(w->cpu, &set);
  if (pthread_setaffinity_np(pthread_self(), sizeof set, &set)) fail("pinning a thread");
  for (;;) {
    pthread_barrier_wait(&gate);
    if (!now) return 0;
    const struct layout *l = now;
    retries = 0;
    getrusage(RUSAGE_THREAD, &before);
    double start = now_ns();
    sink = turns(w, l, UINT64_MAX);
    w->ns = now_ns() - start;
    getrusage(RUSAGE_THREAD, &after);
    (void)sink;
    w->preempted = after.ru_nivcsw - before.ru_nivcsw;
    w->retries = retries;
    pthread_barrier_wait(&gate);
  }
}

static uint64_t steps_for(double ns) {
  volatile uint64_t from = 1;
  double best = 1e30;
  if (ns <= 0) return 0;
  for (int i = 0; i < 5; i++) {
    uint64_t acc = from;
    double start = now_ns();
    for (int k = 0; k < 200000; k++) {
      acc = acc * 0x5851f42d4c957f2dULL + 1;
      __asm__ volatile("" : "+r"(acc));
    }
    double took = (now_ns() - start) / 200000;
    from = acc;
    if (took < best) best = took;
  }
  return (uint64_t)(ns / best + 0.5);
}

static char *memory_of(size_t bytes) {
  const size_t huge = 2u << 20;
  bytes = (bytes + huge - 1) / huge * huge;
  char *got = mmap(0, bytes + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) fail("memory");
  got = (char *)(((uintptr_t)got + huge - 1) & ~(uintptr_t)(huge - 1));
  madvise(got, bytes, MADV_HUGEPAGE);
  memset(got, 0, bytes);
  return got;
}

static uint32_t *shuffled(size_t count, uint64_t seed) {
  uint32_t *order = malloc(count * sizeof *order);
  if (!order) fail("memory");
  for (size_t i = 0; i < count; i++) order[i] = (uint32_t)i;
  for (size_t i = count - 1; i > 0; i--) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    size_t j = seed % (i + 1);
    uint32_t t = order[i];
    order[i] = order[j], order[j] = t;
  }
  return order;
}

static void sample(int index, int threads, int ms) {
  struct timespec nap = {ms / 1000, (ms % 1000) * 1000000L};
  uint64_t runs = 0, failed = 0, least = UINT64_MAX, most = 0;
  double ns = 0;
  long preempted = 0;
  now = &layouts[index];
  stop = 0;
  pthread_barrier_wait(&gate);
  nanosleep(&nap, 0);
  stop = 1;
  pthread_barrier_wait(&gate);
  for (int t = 0; t < threads; t++) {
    runs += workers[t].runs, ns += workers[t].ns;
    failed += workers[t].retries, preempted += workers[t].preempted;
    if (workers[t].runs < least) least = workers[t].runs;
    if (workers[t].runs > most) most = workers[t].runs;
  }
  printf("%d %.6f %.6f %ld %.4f\n", index, ns / (double)runs, (double)failed / (double)runs, preempted,
         (double)least / (double)most);
  fflush(stdout);
}

int main(int argc, char **argv) {
  int threads = 0, kinds = 0;
  size_t largest = 0;
  if (argc < 11) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm((unsigned)atoi(argv[7]));
  for (char *cpu = strtok(argv[1], ","); cpu && threads < MAX_CPUS; cpu = strtok(0, ",")) {
    workers[threads++].cpu = atoi(cpu);
  }
  int shared = atoi(argv[2]), samples = atoi(argv[3]), ms = atoi(argv[4]);
  work = steps_for(atof(argv[5]));
  size_t count = strtoull(argv[6], 0, 10), place_step = strtoull(argv[9], 0, 10);
  for (int i = 10; i < argc && kinds < MAX_LAYOUTS; i++, kinds++) {
    struct layout *l = &layouts[kinds];
    char *rest = argv[i];
    l->spacing = strtoull(rest, &rest, 10);
    l->phase = strtoull(rest + 1, &rest, 10);
    for (int s = 0; s < SLOTS; s++) l->offset[s] = strtoll(rest + 1, &rest, 10);
    if (l->spacing > largest) largest = l->spacing;
  }
  size_t room = (count + 1) * largest + PAGE + (shared ? (size_t)ROOM : 0);
  for (int t = 0; t < threads; t++) {
    workers[t].count = count;
    workers[t].memory = t && shared ? workers[0].memory : memory_of(room);
    workers[t].order = shuffled(count, strtoull(argv[8], 0, 10) * 2654435761u + 88172645463325252ULL + (uint64_t)t);
  }
  pthread_barrier_init(&gate, 0, (unsigned)threads + 1);
  for (int t = 0; t < threads; t++) {
    if (pthread_create(&workers[t].thread, 0, worker_main, &workers[t])) fail("starting a thread");
  }
  for (int k = 0; k < kinds; k++) sample(k, threads, ms);
  printf("warm\n");
  uint64_t dice = strtoull(argv[8], 0, 10);
  for (int s = 0; s < samples; s++) {
    dice = dice * 0x5851f42d4c957f2dULL + 0x14057b7ef767814fULL;
    if (shared) place = place_step * (size_t)((dice >> 32) % (ROOM / place_step));
    for (int k = 0; k < kinds; k++) sample(k, threads, ms);
  }
  now = 0;
  pthread_barrier_wait(&gate);
  for (int t = 0; t < threads; t++) pthread_join(workers[t].thread, 0);
  return 0;
}
"""
