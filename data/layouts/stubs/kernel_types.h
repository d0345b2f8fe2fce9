/* The kernel types that the stubs hold by value, by size and alignment, for x86-64 with a configuration like
 * a distribution's: no lock debugging, CONFIG_MUTEX_SPIN_ON_OWNER, CONFIG_RWSEM_SPIN_ON_OWNER, queued locks.
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long loff_t;
typedef unsigned int fmode_t;
typedef u32 errseq_t;
typedef struct { int counter; } atomic_t;
typedef struct { long counter; } atomic64_t;
typedef atomic64_t atomic_long_t;

struct list_head { struct list_head *next, *prev; };
struct llist_node { struct llist_node *next; };
struct rb_node;
struct rb_root { struct rb_node *rb_node; };
struct callback_head {
	struct callback_head *next;
	void (*func)(struct callback_head *head);
} __attribute__((aligned(sizeof(void *))));
#define rcu_head callback_head

typedef struct qspinlock {
	union {
		atomic_t val;
		struct { u8 locked; u8 pending; };
		struct { u16 locked_pending; u16 tail; };
	};
} arch_spinlock_t;
typedef struct qrwlock {
	union {
		atomic_t cnts;
		struct { u8 wlocked; u8 __lstate[3]; };
	};
	arch_spinlock_t wait_lock;
} arch_rwlock_t;
typedef struct raw_spinlock { arch_spinlock_t raw_lock; } raw_spinlock_t;
typedef struct spinlock { union { struct raw_spinlock rlock; }; } spinlock_t;
typedef struct { arch_rwlock_t raw_lock; } rwlock_t;
typedef struct seqcount { unsigned int sequence; } seqcount_t;
struct optimistic_spin_queue { atomic_t tail; };
struct mutex {
	atomic_long_t owner;
	spinlock_t wait_lock;
	struct optimistic_spin_queue osq;
	struct list_head wait_list;
};
struct rw_semaphore {
	atomic_long_t count;
	atomic_long_t owner;
	struct optimistic_spin_queue osq;
	raw_spinlock_t wait_lock;
	struct list_head wait_list;
};
