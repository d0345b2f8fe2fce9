"""C text for kernel names that a snippet uses without their headers.

Only names the compiler did not know are defined, so that a snippet's own definitions always win. Sizes
are those of a 64-bit SMP kernel without lock debugging (CONFIG_DEBUG_SPINLOCK, CONFIG_LOCKDEP and
CONFIG_PREEMPT_RT off): include/linux/types.h, spinlock_types.h, mutex_types.h, rwsem.h.
"""

from __future__ import annotations

import re

# name: (definition, names it needs)
_DEFINITIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "u8": ("typedef unsigned char u8;", ()),
    "s8": ("typedef signed char s8;", ()),
    "u16": ("typedef unsigned short u16;", ()),
    "s16": ("typedef short s16;", ()),
    "u32": ("typedef unsigned int u32;", ()),
    "s32": ("typedef int s32;", ()),
    "u64": ("typedef unsigned long long u64;", ()),
    "s64": ("typedef long long s64;", ()),
    "__u8": ("typedef unsigned char __u8;", ()),
    "__s8": ("typedef signed char __s8;", ()),
    "__u16": ("typedef unsigned short __u16;", ()),
    "__s16": ("typedef short __s16;", ()),
    "__u32": ("typedef unsigned int __u32;", ()),
    "__s32": ("typedef int __s32;", ()),
    "__u64": ("typedef unsigned long long __u64;", ()),
    "__s64": ("typedef long long __s64;", ()),
    "__le16": ("typedef unsigned short __le16;", ()),
    "__le32": ("typedef unsigned int __le32;", ()),
    "__le64": ("typedef unsigned long long __le64;", ()),
    "__be16": ("typedef unsigned short __be16;", ()),
    "__be32": ("typedef unsigned int __be32;", ()),
    "__be64": ("typedef unsigned long long __be64;", ()),
    "uint8_t": ("typedef unsigned char uint8_t;", ()),
    "int8_t": ("typedef signed char int8_t;", ()),
    "uint16_t": ("typedef unsigned short uint16_t;", ()),
    "int16_t": ("typedef short int16_t;", ()),
    "uint32_t": ("typedef unsigned int uint32_t;", ()),
    "int32_t": ("typedef int int32_t;", ()),
    "uint64_t": ("typedef __UINT64_TYPE__ uint64_t;", ()),
    "int64_t": ("typedef __INT64_TYPE__ int64_t;", ()),
    "uintptr_t": ("typedef __UINTPTR_TYPE__ uintptr_t;", ()),
    "size_t": ("typedef __SIZE_TYPE__ size_t;", ()),
    "ssize_t": ("typedef long ssize_t;", ()),
    "bool": ("typedef _Bool bool;", ()),
    "loff_t": ("typedef long long loff_t;", ()),
    "ktime_t": ("typedef long long ktime_t;", ()),
    "sector_t": ("typedef unsigned long long sector_t;", ()),
    "dma_addr_t": ("typedef unsigned long long dma_addr_t;", ()),
    "phys_addr_t": ("typedef unsigned long long phys_addr_t;", ()),
    "gfp_t": ("typedef unsigned int gfp_t;", ()),
    "fmode_t": ("typedef unsigned int fmode_t;", ()),
    "errseq_t": ("typedef unsigned int errseq_t;", ()),
    "umode_t": ("typedef unsigned short umode_t;", ()),
    "dev_t": ("typedef unsigned int dev_t;", ()),
    "pid_t": ("typedef int pid_t;", ()),
    "uid_t": ("typedef unsigned int uid_t;", ()),
    "gid_t": ("typedef unsigned int gid_t;", ()),
    "netdev_features_t": ("typedef unsigned long long netdev_features_t;", ()),
    "kuid_t": ("typedef struct { unsigned int val; } kuid_t;", ()),
    "kgid_t": ("typedef struct { unsigned int val; } kgid_t;", ()),
    "atomic_t": ("typedef struct { int counter; } atomic_t;", ()),
    "atomic64_t": ("typedef struct { long long counter; } atomic64_t;", ()),
    "atomic_long_t": ("typedef struct { long counter; } atomic_long_t;", ()),
    "local_t": ("typedef struct { atomic_long_t a; } local_t;", ("atomic_long_t",)),
    "refcount_t": ("typedef struct refcount_struct { atomic_t refs; } refcount_t;", ("atomic_t",)),
    "arch_spinlock_t": ("typedef struct qspinlock { unsigned int val; } arch_spinlock_t;", ()),
    "raw_spinlock_t": (
        "typedef struct raw_spinlock { arch_spinlock_t raw_lock; } raw_spinlock_t;",
        ("arch_spinlock_t",),
    ),
    "spinlock_t": ("typedef struct spinlock { raw_spinlock_t rlock; } spinlock_t;", ("raw_spinlock_t",)),
    "rwlock_t": ("typedef struct { unsigned int cnts; arch_spinlock_t wait_lock; } rwlock_t;", ("arch_spinlock_t",)),
    "seqcount_t": ("typedef struct seqcount { unsigned int sequence; } seqcount_t;", ()),
    "seqlock_t": ("typedef struct { seqcount_t seqcount; spinlock_t lock; } seqlock_t;", ("seqcount_t", "spinlock_t")),
    "wait_queue_head_t": (
        "typedef struct wait_queue_head { spinlock_t lock; struct list_head head; } wait_queue_head_t;",
        ("spinlock_t", "struct list_head"),
    ),
    "struct list_head": ("struct list_head { struct list_head *next, *prev; };", ()),
    "struct hlist_head": ("struct hlist_head { struct hlist_node *first; };", ()),
    "struct hlist_node": ("struct hlist_node { struct hlist_node *next, **pprev; };", ()),
    "struct llist_node": ("struct llist_node { struct llist_node *next; };", ()),
    "struct rb_node": ("struct rb_node { unsigned long color; struct rb_node *right, *left; };", ()),
    "struct callback_head": (
        "struct callback_head { struct callback_head *next; void (*func)(struct callback_head *); }"
        " __attribute__((aligned(sizeof(void *))));",
        (),
    ),
    "struct kref": ("struct kref { refcount_t refcount; };", ("refcount_t",)),
    "struct mutex": (
        "struct mutex { atomic_long_t owner; raw_spinlock_t wait_lock; struct { atomic_t tail; } osq;"
        " struct list_head wait_list; };",
        ("atomic_long_t", "raw_spinlock_t", "atomic_t", "struct list_head"),
    ),
    "struct rw_semaphore": (
        "struct rw_semaphore { atomic_long_t count, owner; struct { atomic_t tail; } osq;"
        " raw_spinlock_t wait_lock; struct list_head wait_list; };",
        ("atomic_long_t", "raw_spinlock_t", "atomic_t", "struct list_head"),
    ),
    "struct work_struct": (
        "struct work_struct { atomic_long_t data; struct list_head entry; void (*func)(struct work_struct *); };",
        ("atomic_long_t", "struct list_head"),
    ),
}

