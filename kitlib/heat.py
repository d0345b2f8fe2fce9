"""How contended, or how often read, a member looks from its type and name alone: a model, with its table.

The weights are a judgement on a scale from 0 to 10, not a measurement. They say in which order to look;
``data/labels`` holds a hand-labelled sample against which `kitlib.scan`, which uses them, is judged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache

from kitlib.tags import tags_of


@dataclass(frozen=True, slots=True)
class Role:
    """What a member looks like.

    ``label`` is a word for people, ``group`` one of ``atomic``, ``refcount``, ``lock``, ``rcu``, ``percpu``,
    ``wait``, ``read-mostly``, ``links`` (taken as one), ``plain``. ``writes`` weighs how often several CPUs
    write it, ``reads`` what is lost when its line is dirtied by someone else; both 0 to 10.
    """

    label: str
    group: str
    writes: float
    reads: float

    @property
    def is_writer(self) -> bool:
        return self.writes > 0


_NONE = Role("padding", "plain", 0, 0)
_MAIN = re.compile(r"^(?!min_|low_|max_)(\w{1,4}_)?(count|usage|users|refcnt|refcount|refs?|lockref)$")
_MAIN_LOCK = re.compile(r"^(\w{1,4}_)?(lock|rwlock|seqlock|slock|mutex|sem|rwsem|seq|seqc|seqcount)$")
_PART = 0.6
"""Share of a main lock's weight that the lock of a part gets."""
_COUNTED = re.compile(
    r"count|cnt|refs?$|refs?_|users|usage|inuse|in_use|pending|nr_|_nr|inflight|active|alloc|load", re.I
)
_RARE = re.compile(
    r"debug|stat_|_stats?$|err(or)?s?$|fail|warn|seq$|_id$|^id$|gen(eration)?$|version|enable|disable|open|suspend|resume"
    r"|probe|bind|attach|config|setup|init|carrier|wake|reset|hotplug|children|boot|power|shutdown|remov|regist"
    r"|usecnt|writecnt|writers?$|event|miss(es)?$|drop|flush|freeze|frozen|done|ready",
    re.I,
)
_LIMIT = re.compile(
    r"(^|_)(max|min|limit|low|high|size|mask|shift|order|capacity|thresh\w*|quota|len|depth|bits)(_|$|\d)"
)
_STATE = re.compile(r"(^|_)(mode|flags?|type|features|state|policy|prio|cpu|node|nid)(_|$|\d)")
_OPS = re.compile(r"(^|_)(ops?|fops|vtable|handlers?)$|_operations\b|_ops\b")
_NAMED = re.compile(r"(^|_)i?name(_|$)")
_PAD = re.compile(
    r"^_*(pad(ding)?|unused|reserved|rsvd|res|kabi_reserved|android_\w+)\d*_*$|^_pad\d*_$|^__cacheline_group_"
)


@cache
def role_of(name: str, type_text: str) -> Role:
    """The role of a member called `name` of C type `type_text`.

    >>> role_of("f_count", "atomic_long_t").group, role_of("f_op", "const struct file_operations *").group
    ('atomic', 'read-mostly')
    """
    if _PAD.search(name):
        return _NONE
    tags = tags_of(type_text)
    if "pointer" in tags:
        return _pointer(name, type_text, "percpu" in tags)
    writer = _writer(name, type_text, tags)
    return writer if writer is not None else _scalar(name, type_text, tags)


