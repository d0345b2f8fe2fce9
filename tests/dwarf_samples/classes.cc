// What C++ does to a layout; compiled by tests/test_dwarf_cpp.py.
namespace std {
template <typename T> struct atomic { T value; };
struct mutex { long word[5]; };
}
namespace ns {
struct Pod { int a; char b; };
struct Base { long x; char c; virtual ~Base(); static int count; };
struct Empty {};
struct NonPod { NonPod(); int a; char b; };
struct Derived : Base { char d; int e; };
struct FromNonPod : NonPod { char tail; };
struct WithEmpty : Empty { int q; };
struct Two : Pod, NonPod { short last; };
class Virtual : virtual public Pod { int z; };
template <typename T, int N> struct Box { T item[N]; T *p; T &r; static const int k = N; };
struct User {
	std::mutex lock;
	std::atomic<int> hits;
	int Pod::*data;
	void (Pod::*call)(int);
	Box<short, 3> box;
	enum class Kind : char { A } kind;
	enum class Wide { B } wide;
	struct Inner { int i; } in;
	decltype(nullptr) null;
	int &&moved;
	bool ok;
	NonPod own;
};
struct Shares { int first; [[no_unique_address]] Empty none; char last; };
typedef struct { int a; } Named;
struct Hidden { private: int p; public: char q; protected: long r; };
}
using Alias = ns::Pod;
ns::Base::~Base() {}
ns::NonPod::NonPod() {}
ns::Derived d; ns::FromNonPod f; ns::WithEmpty w; ns::Virtual v; ns::User *u; ns::Named n; Alias a; ns::Shares s; ns::Two t;
ns::Hidden h; ns::User::Inner i;
