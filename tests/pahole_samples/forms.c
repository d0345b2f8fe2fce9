/* Every form pahole has for a member. Beside it, as written by pahole 1.24 from gcc 12.2 (x86-64):
 *   gcc -g -c -fno-eliminate-unused-debug-types forms.c
 *   pahole forms.o > forms.txt;  pahole -E forms.o > forms_expanded.txt;  pahole --hex forms.o > forms_hex.txt
 */
typedef struct { int counter; } atomic_t;
typedef struct { int a; long b; } anon_t;
typedef unsigned int u32;
enum colour { RED, GREEN };
struct inner { char c; int i; };
struct bits { unsigned a:3; unsigned b:7; char c; unsigned long d:40; short e:5; int f:4; _Bool g:1; };
struct packed_whole { char c; int i; short s; } __attribute__((packed));
struct packed_member { char c; int i __attribute__((packed)); long l; };
struct aligned { char c; int i __attribute__((aligned(64))); long l; } __attribute__((aligned(128)));
struct nested {
	int x;
	union { int a; struct { char b; long c; }; };
	struct { int q; } named;
	struct inner in[3];
	anon_t an;
	enum colour e;
	enum { X1, Y1 } f;
	struct { int z; } arr[2];
	int m[2][3];
	int *p[4];
	int (*fn)(const char *, int, ...);
	int (*fns[3])(void);
	const volatile int cv;
	char *const cp;
	const char *pc;
	const char *const *cpc;
	struct { int k; } *pp;
	struct inner *in2;
	atomic_t at;
	u32 w;
	_Bool bo:1;
	unsigned char flex[];
};
struct empty {};
struct holds_empty { int a; struct empty e; int b[0]; };
union either { int a; char b[7]; struct inner i; };
struct packed_bits { char a; unsigned b:20; unsigned c:30; } __attribute__((packed));
struct crossing { long a:60; int b:31; char t; } __attribute__((packed));
struct padded { struct inner a; char b; };
struct numbers { float f; double d; long double ld; __int128 i; unsigned __int128 u; };
struct holder { union either e; struct padded p; struct aligned a; };
