/* The start of struct mm_struct, Linux 5.12/5.13, with CONFIG_MMU, CONFIG_MEMBARRIER and
 * CONFIG_HAVE_ARCH_COMPAT_MMAP_BASES. In the kernel these members are inside an anonymous struct; here they stand
 * in mm_struct itself, so that they can be moved. -DSEQ_EARLY: with commit 57efa1fe5957; -DSEQ_LATE: with
 * 2e3025434a6b too.
 */
#include "kernel_types.h"

struct vm_area_struct;
struct file;
typedef struct { unsigned long pgd; } pgd_t;

struct mm_struct {
	struct vm_area_struct *mmap;
	struct rb_root mm_rb;
	u64 vmacache_seqnum;
	unsigned long (*get_unmapped_area)(struct file *, unsigned long, unsigned long, unsigned long, unsigned long);
	unsigned long mmap_base;
	unsigned long mmap_legacy_base;
	unsigned long mmap_compat_base;
	unsigned long mmap_compat_legacy_base;
	unsigned long task_size;
	unsigned long highest_vm_end;
	pgd_t *pgd;
	atomic_t membarrier_state;
	atomic_t mm_users;
	atomic_t mm_count;
	atomic_t has_pinned;
#ifdef SEQ_EARLY
	seqcount_t write_protect_seq;
#endif
	atomic_long_t pgtables_bytes;
	int map_count;
	spinlock_t page_table_lock;
	struct rw_semaphore mmap_lock;
	struct list_head mmlist;
	unsigned long hiwater_rss;
	unsigned long hiwater_vm;
	unsigned long total_vm;
	unsigned long locked_vm;
	atomic64_t pinned_vm;
	unsigned long data_vm;
	unsigned long exec_vm;
	unsigned long stack_vm;
	unsigned long def_flags;
#ifdef SEQ_LATE
	seqcount_t write_protect_seq;
#endif
	spinlock_t arg_lock;
	unsigned long start_code, end_code, start_data, end_data;
	unsigned long start_brk, brk, start_stack;
	unsigned long arg_start, arg_end, env_start, env_end;
};

struct mm_struct *stub;
