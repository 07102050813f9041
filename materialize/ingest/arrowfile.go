package ingest

import (
	"bufio"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// arrowBatches are the record batches of Arrow IPC in their order. Each belongs to
// the reader until the next.
type arrowBatches interface {
	Schema() *arrow.Schema
	Next() bool
	RecordBatch() arrow.RecordBatch
	Err() error
	Release()
}

// arrowMagic opens the file form of Arrow IPC. Most writers put the stream form
// behind it, but only the footer says for certain where the batches are: Polars (2.1)
// writes a schema there that is no message.
const arrowMagic = "ARROW1\x00\x00"

// openArrow reads Arrow IPC from r. whole is what r reads, where it can be read in
// any order, or nil; byFooter says that it was, and that r was left alone.
func openArrow(r *bufio.Reader, whole ipc.ReadAtSeeker) (batches arrowBatches, byFooter bool, err error) {
	if whole != nil {
		head := make([]byte, len(arrowMagic))
		if n, _ := whole.ReadAt(head, 0); string(head[:n]) == arrowMagic {
			f, err := ipc.NewFileReader(whole, ipc.WithAllocator(memory.NewGoAllocator()))
			if err != nil {
				return nil, true, err
			}
			return &arrowFile{file: f}, true, nil
		}
	}
	if head, _ := r.Peek(len(arrowMagic)); string(head) == arrowMagic {
		if _, err := r.Discard(len(arrowMagic)); err != nil {
			return nil, false, err
		}
	}
	batches, err = ipc.NewReader(r, ipc.WithAllocator(memory.NewGoAllocator()))
	return batches, false, err
}

// arrowFile gives the batches that a footer lists.
type arrowFile struct {
	file  *ipc.FileReader
	batch arrow.RecordBatch
	err   error
}

func (f *arrowFile) Schema() *arrow.Schema { return f.file.Schema() }

func (f *arrowFile) Next() bool {
	if f.err == nil {
		f.batch, f.err = f.file.Read()
	}
	return f.err == nil
}

func (f *arrowFile) RecordBatch() arrow.RecordBatch { return f.batch }

func (f *arrowFile) Err() error {
	if f.err == io.EOF {
		return nil
	}
	return f.err
}

func (f *arrowFile) Release() { f.err = f.file.Close() }
