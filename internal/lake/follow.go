package lake

import (
	"io"
	"os"
	"runtime"
	"time"

	"github.com/zeebo/xxh3"
)

const (
	// followEvery is how often a file that grows is looked at. A small file is whole
	// before the first time, and its Following costs a goroutine.
	followEvery = 50 * time.Millisecond
	// followStep is the least number of bytes for which something is done: the disk
	// gets long runs.
	followStep = 4 << 20
	// footerRoom is how far the hash stays behind the end of the file, so that it
	// takes in no footer. A footer that is longer than that, of thousands of columns
	// or row groups, costs that the pages are read again.
	footerRoom = 4 << 20
	// readStep is how much of it is read at once.
	readStep = 64 << 10
)

// Following goes with a Parquet file while it is written from its beginning to
// its end: it hashes what is there already, beside the writer and not after it,
// and has the disk begin to write it, so that little is left to wait for when the
// file is made durable. It never changes what the file holds, and where it learns
// nothing all of it is done later.
type Following struct {
	name    string
	hash    *xxh3.Hasher // nil where no hash is wanted
	buffer  []byte       // of readStep once something is hashed: what is thrown away at each look adds up
	stop    chan struct{}
	stopped chan struct{}

	file    *os.File // nil until the file is there
	hashed  int64    // bytes of the beginning that hash has taken in
	flushed int64    // bytes of the beginning that the disk was given
	broken  bool     // something could not be read; the hash counts for nothing
	whole   os.FileInfo
}

// Follow follows a file, by its absolute path, that is about to be written by one
// writer, and hashes it if that is wanted. Stop must be called when it is written.
// It is nil, which may be stopped too, where files cannot be followed: on a file
// system that a test watches, and on Windows, where an open file cannot be removed.
func (l *Lake) Follow(name string, hash bool) *Following {
	if _, ok := l.fs.(osFS); !ok || runtime.GOOS == "windows" {
		return nil
	}
	f := &Following{name: name, stop: make(chan struct{}), stopped: make(chan struct{})}
	if hash {
		f.hash = xxh3.New()
	}
	go func() {
		defer close(f.stopped)
		tick := time.NewTicker(followEvery)
		defer tick.Stop()
		for {
			select {
			case <-f.stop:
				return
			case <-tick.C:
				f.look()
			}
		}
	}()
	return f
}

// Stop ends the following. The file is whole now, or will never be.
func (f *Following) Stop() {
	if f == nil {
		return
	}
	close(f.stop)
	<-f.stopped
	if f.file == nil {
		return
	}
	f.flush()
	f.whole, _ = f.file.Stat() // nil where it cannot be said, which begun sees
	_ = f.file.Close()         // it was only read
}

// look takes in what came since the last time.
func (f *Following) look() {
	if f.file == nil {
		file, err := os.Open(f.name)
		if err != nil {
			return // it is not there yet
		}
		f.file = file
	}
	size := f.flush()
	if n := size - footerRoom - f.hashed; f.hash != nil && !f.broken && n >= followStep {
		f.broken = f.take(n) != nil
		f.hashed += n
	}
}

// take hashes the next n bytes of the file.
func (f *Following) take(n int64) error {
	if f.buffer == nil {
		f.buffer = make([]byte, readStep)
	}
	for n > 0 {
		part := f.buffer[:min(n, readStep)]
		if _, err := io.ReadFull(f.file, part); err != nil {
			return err
		}
		_, _ = f.hash.Write(part) // a hash takes everything
		n -= int64(len(part))
	}
	return nil
}

// flush gives the disk what came since the last time, and gives the size of the
// file.
func (f *Following) flush() int64 {
	info, err := f.file.Stat()
	if err != nil {
		return 0
	}
	size := info.Size()
	if to := size - size%followStep; to > f.flushed {
		beginWriting(f.file, f.flushed, to-f.flushed)
		f.flushed = to
	}
	return size
}

// begun gives the hash of the beginning of a file, and how long that is: nil and 0
// where nothing was hashed, another file was followed, or the hash went past the
// end of the pages.
func (f *Following) begun(fsys FS, pages int64) (*xxh3.Hasher, int64) {
	if f == nil || f.hashed == 0 || f.broken || f.whole == nil || f.hashed > pages {
		return nil, 0
	}
	info, err := fsys.Stat(f.name)
	if err != nil || !os.SameFile(info, f.whole) || info.Size() != f.whole.Size() {
		return nil, 0
	}
	return f.hash, f.hashed
}