# Annotations of include/linux/compiler_types.h, cache.h and stddef.h that change no layout, or do so by
# an alignment. A line is 64 bytes here, as on x86-64.
MACROS: dict[str, str] = {
    **dict.fromkeys(("__rcu", "__user", "__kernel", "__iomem", "__percpu", "__bitwise", "__force"), ""),
    **dict.fromkeys(("__randomize_layout", "__no_randomize_layout", "__ro_after_init", "__read_mostly"), ""),
    "__counted_by(m)": "",
    "__guarded_by(m)": "",
    "__packed": "__attribute__((__packed__))",
    "__aligned(x)": "__attribute__((__aligned__(x)))",
    "____cacheline_aligned": "__attribute__((__aligned__(64)))",
    "____cacheline_aligned_in_smp": "__attribute__((__aligned__(64)))",
    "____cacheline_internodealigned_in_smp": "__attribute__((__aligned__(64)))",
    "__cacheline_group_begin(g)": "unsigned char __cacheline_group_begin__##g[0]",
    "__cacheline_group_end(g)": "unsigned char __cacheline_group_end__##g[0]",
    "DECLARE_BITMAP(n, b)": "unsigned long n[((b) + 8 * sizeof(long) - 1) / (8 * sizeof(long))]",
    "struct_group(g, ...)": "union { struct { __VA_ARGS__ }; struct { __VA_ARGS__ } g; }",
}

_UNKNOWN = re.compile(r"unknown type name ['‘](\w+)['’]")
_BY_VALUE = re.compile(r"\b(struct\s+\w+)\b(?!\s*[*{;])")
# `struct rcu_head` is a macro for `struct callback_head` in the kernel's own types.h
_RENAMED = {"rcu_head": "callback_head"}


def missing_names(errors: str, text: str) -> list[str]:
    """Names the kit can define, of those the compiler complains of in `errors` or `text` holds by value."""
    names = [name for name in _UNKNOWN.findall(errors) if name in _DEFINITIONS]
    if "incomplete type" in errors:
        for tag in _BY_VALUE.findall(text):
            spelled = " ".join(tag.split())
            spelled = f"struct {_RENAMED.get(spelled[7:], spelled[7:])}"
            if spelled in _DEFINITIONS and not re.search(rf"\b{spelled}\s*{{".replace(" ", r"\s+"), text):
                names.append(spelled)
    return list(dict.fromkeys(names))


def prelude(names: list[str], text: str) -> str:
    """C text that defines `names` with what they need, and the annotations that `text` uses but does not define."""
    lines = [f"#define {old} {new}" for old, new in _RENAMED.items() if re.search(rf"\b{old}\b", text)]
    for head, body in MACROS.items():
        word = head.partition("(")[0]
        if re.search(rf"\b{word}\b", text):
            lines += [f"#ifndef {word}", f"#define {head} {body}", "#endif"]
    done: set[str] = set()
    for name in names:
        _define(name, lines, done)
    return "\n".join(lines) + "\n"


def _define(name: str, lines: list[str], done: set[str]) -> None:
    if name in done:
        return
    done.add(name)
    definition, needs = _DEFINITIONS[name]
    for need in needs:
        _define(need, lines, done)
    lines.append(definition)


def defined_by(names: list[str]) -> set[str]:
    """All names that `prelude` gives for `names`, struct tags without the word ``struct``."""
    lines: list[str] = []
    done: set[str] = set()
    for name in names:
        _define(name, lines, done)
    tags = re.findall(r"struct (\w+) {", " ".join(lines))
    return {name.removeprefix("struct ") for name in done} | set(tags)


def uses_macros(text: str) -> bool:
    """Whether `text` uses an annotation of `MACROS`."""
    return any(re.search(rf"\b{head.partition('(')[0]}\b", text) for head in MACROS)