def _writer(name: str, type_text: str, tags: frozenset[str]) -> Role | None:
    if "percpu_ref" in type_text:
        return Role("per-CPU reference count", "percpu", 1, 4)
    if "lockref" in type_text:
        return Role("lock with a count", "refcount", 10, 6)
    if "refcount" in tags:
        return Role("reference count", "refcount", _count_weight(name, 4.0 if "kref" in type_text else 8.0), 5)
    if "atomic" in tags and type_text.startswith("local"):  # asm/local.h: for data one CPU owns
        return Role("per-CPU local counter", "percpu", 1, 3)
    if "atomic" in tags:
        return Role("atomic", "atomic", _count_weight(name, 8.0 if _COUNTED.search(name) else 6.0), 5)
    if "lock" in tags:
        return _lock(name, type_text)
    if "percpu" in tags:
        return Role("per-CPU counter", "percpu", 4, 4)
    if "rcu" in tags:
        return Role("RCU head", "rcu", 1, 0)
    if "wait" in tags:
        return Role("wait queue or completion", "wait", 2, 1)
    return None


def _count_weight(name: str, usual: float) -> float:
    """An object's main counter is the one that every user touches; set-up and error counters are seldom hot.

    An atomic that is named as a limit or a state, and not as a count, is written when that changes.
    """
    if _MAIN.search(name):
        return 10.0
    state = not _COUNTED.search(name) and (_LIMIT.search(name) or _STATE.search(name))
    return usual / 2 if state or _RARE.search(name) else usual


def _lock(name: str, type_text: str) -> Role:
    """An object's main lock is called just that (``f_lock``); one with a longer name guards a part of it."""
    role = _lock_of(type_text)
    return role if _MAIN_LOCK.search(name) else replace(role, writes=round(role.writes * _PART, 1))


def _lock_of(type_text: str) -> Role:
    if "seqc" in type_text:
        return Role("sequence counter", "lock", 5, 5)
    if "percpu_rw" in type_text or "local_lock" in type_text:
        return Role("per-CPU lock", "lock", 1, 3)
    if "rwlock" in type_text or "qrwlock" in type_text:
        return Role("reader-writer spinlock, written by readers too", "lock", 9, 5)
    if "rw_semaphore" in type_text:
        return Role("reader-writer semaphore, written by readers too", "lock", 7, 5)
    if "mutex" in type_text or "semaphore" in type_text:
        return Role("sleeping lock", "lock", 4, 4)
    return Role("spinlock", "lock", 7, 5)


def _pointer(name: str, type_text: str, percpu: bool) -> Role:
    if percpu:
        return Role("pointer to per-CPU data", "read-mostly", 0, 5)
    if _OPS.search(name) or _OPS.search(type_text.replace(" *", "")):
        return Role("operations pointer", "read-mostly", 0, 5)
    if "(*" in type_text:
        return Role("function pointer", "read-mostly", 0, 4)
    if type_text.startswith("const "):
        return Role("pointer to constant data", "read-mostly", 0, 4)
    if re.search(r"(^|_)(next|prev|head|tail|first|last)$", name):
        return Role("link", "plain", 0, 1)
    return Role("pointer", "read-mostly", 0, 3)


def _scalar(name: str, type_text: str, tags: frozenset[str]) -> Role:
    if "work" in tags or ("list" in tags and "list_lru" not in type_text) or "rb_node" in type_text:
        return Role("links", "links", 0, 1)
    if _LIMIT.search(name):
        return Role("limit or size", "read-mostly", 0, 4)
    if _NAMED.search(name):
        return Role("name", "read-mostly", 0, 4)
    if _STATE.search(name):
        return Role("flags or mode", "read-mostly", 0, 3)
    if type_text in ("_Bool", "bool") or type_text.startswith("enum "):
        return Role("setting", "read-mostly", 0, 2)
    if type_text.startswith("const "):
        return Role("constant", "read-mostly", 0, 3)
    return Role("data", "plain", 0, 1)


def clash(writer: Role, mate: Role) -> float:
    """What it costs, 0 to 10, that `writer` dirties the line `mate` is on.

    A lock is usually taken to use the plain data beside it: that is sharing on purpose and counts little.
    """
    if mate.is_writer:
        return min(mate.writes, mate.reads + 1)
    if writer.group == "lock" and mate.reads < 5:
        return mate.reads / 4 if mate.group == "read-mostly" else 0.0
    return mate.reads
