// Rust structs and enums. shapes.o.gz was made of it by rustc 1.95 on x86-64:
//   rustc -g --crate-type=lib --remap-path-prefix=$PWD=. --emit=obj shapes.rs && gzip -9 -n shapes.o
pub struct Point { pub a: u8, pub b: u64, pub c: u16 }
pub enum Shape { Circle(f32), Rect { w: u64, h: u8 }, Nothing }
pub enum Flag { A, B }
#[repr(C)]
pub struct Raw { pub x: u8, pub y: u32 }
pub struct Holder { pub o: Option<Box<u32>>, pub t: (u8, u32), pub e: Shape, pub f: Flag, pub arr: [u16; 3], pub r: &'static str }
#[no_mangle]
pub fn use_it(p: &Point, s: &Shape, r: &Raw, h: &Holder, f: Flag) -> u64 {
    p.b + match s { Shape::Circle(_) => 1, Shape::Rect { w, .. } => *w, _ => 2 } + r.y as u64 + h.r.len() as u64 + f as u64
}
