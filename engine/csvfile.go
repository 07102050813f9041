package engine

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// csvDialect is how a CSV file is written. Nothing of it is ever guessed.
type csvDialect struct {
	delim    string
	quote    byte // 0: values are never quoted
	escape   byte // before a quote in a quoted value
	comment  byte // begins a comment line; 0: none
	skip     int  // lines before the header
	header   bool
	nullText string
	encoding string // "", utf-8, utf-16, latin-1
	date     string // strptime formats; "" is ISO
	time     string
	decimal  string // separator, "." or ","
}

// dialectOf reads the options of a source or seed, which were checked when the
// project was loaded.
func dialectOf(options map[string]string) csvDialect {
	d := csvDialect{delim: ",", quote: '"', header: true, decimal: "."}
	if v, ok := options["delimiter"]; ok {
		d.delim = v
	}
	if v, ok := options["quote"]; ok {
		d.quote = firstByte(v)
	}
	d.escape = d.quote
	if v, ok := options["escape"]; ok && v != "" {
		d.escape = v[0]
	}
	d.comment = firstByte(options["comment"])
	d.skip, _ = strconv.Atoi(options["skip"])
	d.header = options["header"] != "false"
	d.nullText, d.encoding = options["nullstr"], options["encoding"]
	d.date, d.time = options["dateformat"], options["timestampformat"]
	if v := options["decimal_separator"]; v != "" {
		d.decimal = v
	}
	return d
}

func firstByte(s string) byte {
	if s == "" {
		return 0
	}
	return s[0]
}

// csvReader reads the records of a CSV file with the lines on which they begin.
// It exists for headers, for seeds and for finding the place of an error; the
// data itself is read by the engine.
type csvReader struct {
	d     csvDialect
	r     *bufio.Reader
	line  int // of the next record, from 1
	width int // columns of a record; 0 while it is not known
	file  io.Closer
	eol   string // how the first line ends
	mixed int    // the first line that ends otherwise; 0: none
}

// errCSV is a problem of a record, at the line on which the record begins.
type errCSV struct {
	line int
	msg  string
}

// Error gives the problem.
func (e *errCSV) Error() string { return e.msg }

func openCSV(file, compression string, d csvDialect) (*csvReader, error) {
	f, err := openFile(file, compression)
	if err != nil {
		return nil, err
	}
	var r io.Reader = f
	switch d.encoding {
	case "utf-16":
		r = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder().Reader(f)
	case "latin-1":
		r = charmap.ISO8859_1.NewDecoder().Reader(f)
	default:
		r = encoding.Nop.NewDecoder().Reader(f)
	}
	c := &csvReader{d: d, r: bufio.NewReaderSize(r, 1<<16), line: 1, file: f}
	if bom, err := c.r.Peek(3); err == nil && string(bom) == "\ufeff" {
		_, _ = c.r.Discard(3)
	}
	for range d.skip {
		if err := c.skipLine(); err != nil && !errors.Is(err, io.EOF) {
			_ = c.Close()
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
	}
	return c, nil
}

// Close closes the file.
func (c *csvReader) Close() error { return c.file.Close() }

func (c *csvReader) skipLine() error {
	text, err := c.r.ReadString('\n')
	switch {
	case strings.HasSuffix(text, "\r\n"):
		c.endLine("\r\n")
	case text != "":
		c.endLine("\n")
	}
	return err
}

// endLine counts a line that ends with eol.
func (c *csvReader) endLine(eol string) {
	if c.eol == "" {
		c.eol = eol
	}
	if c.eol != eol && c.mixed == 0 {
		c.mixed = c.line
	}
	c.line++
}

// next reads one record; line is where it begins. It returns io.EOF at the end
// and *errCSV for a record that is not CSV.
func (c *csvReader) next() (fields []string, line int, err error) {
	for {
		if line, err = c.begin(); err != nil {
			return nil, line, err
		}
		fields, err = c.record(line)
		if err != nil {
			return nil, line, err
		}
		// The engine skips empty lines, but where a line is one value.
		if len(fields) == 1 && fields[0] == "" && c.width != 1 {
			continue
		}
		return fields, line, nil
	}
}

// begin moves to the next record, past comment lines.
func (c *csvReader) begin() (int, error) {
	for {
		b, err := c.r.Peek(1)
		if err != nil {
			return c.line, err
		}
		if c.d.comment == 0 || b[0] != c.d.comment {
			return c.line, nil
		}
		if err := c.skipLine(); err != nil {
			return c.line, err
		}
	}
}

// record reads the values of one record up to and with its line end.
func (c *csvReader) record(line int) ([]string, error) {
	var fields []string
	for {
		value, end, err := c.value(line)
		if err != nil {
			return nil, err
		}
		fields = append(fields, value)
		if end {
			return fields, nil
		}
	}
}

// value reads one value and what ends it; end says that it is the record's last.
func (c *csvReader) value(line int) (value string, end bool, err error) {
	b, err := c.r.ReadByte()
	if errors.Is(err, io.EOF) {
		return "", true, nil
	}
	if err != nil {
		return "", false, err
	}
	if c.d.quote != 0 && b == c.d.quote {
		return c.quotedValue(line)
	}
	var text strings.Builder
	for {
		if end, done := c.ends(b); done {
			return text.String(), end, nil
		}
		text.WriteByte(b)
		if b, err = c.r.ReadByte(); errors.Is(err, io.EOF) {
			return text.String(), true, nil
		} else if err != nil {
			return "", false, err
		}
	}
}

// quotedValue reads a value after its opening quote.
func (c *csvReader) quotedValue(line int) (string, bool, error) {
	var text strings.Builder
	for {
		b, err := c.r.ReadByte()
		if errors.Is(err, io.EOF) {
			return "", false, &errCSV{line, "a quoted value is never closed"}
		}
		if err != nil {
			return "", false, err
		}
		next, _ := c.r.Peek(1)
		switch {
		case b == c.d.escape && len(next) == 1 && (next[0] == c.d.quote || next[0] == c.d.escape):
			text.WriteByte(next[0])
			_, _ = c.r.Discard(1)
		case b == c.d.quote:
			if b, err = c.r.ReadByte(); errors.Is(err, io.EOF) {
				return text.String(), true, nil
			} else if err != nil {
				return "", false, err
			}
			end, done := c.ends(b)
			if !done {
				return "", false, &errCSV{line, "text follows the closing quote of a value"}
			}
			return text.String(), end, nil
		default:
			if b == '\n' {
				c.line++
			}
			text.WriteByte(b)
		}
	}
}

// ends reports whether byte b, just read, ends a value (done) and the record
// (end), and reads the rest of what ends it.
func (c *csvReader) ends(b byte) (end, done bool) {
	switch {
	case b == '\n':
		c.endLine("\n")
		return true, true
	case b == '\r':
		eol := "\r"
		if next, _ := c.r.Peek(1); len(next) == 1 && next[0] == '\n' {
			_, _ = c.r.Discard(1)
			eol = "\r\n"
		}
		c.endLine(eol)
		return true, true
	case b == c.d.delim[0]:
		rest := c.d.delim[1:]
		if next, _ := c.r.Peek(len(rest)); string(next) == rest {
			_, _ = c.r.Discard(len(rest))
			return false, true
		}
	}
	return false, false
}
