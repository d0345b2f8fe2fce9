/* What is known of struct inode around i_version in Linux 4.16 with CONFIG_IMA: offsets 0x140 to 0x170. The bytes in
 * front stand in one array.
 */
#include "kernel_types.h"

struct file_operations;

struct inode {
	unsigned char not_known[0x140];
	struct rcu_head i_rcu;
	atomic64_t i_version;
	atomic_t i_count;
	atomic_t i_dio_count;
	atomic_t i_writecount;
	atomic_t i_readcount;
	const struct file_operations *i_fop;
};

struct inode *stub;
