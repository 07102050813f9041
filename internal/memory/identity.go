package memory

import (
	"encoding/binary"
	"io/fs"
	"time"
)

// Identity tells one content of a file from another: a file that was written to or
// replaced has another time of change, which no program can set back. The zero
// Identity is that of no file.
type Identity struct {
	Size         int64 // in bytes
	Mtime, Ctime int64 // of modification and of change, in ns since 1970
	Device       uint64
	Inode        uint64
}

// age is how long a file must have been left alone before it is known by its
// identity: one that is written twice within a tick of the file system's clock has
// the same identity both times. No tick of a clock that tells parts of a second is
// longer than some hundredths of one.
const age, fineAge = 3 * time.Second, 300 * time.Millisecond

// IdentityOf gives the identity of a file; zero where the system tells too little,
// and of what is no file.
func IdentityOf(info fs.FileInfo) Identity {
	if !info.Mode().IsRegular() {
		return Identity{}
	}
	return identityOf(info)
}

// Settled reports whether a file was left alone long enough, at a time in ns since
// 1970 before the file is read, to be known by its identity.
func (id Identity) Settled(now int64) bool {
	least := fineAge
	if id.Ctime%int64(time.Second) == 0 {
		least = age
	}
	return id != (Identity{}) && id.Ctime <= now-least.Nanoseconds()
}

// AppendIdentity writes an identity behind b.
func AppendIdentity(b []byte, id Identity) []byte {
	for _, n := range [...]int64{id.Size, id.Mtime, id.Ctime} {
		b = binary.AppendVarint(b, n)
	}
	return binary.AppendUvarint(binary.AppendUvarint(b, id.Device), id.Inode)
}

// Identity reads what AppendIdentity wrote.
func (r *Reader) Identity() Identity {
	return Identity{Size: r.Varint(), Mtime: r.Varint(), Ctime: r.Varint(), Device: r.Uvarint(), Inode: r.Uvarint()}
}
