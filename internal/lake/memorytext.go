package lake

import (
	"encoding/binary"
	"maps"
	"slices"

	"rbt/internal/memory"
)

// A receipt in memory is written field by field in the order of the struct. Receipts
// with stats or with keys of other versions are not kept.

func appendMap(b []byte, m map[string]string) []byte {
	b = memory.AppendLength(b, len(m), m == nil)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		b = memory.AppendText(memory.AppendText(b, key), m[key])
	}
	return b
}

// receiptText gives a receipt as memory keeps it; "" where it does not.
func receiptText(r Receipt) string {
	if r.Stats != nil || len(r.Extra) > 0 {
		return ""
	}
	b := binary.AppendVarint(make([]byte, 0, 1024), int64(r.Version))
	for _, s := range []string{r.Name, string(r.Form), r.Path, r.Commit, r.Fingerprint, r.Inputs.SQL} {
		b = memory.AppendText(b, s)
	}
	b = appendMap(appendMap(b, r.Inputs.Config), r.Inputs.Parents)
	b = memory.AppendLength(b, len(r.Inputs.Sources), r.Inputs.Sources == nil)
	for _, file := range slices.Sorted(maps.Keys(r.Inputs.Sources)) {
		s := r.Inputs.Sources[file]
		b = memory.AppendText(b, file)
		for _, n := range []int64{s.Size, s.Mtime, s.Ctime} {
			b = binary.AppendVarint(b, n)
		}
	}
	b = memory.AppendOptional(memory.AppendText(b, r.Inputs.Engine), r.Volatile)
	b = memory.AppendLength(b, len(r.Outputs), r.Outputs == nil)
	for _, o := range r.Outputs {
		b = appendOutput(b, o)
	}
	b = memory.AppendText(memory.AppendText(b, r.SQL), r.TestsHash)
	b = memory.AppendLength(b, len(r.Superseded), r.Superseded == nil)
	for _, s := range r.Superseded {
		b = memory.AppendText(b, s)
	}
	b = memory.AppendText(binary.AppendVarint(b, r.NextPart), r.RunID)
	return string(binary.AppendVarint(b, r.PublishedAt))
}

func appendOutput(b []byte, o Output) []byte {
	b = memory.AppendLength(memory.AppendText(b, o.Relation), len(o.Files), o.Files == nil)
	for _, f := range o.Files {
		b = memory.AppendText(binary.AppendVarint(memory.AppendText(b, f.Path), f.Bytes), f.Commit)
	}
	b = memory.AppendLength(binary.AppendVarint(b, o.Rows), len(o.Columns), o.Columns == nil)
	for _, c := range o.Columns {
		b = memory.AppendText(memory.AppendText(b, c.Name), c.Type)
	}
	b = memory.AppendOptional(b, o.ContentHash)
	if o.Greatest == nil {
		return append(b, 0)
	}
	return appendMap(memory.AppendText(append(b, 1), o.Greatest.Over), o.Greatest.Values)
}

// readReceiptText reads what receiptText wrote. Its texts are parts of the one that
// is read.
func readReceiptText(said string) (Receipt, bool) {
	r := &receiptReader{memory.NewReader(said)}
	var out Receipt
	out.Version, out.Name, out.Form = int(r.Varint()), r.Text(), Form(r.Text())
	out.Path, out.Commit, out.Fingerprint, out.Inputs.SQL = r.Text(), r.Text(), r.Text(), r.Text()
	out.Inputs.Config, out.Inputs.Parents = r.texts(), r.texts()
	if n := r.Length(); n >= 0 {
		out.Inputs.Sources = make(map[string]FileStamp, n)
		for range n {
			file := r.Text()
			out.Inputs.Sources[file] = FileStamp{Size: r.Varint(), Mtime: r.Varint(), Ctime: r.Varint()}
		}
	}
	out.Inputs.Engine, out.Volatile = r.Text(), r.Optional()
	if n := r.Length(); n >= 0 {
		out.Outputs = make([]Output, n)
		for i := range out.Outputs {
			out.Outputs[i] = r.output()
		}
	}
	out.SQL, out.TestsHash = r.Text(), r.Text()
	if n := r.Length(); n >= 0 {
		out.Superseded = make([]string, n)
		for i := range out.Superseded {
			out.Superseded[i] = r.Text()
		}
	}
	out.NextPart, out.RunID, out.PublishedAt = r.Varint(), r.Text(), r.Varint()
	return out, r.Done()
}

// receiptReader takes the parts of a receipt off a text.
type receiptReader struct{ memory.Reader }

func (r *receiptReader) texts() map[string]string {
	n := r.Length()
	if n < 0 {
		return nil
	}
	m := make(map[string]string, n)
	for range n {
		key := r.Text()
		m[key] = r.Text()
	}
	return m
}

func (r *receiptReader) output() Output {
	o := Output{Relation: r.Text()}
	if n := r.Length(); n >= 0 {
		o.Files = make([]File, n)
		for i := range o.Files {
			o.Files[i] = File{Path: r.Text(), Bytes: r.Varint(), Commit: r.Text()}
		}
	}
	o.Rows = r.Varint()
	if n := r.Length(); n >= 0 {
		o.Columns = make([]Column, n)
		for i := range o.Columns {
			o.Columns[i] = Column{Name: r.Text(), Type: r.Text()}
		}
	}
	o.ContentHash = r.Optional()
	if over := r.Optional(); over != nil {
		o.Greatest = &Greatest{Over: *over, Values: r.texts()}
	}
	return o
}
