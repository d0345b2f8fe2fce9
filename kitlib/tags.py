"""What a member's type name says about how it is used: the one table of type tags.

The kernel and pthread names are those of the Linux headers (include/linux/types.h, spinlock_types.h,
mutex.h, rwsem.h, refcount.h, percpu_counter.h, …), of POSIX and of <stdatomic.h>.
"""

from __future__ import annotations

import re
from functools import cache

# (tag, pattern on the type with qualifiers and array bounds removed). A type may match several rows.
_TABLE: tuple[tuple[str, str], ...] = (
    ("pointer", r"\*|^unique_ptr\b|^shared_ptr\b"),
    (
        "atomic",
        r"^(atomic(64|_long)?_t|local(64)?_t|_Atomic\b.*|(std::)?atomic<.*|struct atomic|atomic_\w+)$",
    ),
    (
        "refcount",
        r"^(struct )?(refcount_t|refcount_struct|kref|lockref|file_ref_t|percpu_ref|rcuref_t|page_ref\w*)$",
    ),
    (
        "lock",
        r"^(struct )?(raw_spinlock(_t)?|spinlock(_t)?|rwlock_t|arch_spinlock_t|arch_rwlock_t|qspinlock|qrwlock|mutex"
        r"|rt_mutex(_base)?|rw_semaphore|semaphore|ww_mutex|seqlock_t|seqcount(_\w+)?_t|seqcount\w*|lockref"
        r"|percpu_rw_semaphore|optimistic_spin_queue|local_lock_t|local_trylock_t|socket_lock_t|bit_spinlock"
        r"|pthread_(mutex|rwlock|spinlock)_t|mtx_t|std::(shared_|recursive_|timed_)*mutex)$",
    ),
    (
        "list",
        r"^(struct )?(list_head|hlist_(head|node)|hlist_nulls_(head|node)|hlist_bl_(head|node)|llist_(head|node)"
        r"|plist_(head|node)|klist_node|list_lru)$",
    ),
    (
        "tree",
        r"^(struct )?(rb_node|rb_root(_cached)?|xarray|radix_tree_root|maple_tree|interval_tree_node|idr|ida)$",
    ),
    ("rcu", r"^(struct )?(rcu_head|callback_head|rcu_work|rcuwait|rcu_segcblist|srcu_struct)$"),
    (
        "wait",
        r"^(struct )?(wait_queue_head(_t)?|swait_queue_head|completion|wait_queue_entry(_t)?|pthread_cond_t)$",
    ),
    (
        "work",
        r"^(struct )?(work_struct|delayed_work|timer_list|hrtimer|tasklet_struct|irq_work|kthread_work)$",
    ),
    ("percpu", r"\b__percpu\b|^(struct )?percpu_counter$|^(struct )?percpu_ref$"),
    ("counter", r"^(struct )?(percpu_counter|page_counter|u64_stats_sync|u64_stats_t)$"),
)
_COMPILED = tuple((tag, re.compile(pattern)) for tag, pattern in _TABLE)
_NOISE = re.compile(r"\b(const|volatile)\b|\[[^\]]*\]")

ALL_TAGS: tuple[str, ...] = tuple(tag for tag, _ in _TABLE)

WRITTEN_TAGS = frozenset({"atomic", "lock", "refcount", "percpu", "counter", "wait"})
"""Tags whose members are written by the code that uses the object, and so can dirty a shared line."""


@cache
def tags_of(type_text: str) -> frozenset[str]:
    """Return the tags of a C type as written, qualifiers and array bounds ignored.

    >>> sorted(tags_of("atomic_long_t"))
    ['atomic']
    >>> sorted(tags_of("struct list_head *"))
    ['pointer']
    """
    text = " ".join(_NOISE.sub(" ", type_text).split())
    found = {tag for tag, pattern in _COMPILED if pattern.search(text)}
    if "pointer" in found:
        return frozenset({"pointer"} | (found & {"percpu"}))
    return frozenset(found)
