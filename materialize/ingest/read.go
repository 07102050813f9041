package ingest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"rbt/internal/diag"
)

// File is one input file: where it lies, and how it is called in _file and in
// the ledger (relative to the input's root, with "/"). Shown is its name in
// messages, "" for Name.
type File struct {
	Path  string
	Name  string
	Shown string
}

// chunk is a piece of one file that a worker encodes: whole records. For
// newline-delimited JSON spans is nil and every line is a record; otherwise
// spans tells where the records lie.
type chunk struct {
	file  int
	data  []byte
	base  int64 // position of data[0]; with spans, of the file's start
	line  int64 // line of data[0]
	spans []span
	paths []string // what span.path indexes
	raw   []byte   // what the file says, where data was made from another format
	plain bool     // data is the file's own text
}

// first is where the chunk's records begin.
func (c *chunk) first(shift uint) int64 {
	if len(c.spans) == 0 {
		return c.base
	}
	return int64(c.file)<<shift + c.spans[0].pos
}

// span is one record inside a chunk. offset and length are its place in the
// file, which differs from data where the file is not JSON.
type span struct {
	start, end  int
	pos         int64 // within the positions of the file; grows by at least end-start
	offset      int64 // -1 where the format has no place by bytes
	length      int64
	line        int64
	path        int
	index       int64
	raw, rawEnd int // in chunk.raw
}

// cursor reads one file as a sequence of chunks. next fills c (whose buffers
// it reuses) and returns io.EOF after the last. A fault of the file's structure
// that ends it early is not an error: it is given by broken.
type cursor interface {
	next(ctx context.Context, c *chunk) error
	// broken returns the reject for what could not be cut into records.
	broken() []reject
}

// maxRecord is the longest record, in bytes: a longer one is a file of another
// format rather than a record.
const maxRecord = 256 << 20

var bom = []byte{0xEF, 0xBB, 0xBF}

// input is one opened file.
type input struct {
	f      *os.File
	raw    *countingReader
	r      *bufio.Reader // decompressed
	size   int64
	info   os.FileInfo
	hash   hash.Hash
	name   string
	random bool // read by places and not from front to end
}

type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// readBuffer is what lies between the file or decompressor and the cursors.
const readBuffer = 256 << 10

// readBuffers are the buffers and decompressors of one goroutine that reads file
// after file: with thousands of small files they would cost more than the
// reading.
type readBuffers struct {
	raw, plain *bufio.Reader
	gzip       *gzip.Reader
	zstd       *zstd.Decoder
}

func newReadBuffers() *readBuffers {
	return &readBuffers{raw: bufio.NewReaderSize(nil, readBuffer)}
}

// decompressed is a reader of what the file in raw holds.
func (b *readBuffers) decompressed(compression string) (r *bufio.Reader, err error) {
	var plain io.Reader
	switch {
	case compression == "zstd" && b.zstd == nil:
		b.zstd, err = zstd.NewReader(b.raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		plain = b.zstd
	case compression == "zstd":
		err = b.zstd.Reset(b.raw)
		plain = b.zstd
	case b.gzip == nil:
		b.gzip = new(gzip.Reader)
		fallthrough
	default:
		err = b.gzip.Reset(b.raw)
		plain = b.gzip
	}
	if err != nil {
		return nil, err
	}
	if b.plain == nil {
		b.plain = bufio.NewReaderSize(nil, readBuffer)
	}
	b.plain.Reset(plain)
	return b.plain, nil
}

func (b *readBuffers) close() {
	if b.zstd != nil {
		b.zstd.Close()
	}
}

// openInput opens a file, of which one at a time has the buffers. With hashed,
// the hash of its bytes is taken along.
func openInput(f File, compression string, hashed bool, bufs *readBuffers) (*input, error) {
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, unopened(diag.Pos{File: f.Name}, fmt.Errorf("open input: %w", err))
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("stat input: %w", err)
	}
	in := &input{f: file, raw: &countingReader{r: file}, size: info.Size(), info: info, name: f.Name}
	if hashed {
		in.hash = sha256.New()
		in.raw.r = io.TeeReader(file, in.hash)
	}
	br := bufs.raw
	br.Reset(in.raw)
	in.r = br
	if c := decideCompression(f.Name, compression, br); c != "none" {
		if in.r, err = bufs.decompressed(c); err != nil {
			file.Close()
			return nil, in.unreadable(err)
		}
	}
	return in, nil
}

func decideCompression(name, declared string, br *bufio.Reader) string {
	if declared != "auto" {
		return declared
	}
	head, _ := br.Peek(4)
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return "gzip"
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return "zstd"
	case len(head) == 0:
		return "none"
	case strings.HasSuffix(strings.ToLower(name), ".gz"):
		return "gzip"
	case hasSuffixes(strings.ToLower(name), ".zst", ".zstd"):
		return "zstd"
	}
	return "none"
}

func hasSuffixes(s string, suffixes ...string) bool {
	for _, x := range suffixes {
		if strings.HasSuffix(s, x) {
			return true
		}
	}
	return false
}

// unreadable says that a file cannot be read to its end. No policy skips that:
// nobody knows how many records are lost.
func (in *input) unreadable(err error) error {
	return diag.Errorf(diag.IngestInput, diag.Pos{File: in.name}, "the file cannot be read to its end: %v", err).
		WithHint("fetch it again, or take it out of the input")
}

