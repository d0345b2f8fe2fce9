/* struct page_counter of Linux 6.0, before usage got a line of its own; the layout after it is in linux-6.1. */
#include "kernel_types.h"

struct page_counter {
	atomic_long_t usage;
	unsigned long min;
	unsigned long low;
	unsigned long high;
	unsigned long max;
	unsigned long emin;
	atomic_long_t min_usage;
	atomic_long_t children_min_usage;
	unsigned long elow;
	atomic_long_t low_usage;
	atomic_long_t children_low_usage;
	unsigned long watermark;
	unsigned long failcnt;
	struct page_counter *parent;
};

struct page_counter *stub;
