#!/bin/sh
# Fetch a kernel with DWARF from Debian (about 300 MB) and unpack its vmlinux into the folder given.
#
#   sh tests/kernel/fetch.sh build/kernel
#
# Needs Debian's apt-get and dpkg-deb, not root. Nothing is installed.
set -eu

folder=${1:?give the folder to unpack into}
mkdir -p "$folder"
if [ -f "$folder/vmlinux" ]; then
	exit 0
fi
cd "$folder"

meta=linux-image-cloud-amd64-dbg
package=$(apt-cache depends "$meta" 2>/dev/null | awk '$1 == "Depends:" && $2 ~ /^linux-image-.*-dbg$/ { print $2; exit }')
if [ -z "$package" ]; then
	echo "fetch.sh: apt knows no $meta; run 'apt-get update' (Debian, amd64), or set KITLIB_VMLINUX to a vmlinux" >&2
	exit 2
fi
apt-get download "$package"
dpkg-deb --fsys-tarfile "$package"_*.deb | tar -x --wildcards -f - './usr/lib/debug/boot/vmlinux-*'
rm -f "$package"_*.deb
mv usr/lib/debug/boot/vmlinux-* vmlinux
rm -r usr
echo "$package" >version