// finish checks that exactly the bytes of the file were read.
func (in *input) finish() error {
	if in.random && in.hash == nil {
		in.raw.n = in.size
		return nil
	}
	if in.random {
		// The bytes in between were not asked for; the rest is read for its hash.
		if _, err := in.f.Seek(0, io.SeekStart); err != nil {
			return in.unreadable(err)
		}
		in.raw.n = 0
		in.hash.Reset()
		in.r.Reset(in.raw)
	}
	if _, err := io.Copy(io.Discard, in.r); err != nil {
		return in.unreadable(err)
	}
	if _, err := io.Copy(io.Discard, in.raw); err != nil { // what follows the compressed data
		return in.unreadable(err)
	}
	if in.raw.n != in.size {
		return diag.Errorf(diag.IngestInput, diag.Pos{File: in.name},
			"%d bytes were read of a file of %d bytes; it changed meanwhile", in.raw.n, in.size)
	}
	return nil
}

func (in *input) close() {
	in.f.Close()
}

// decideFormat names a file's format: as declared, by its extension, then by
// its first bytes.
func decideFormat(name, declared string, r *bufio.Reader, plainPath bool) string {
	if declared != "auto" {
		return declared
	}
	low := strings.ToLower(name)
	for _, x := range []string{".gz", ".zst", ".zstd"} {
		low = strings.TrimSuffix(low, x)
	}
	switch {
	case hasSuffixes(low, ".ndjson", ".jsonl"):
		return "ndjson"
	case hasSuffixes(low, ".csv"):
		return "csv"
	case hasSuffixes(low, ".parquet"):
		return "parquet"
	case hasSuffixes(low, ".arrow", ".arrows", ".ipc", ".feather"):
		return "arrow_ipc"
	case hasSuffixes(low, ".json") && !plainPath:
		return "json"
	}
	head, _ := r.Peek(readBuffer)
	switch {
	case bytes.HasPrefix(head, []byte("PAR1")):
		return "parquet"
	case bytes.HasPrefix(head, []byte("ARROW1")):
		return "arrow_ipc"
	}
	// A first line that is a whole object means newline-delimited JSON, which
	// recovers after a broken record where a document cannot.
	line, rest, _ := bytes.Cut(bytes.TrimPrefix(head, bom), []byte{'\n'})
	line = bytes.TrimSpace(line)
	if _, ok := validJSON(line); ok && len(line) > 0 && line[0] == '{' && len(rest) > 0 {
		return "ndjson"
	}
	return "json"
}

// lineCursor cuts newline-delimited text into chunks. No byte of JSON's strings
// is a raw newline, so that every newline ends a record.
type lineCursor struct {
	in      *input
	file    int
	shift   uint
	size    int
	off     int64
	line    int64
	rest    []byte
	ended   bool
	rejects []reject
}

func newLineCursor(in *input, file int, shift uint, size int) *lineCursor {
	c := &lineCursor{in: in, file: file, shift: shift, size: size, line: 1}
	if head, _ := in.r.Peek(3); bytes.Equal(head, bom) {
		in.r.Discard(3)
		c.off = 3
	}
	return c
}

func (l *lineCursor) broken() []reject {
	r := l.rejects
	l.rejects = nil
	return r
}

func (l *lineCursor) next(ctx context.Context, c *chunk) error {
	buf := append(c.data[:0], l.rest...)
	l.rest = l.rest[:0]
	scanned := len(buf)
	for !l.ended {
		if err := ctx.Err(); err != nil {
			return err
		}
		want := max(l.size, scanned+l.size/2)
		if cap(buf) < want {
			grown := make([]byte, len(buf), want)
			copy(grown, buf)
			buf = grown
		}
		n, err := io.ReadFull(l.in.r, buf[len(buf):want])
		buf = buf[:len(buf)+n]
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			l.ended = true
			break
		}
		if err != nil {
			return l.in.unreadable(err)
		}
		if i := bytes.LastIndexByte(buf[scanned:], '\n'); i >= 0 {
			cut := scanned + i + 1
			l.rest = append(l.rest, buf[cut:]...)
			buf = buf[:cut]
			break
		}
		scanned = len(buf)
		if len(buf) > maxRecord {
			if buf, err = l.tooLarge(buf); err != nil {
				return err
			}
			scanned = len(buf)
		}
	}
	if len(buf) == 0 && l.ended {
		return io.EOF
	}
	*c = chunk{file: l.file, data: buf, base: int64(l.file)<<l.shift + l.off, line: l.line, plain: true}
	l.off += int64(len(buf))
	l.line += int64(bytes.Count(buf, []byte{'\n'}))
	if l.off >= 1<<l.shift {
		return diag.Errorf(diag.IngestInput, diag.Pos{File: l.in.name}, "the file is larger than %d bytes, which is the most beside so many files", int64(1)<<l.shift)
	}
	return nil
}

// tooLarge turns an endless line into a reject and reads over it. The chunk
// goes on after it.
func (l *lineCursor) tooLarge(buf []byte) ([]byte, error) {
	length := int64(len(buf))
	for {
		piece, err := l.in.r.ReadSlice('\n')
		length += int64(len(piece))
		if err == bufio.ErrBufferFull {
			continue
		}
		if err == io.EOF {
			l.ended = true
		} else if err != nil {
			return nil, l.in.unreadable(err)
		}
		break
	}
	l.rejects = append(l.rejects, reject{pos: int64(l.file)<<l.shift + l.off, line: l.line, offset: l.off, length: length, path: "$",
		reason: reasonTooLarge, msg: fmt.Sprintf("a line of more than %d bytes", maxRecord), raw: bytes.Clone(buf[:maxRaw])})
	l.off += length
	l.line++
	return buf[:0], nil
}
