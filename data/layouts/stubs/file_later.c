/* struct file of later kernels, with CONFIG_SECURITY and CONFIG_EPOLL:
 * -DV6_5   after commit a7bc2e8ddf3c: locks and the count first, f_path, f_inode and f_op further back;
 * -DV6_14  before commit e249056c91a2: the order of commit c0390d541128, with the count as a file_ref_t;
 * -DV6_15  with commit e249056c91a2: f_ref last, f_owner in the first line.
 */
#include "kernel_types.h"

struct vfsmount;
struct dentry;
struct inode;
struct file_operations;
struct pid;
struct cred;
struct address_space;
struct hlist_head;
enum pid_type { PIDTYPE_PID, PIDTYPE_TGID, PIDTYPE_PGID, PIDTYPE_SID, PIDTYPE_MAX };
typedef struct { u32 val; } kuid_t;
typedef struct { unsigned long v; } freeptr_t;
typedef struct { atomic_long_t refcnt; } file_ref_t;
struct path { struct vfsmount *mnt; struct dentry *dentry; };
struct fown_struct {
	rwlock_t lock;
	struct pid *pid;
	enum pid_type pid_type;
	kuid_t uid, euid;
	int signum;
};
struct file_ra_state {
	unsigned long start;
	unsigned int size, async_size, ra_pages, mmap_miss;
	loff_t prev_pos;
};

#ifdef V6_5
struct file {
	union {
		struct llist_node f_llist;
		struct rcu_head f_rcuhead;
		unsigned int f_iocb_flags;
	};
	spinlock_t f_lock;
	fmode_t f_mode;
	atomic_long_t f_count;
	struct mutex f_pos_lock;
	loff_t f_pos;
	unsigned int f_flags;
	struct fown_struct f_owner;
	const struct cred *f_cred;
	struct file_ra_state f_ra;
	struct path f_path;
	struct inode *f_inode;
	const struct file_operations *f_op;
	u64 f_version;
	void *f_security;
	void *private_data;
	struct hlist_head *f_ep;
	struct address_space *f_mapping;
	errseq_t f_wb_err;
	errseq_t f_sb_err;
} __attribute__((aligned(4)));
#else
struct file {
#ifdef V6_14
	file_ref_t f_ref;
#endif
	spinlock_t f_lock;
	fmode_t f_mode;
	const struct file_operations *f_op;
	struct address_space *f_mapping;
	void *private_data;
	struct inode *f_inode;
	unsigned int f_flags;
	unsigned int f_iocb_flags;
	const struct cred *f_cred;
#ifdef V6_15
	struct fown_struct *f_owner;
#endif
	struct path f_path;
	union {
		struct mutex f_pos_lock;
		u64 f_pipe;
	};
	loff_t f_pos;
	void *f_security;
#ifdef V6_14
	struct fown_struct *f_owner;
#endif
	errseq_t f_wb_err;
	errseq_t f_sb_err;
	struct hlist_head *f_ep;
	union {
		struct callback_head f_task_work;
		struct llist_node f_llist;
		struct file_ra_state f_ra;
		freeptr_t f_freeptr;
	};
#ifdef V6_15
	file_ref_t f_ref;
#endif
} __attribute__((aligned(4)));
#endif

struct file *stub;
