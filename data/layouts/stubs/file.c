/* struct file of Linux 5.8 with CONFIG_SECURITY and CONFIG_EPOLL; -DPATCHED moves f_count to the end, as the patch
 * "fs: Move @f_count to different cacheline with @f_mode" of June 2020 does.
 */
#include "kernel_types.h"

struct vfsmount;
struct dentry;
struct inode;
struct file_operations;
struct pid;
struct cred;
struct address_space;
enum rw_hint { WRITE_LIFE_NOT_SET, WRITE_LIFE_NONE, WRITE_LIFE_SHORT, WRITE_LIFE_MEDIUM, WRITE_LIFE_LONG };
enum pid_type { PIDTYPE_PID, PIDTYPE_TGID, PIDTYPE_PGID, PIDTYPE_SID, PIDTYPE_MAX };
typedef struct { u32 val; } kuid_t;
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

struct file {
	union {
		struct llist_node fu_llist;
		struct rcu_head fu_rcuhead;
	} f_u;
	struct path f_path;
	struct inode *f_inode;
	const struct file_operations *f_op;
	spinlock_t f_lock;
	enum rw_hint f_write_hint;
#ifndef PATCHED
	atomic_long_t f_count;
#endif
	unsigned int f_flags;
	fmode_t f_mode;
	struct mutex f_pos_lock;
	loff_t f_pos;
	struct fown_struct f_owner;
	const struct cred *f_cred;
	struct file_ra_state f_ra;
	u64 f_version;
	void *f_security;
	void *private_data;
	struct list_head f_ep_links;
	struct list_head f_tfile_llink;
	struct address_space *f_mapping;
	errseq_t f_wb_err;
	errseq_t f_sb_err;
#ifdef PATCHED
	atomic_long_t f_count;
#endif
} __attribute__((aligned(4)));

struct file *stub;
