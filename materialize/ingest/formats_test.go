package ingest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"rbt/internal/diag"
)

const flatSpec = `
root r
record r
field id bigint
field name varchar
field price decimal(9,2)
field weight double
field ok boolean
field day date
field at timestamp
field seen timestamptz
field u uuid
field xs integer[]
field lat double path=geo.lat
ref city city
record city
field name varchar
child zips varchar
`

var flatRecords = []string{
	`{"id":1,"name":"a,\"b\"","price":1.50,"weight":0.1,"ok":true,"day":"2026-01-02","at":"2026-01-02T03:04:05.678","seen":"2026-01-02T03:04:05Z","u":"0123abcd-0123-0123-0123-0123456789ab","xs":[1,null],"geo":{"lat":2.0},"city":{"name":"Ulm","zips":["x","y"]}}`,
	`{"id":9007199254740993,"name":"line\nbreak","price":-2,"weight":1e300,"ok":false,"day":"1969-12-31","at":"0001-01-01T00:00:00","seen":"1999-12-31T23:59:59.999999Z","xs":[],"geo":{"lat":-0.5},"city":{"name":"Ulm","zips":["x","y"]}}`,
	`{"id":7,"name":"é"}`,
	`{"id":1,"name":"a,\"b\"","price":1.5,"weight":0.1,"ok":true,"day":"2026-01-02","at":"2026-01-02T03:04:05.678","seen":"2026-01-02T03:04:05Z","u":"0123abcd-0123-0123-0123-0123456789ab","xs":[1,null],"geo":{"lat":2},"city":{"name":"Ulm","zips":["x","y"]}}`,
}

const flatCSV = "\xEF\xBB\xBFid,name,price,weight,ok,day,at,seen,u,xs,geo.lat,city.name,city.zips\r\n" +
	`01,"a,""b""",1.50,.1,TRUE,2026-01-02,2026-01-02T03:04:05.678,2026-01-02T03:04:05Z,0123abcd-0123-0123-0123-0123456789ab,"[1,null]",2.0,Ulm,"[""x"",""y""]"` + "\r\n" +
	"9007199254740993,\"line\nbreak\",-2,1e300,false,1969-12-31,0001-01-01 00:00,1999-12-31 23:59:59.999999+00,,[],-0.5,Ulm,\"[\"\"x\"\", \"\"y\"\"]\"\r\n" +
	"+7,é,,,,,,,,,,,\r\n\r\n" +
	`1,"a,""b""",1.5,0.1,true,2026-01-02,2026-01-02T03:04:05.678,2026-01-02T03:04:05Z,0123abcd-0123-0123-0123-0123456789ab,"[1,null]",2,Ulm,"[""x"",""y""]"`

// writeColumnar writes the records as Parquet and, from that, as Arrow IPC.
func writeColumnar(t *testing.T, s *testSession, dir string) (parquet string) {
	t.Helper()
	parquet = filepath.Join(dir, "a.parquet")
	in := filepath.Join(dir, "src.json")
	if err := os.WriteFile(in, []byte(strings.Join(flatRecords, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CopyTo(context.Background(), "SELECT * FROM read_json("+text(in)+`, format='newline_delimited', columns={id:'BIGINT',name:'VARCHAR',price:'DECIMAL(9,2)',weight:'DOUBLE',ok:'BOOLEAN',
		day:'DATE',"at":'TIMESTAMP',seen:'TIMESTAMPTZ',u:'UUID',xs:'INTEGER[]',geo:'STRUCT(lat DOUBLE)',city:'STRUCT(name VARCHAR, zips VARCHAR[])'}) ORDER BY ALL`, parquet, nil); err != nil {
		t.Fatal(err)
	}
	return parquet
}

func parquetToIPC(t *testing.T, path string, stream bool) string {
	t.Helper()
	pf, err := file.OpenParquetFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer pf.Close()
	fr, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{BatchSize: 2}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	r, err := fr.GetRecordReader(context.Background(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	var w interface {
		Close() error
	}
	var write func() error
	if stream {
		sw := ipc.NewWriter(&b, ipc.WithSchema(r.Schema()))
		w, write = sw, func() error { return sw.Write(r.RecordBatch()) }
	} else {
		fw, err := ipc.NewFileWriter(&b, ipc.WithSchema(r.Schema()))
		if err != nil {
			t.Fatal(err)
		}
		w, write = fw, func() error { return fw.Write(r.RecordBatch()) }
	}
	for r.Next() {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// contents are the sorted rows of a table without numbers and places: what the
// records say, with their content ids.
func contentsOf(t *testing.T, s *testSession, l *loaded, folder string) []string {
	t.Helper()
	for _, o := range l.staged.Outputs {
		if o.Folder == folder {
			rows := readTable(t, s, o, "_sid", "_line", "_file", "city_sid", "_load_id")
			slices.Sort(rows)
			return rows
		}
	}
	t.Fatal(folder)
	return nil
}

func TestEveryFormatGivesTheSameIDs(t *testing.T) {
	s := newTestSession(t, 2)
	dir := t.TempDir()
	parquet := writeColumnar(t, s, dir)
	pq, err := os.ReadFile(parquet)
	if err != nil {
		t.Fatal(err)
	}
	p := mustCompile(t, flatSpec)
	var want [2][]string
	for i, c := range []struct{ name, content string }{
		{"a.ndjson", strings.Join(flatRecords, "\n")}, {"a.csv", flatCSV}, {"a.csv.gz", compress(t, "gzip", flatCSV)}, {"a.parquet", string(pq)},
		{"a.arrow", parquetToIPC(t, parquet, false)}, {"a.arrows", parquetToIPC(t, parquet, true)},
		{"noextension", parquetToIPC(t, parquet, false)}, {"noextension2", string(pq)},
	} {
		for _, chunk := range []int{64, 1 << 20} {
			got, err := runJob(t, s, &Job{Program: p, Files: writeInput(t, map[string]string{c.name: c.content}), Workers: 3, ChunkBytes: chunk})
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if len(got.tables["_rejects"]) != 0 {
				t.Errorf("%s: %v", c.name, got.tables["_rejects"])
			}
			r, city := contentsOf(t, s, got, "r"), contentsOf(t, s, got, "city")
			if i == 0 {
				want = [2][]string{r, city}
				if len(r) != 3 || len(city) != 1 {
					t.Fatalf("%v %v", r, city)
				}
			}
			if d := cmp.Diff(want, [2][]string{r, city}); d != "" {
				t.Errorf("%s: %s", c.name, d)
			}
		}
	}
}

func TestCSVRows(t *testing.T) {
	s := newTestSession(t, 1)
	run := func(src, content string) (*loaded, error) {
		return runJob(t, s, &Job{Program: mustCompile(t, src), Files: writeInput(t, map[string]string{"a.csv": content}), ChunkBytes: 64})
	}
	got, err := run("root r\nrecord r none\nfield id integer\nfield t varchar", "id,t\n1,\n2,\"\"\n3,NA\n4,null\n5,\"line1\nline2\"\n")
	if err != nil {
		t.Fatal(err)
	}
	got.want(t, map[string][]string{"r": {"1|1|∅|true|1|a.csv|2", "2|2|∅|true|1|a.csv|3", "3|3|NA|true|1|a.csv|4", "4|4|null|true|1|a.csv|5", "5|5|line1\nline2|true|1|a.csv|6"}})

	got, err = run("root r\nrecord r none\nfield tag varchar", "tag\nred\nblue;dark\n")
	if err != nil || len(got.tables["r"]) != 2 {
		t.Errorf("%v %v", got, err)
	}
	got, err = run("root r\nunknown_fields quarantine\nrecord r none\nfield id integer\nfield a varchar\nfield ok varchar", "id,a,ok\n1,x\n2,y,True\n3,z,1,extra\nabc,w,\n4,\"q\"x,1\n5,v,False\n")
	if err != nil {
		t.Fatal(err)
	}
	var rejects []string
	for _, r := range got.tables["_rejects"] {
		rejects = append(rejects, strings.Join(strings.Split(r, "|")[1:], "|"))
	}
	if d := cmp.Diff([]string{
		"2|8|4|∅|∅|syntax|the row has 2 cells, the header 3|1,x",
		"4|21|12|∅|∅|syntax|the row has 4 cells, the header 3|3,z,1,extra",
		"5|33|7|∅|id|type_mismatch|a string where INTEGER is declared|abc,w,",
		`6|40|9|∅|∅|syntax|the row cannot be read: extraneous or missing " in quoted-field|4,"q"x,1`,
	}, rejects); d != "" {
		t.Error(d)
	}
	got.want(t, map[string][]string{"r": {"1|2|y|True|true|1|a.csv|3", "2|5|v|False|true|1|a.csv|7"}})

	got, err = run("root r\nrecord r none\nfield v decimal(38,0)", "v\n70000000000000000123\n80000000000000000456\n")
	if err != nil {
		t.Fatal(err)
	}
	got.want(t, map[string][]string{"r": {"1|70000000000000000123|true|1|a.csv|2", "2|80000000000000000456|true|1|a.csv|3"}})

	_, err = run("root r\nrecord r none\nfield v integer", "v,v\n1,2\n")
	wantDiag(t, err, diag.IngestInput, "a.csv:1", `the column "v" stands twice`)
	// A header that is cut at the wrong places would make every row a record of nothing.
	_, err = run("root r\nrecord r\nfield id integer\nfield v varchar", "id;v\n1;x\n")
	wantDiag(t, err, diag.IngestInput, "a.csv:1", `no column of the header is declared, not even "id;v"`)
	_, err = run("root r\nrecord r\nfield id integer\nfield v varchar", "\xff\xfei\x00d\x00\n\x001\x00\n\x00")
	wantDiag(t, err, diag.IngestInput, "a.csv:1", `no column of the header is declared`)
	_, err = run("root r\nrecord r\nfield id integer\nfield v varchar", "id,v\r1,x\r2,y\r")
	wantDiag(t, err, diag.IngestInput, "a.csv:1", `the lines of the file end in a carriage return alone`)
	got, err = run("root r\nunknown_fields capture\nrecord r none\nfield id integer", "a,b\n1,x\n")
	if err != nil || len(got.tables["r"]) != 1 {
		t.Errorf("what is captured needs no declaration: %v", err)
	}
	// A row begins behind the empty lines before it.
	got, err = run("root r\nrecord r none\nfield id integer\nfield v varchar", "id,v\n\n\r\nx,y\n\n1\n")
	if err != nil {
		t.Fatal(err)
	}
	got.want(t, map[string][]string{"_rejects": {
		"a.csv|4|8|4|∅|id|type_mismatch|a string where INTEGER is declared|x,y",
		"a.csv|6|13|2|∅|∅|syntax|the row has 1 cells, the header 2|1"}})
	for _, empty := range []string{"", "v\n", "\xEF\xBB\xBF"} {
		if got, err = run("root r\nrecord r none\nfield v integer", empty); err != nil || len(got.tables["r"]) != 0 {
			t.Errorf("%q: %v", empty, err)
		}
	}
}

// TestTextsThatParquetCallsOtherwise: JSON columns hold values, not their text,
// at any depth, and the words of an ENUM are texts; other bytes are refused.
func TestTextsThatParquetCallsOtherwise(t *testing.T) {
	s := newTestSession(t, 1)
	write := func(query string) File {
		t.Helper()
		path := filepath.Join(t.TempDir(), "a.parquet")
		if _, err := s.CopyTo(context.Background(), query, path, nil); err != nil {
			t.Fatal(err)
		}
		return File{Path: path, Name: "a.parquet"}
	}
	const src = "root r\nrecord r none\nfield a bigint\nfield e varchar\nfield j json\nref o o\nchild xs json\nrecord o\nfield k bigint\nfield j json path=s.j"
	f := write(`SELECT 1 AS a, 'red'::ENUM('red', 'blue') AS e, '{"b": [1.0, null, "x"]}'::JSON AS j, '{"k": 7}'::JSON AS o, ['1'::JSON, '"y"', NULL] AS xs
		UNION ALL SELECT 2, NULL, 'null', NULL, []`)
	got, err := runJob(t, s, &Job{Program: mustCompile(t, src), Files: []File{f}})
	if err != nil {
		t.Fatal(err)
	}
	got.want(t, map[string][]string{
		"r":        {`1|1|red|{"b":[1.0,null,"x"]}|1|3|true|1|a.parquet|1`, "2|2|∅|∅|∅|0|true|1|a.parquet|2"},
		"o":        {"1|7|∅|false|1|a.parquet|1"},
		"xs":       {"1|0|1", `1|1|"y"`, "1|2|∅"},
		"_rejects": nil,
	})
	f = write(`SELECT 1 AS a, {'j': '[2]'::JSON} AS o, {'s': {'j': '3'::JSON}} AS p`)
	got, err = runJob(t, s, &Job{Program: mustCompile(t, "root r\nrecord r none\nfield j json path=o.j\nfield k bigint path=p.s.j"), Files: []File{f}})
	if err != nil {
		t.Fatal(err)
	}
	got.want(t, map[string][]string{"r": {"1|[2]|3|true|1|a.parquet|1"}})
	_, err = runJob(t, s, &Job{Program: mustCompile(t, src), Files: []File{write("SELECT 'x'::BLOB AS a")}})
	wantDiag(t, err, diag.IngestInput, "a.parquet", `the column "a" cannot be read: its type binary has no form in JSON`)
}

func TestNaNFromColumnarMetadata(t *testing.T) {
	s := newTestSession(t, 1)
	dir := t.TempDir()
	path := filepath.Join(dir, "a.parquet")
	if _, err := s.CopyTo(context.Background(), "SELECT 1 AS a, 'NaN'::DOUBLE AS d", path, nil); err != nil {
		t.Fatal(err)
	}
	got, err := runJob(t, s, &Job{Program: mustCompile(t, "root r\nrecord r\nfield a integer\nmeta field d double"), Files: []File{{Path: path, Name: "a.parquet"}}})
	if err != nil {
		t.Fatal(err)
	}
	got.want(t, map[string][]string{"r": {"1|1|nan|true|1|a.parquet|1"}})
	got, err = runJob(t, s, &Job{Program: mustCompile(t, "root r\nrecord r\nfield a integer\nfield d double"), Files: []File{{Path: path, Name: "a.parquet"}}})
	if err != nil {
		t.Fatal(err)
	}
	got.want(t, map[string][]string{"_rejects": {`a.parquet|1|∅|∅|∅|d|not_finite|NaN cannot be part of an identity|{"a":1,"d":"NaN"}`}})
	if err := os.WriteFile(path, []byte("PAR1xxxx"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = runJob(t, s, &Job{Program: mustCompile(t, "root r\nrecord r\nfield a integer"), Files: []File{{Path: path, Name: "a.parquet"}}})
	wantDiag(t, err, diag.IngestInput, "a.parquet", "cannot be read to its end")
}

// TestDocumentedExample keeps docs/ingest.md true.
func TestDocumentedExample(t *testing.T) {
	src := "root order\nrecord order\nfield order_id varchar required\nfield total decimal(18,2)\nref customer customer required\nchild tags varchar\nchild items {\nfield sku varchar\nfield qty integer\n}\nrecord customer\nfield name varchar\nfield email varchar"
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "ingest.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "```json\n")
	lines, _, _ := strings.Cut(rest, "```")
	got, err := runJob(t, newTestSession(t, 1), &Job{Program: mustCompile(t, src), Files: writeInput(t, map[string]string{"2026-01.ndjson": lines})})
	if err != nil {
		t.Fatal(err)
	}
	got.want(t, map[string][]string{
		"order":    {"1|o-1|12.50|1|2|1|true|1|2026-01.ndjson|1", "2|o-2|99.90|1|∅|2|true|1|2026-01.ndjson|2"},
		"customer": {"1|Ada|ada@example.org|false|2|2026-01.ndjson|1"},
	})
	for i, name := range []string{"order"} {
		for k, row := range readTable(t, newTestSession(t, 1), got.staged.Outputs[i]) {
			if id := strings.Split(row, "|")[1][:4]; !strings.Contains(string(doc), "| "+string(rune('1'+k))+" | "+id+"… |") {
				t.Errorf("%s: the page shows another id than %s", name, id)
			}
		}
	}
	w := strings.Split(got.tables["_rejects"][0], "|")
	if shown := "| " + strings.Join([]string{w[0], w[1], w[2], w[5], w[6], w[7]}, " | ") + " |"; !strings.Contains(string(doc), shown) {
		t.Errorf("the page does not show %s", shown)
	}
}

// TestArrowFilesByTheirFooter: the footer of an Arrow file says where its batches
// are; before them may stand what is no stream.
func TestArrowFilesByTheirFooter(t *testing.T) {
	s := newTestSession(t, 2)
	dir := t.TempDir()
	usual := parquetToIPC(t, writeColumnar(t, s, dir), false)
	other := []byte(usual)
	clear(other[len(arrowMagic) : len(arrowMagic)+16])
	var want []string
	for i, content := range []string{usual, string(other)} {
		got, err := runJob(t, s, &Job{Program: mustCompile(t, flatSpec), Files: writeInput(t, map[string]string{"a.arrow": content}), Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(dir, fmt.Sprintf("out%d", i))
		if err := ConvertArrow(context.Background(), strings.NewReader(content), out); err != nil {
			t.Fatal(err)
		}
		converted, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		rows := append(contentsOf(t, s, got, "r"), string(converted))
		if len(rows) != 4 {
			t.Fatalf("%d rows", len(rows)-1)
		}
		if want == nil {
			want = rows
		}
		if d := cmp.Diff(want, rows); d != "" {
			t.Error(d)
		}
	}
	cut := usual[:len(usual)-20]
	_, err := runJob(t, s, &Job{Program: mustCompile(t, flatSpec), Files: writeInput(t, map[string]string{"a.arrow": cut}), Workers: 2})
	wantDiag(t, err, diag.IngestInput, "a.arrow", "the file cannot be read to its end: arrow/ipc: could not decode footer: arrow/ipc: not an Arrow file")
}

// TestOldTimestampsOfParquet: INT96 holds a day and the nanoseconds in it, and so
// days that nanoseconds of 64 bits do not reach.
func TestOldTimestampsOfParquet(t *testing.T) {
	root := schema.MustGroup(schema.NewGroupNode("schema", parquet.Repetitions.Required, schema.FieldList{schema.NewInt96Node("at", parquet.Repetitions.Required, -1)}, -1))
	var b bytes.Buffer
	w := file.NewParquetWriter(&b, root)
	group, err := w.AppendRowGroupChecked()
	if err != nil {
		t.Fatal(err)
	}
	column, err := group.NextColumn()
	if err != nil {
		t.Fatal(err)
	}
	var values []parquet.Int96
	want := []string{"0001-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z", "2024-02-29T12:00:00Z", "9999-12-31T23:59:59Z"}
	for _, s := range want {
		at, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		day := at.Truncate(24 * time.Hour)
		var v parquet.Int96
		binary.LittleEndian.PutUint64(v[:8], uint64(at.Sub(day)))
		binary.LittleEndian.PutUint32(v[8:], uint32(day.Unix()/86400+2_440_588)) // days since noon of 24 November 4714 BC
		values = append(values, v)
	}
	if _, err := column.(*file.Int96ColumnChunkWriter).WriteBatch(values, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range byRows(t, b.Bytes()) {
		got = append(got, strings.TrimSuffix(strings.TrimPrefix(row, `{"at":"`), `"}`))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestConvertArrow(t *testing.T) {
	s := newTestSession(t, 1)
	dir := t.TempDir()
	parquet := writeColumnar(t, s, dir)
	read := func(path string) (rows []string) {
		cols, err := s.Describe(context.Background(), "SELECT * FROM "+readParquet([]string{path}))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cols {
			rows = append(rows, c.Name+" "+c.Type)
		}
		if err := s.Query(context.Background(), "SELECT CAST(COLUMNS(*) AS VARCHAR) FROM "+readParquet([]string{path})+" ORDER BY ALL", func(v []any) error {
			rows = append(rows, fmt.Sprint(v...))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	for i, stream := range []bool{false, true} {
		out := filepath.Join(dir, fmt.Sprintf("out%d", i))
		if err := ConvertArrow(context.Background(), strings.NewReader(parquetToIPC(t, parquet, stream)), out); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(read(parquet), read(out)); d != "" {
			t.Error(d)
		}
	}
	out := filepath.Join(dir, "bad.out")
	whole := parquetToIPC(t, parquet, true)
	for _, content := range []string{"ARROW1\x00\x00junk", whole[:len(whole)/2]} {
		if err := ConvertArrow(context.Background(), strings.NewReader(content), out); err == nil {
			t.Error("a damaged file was converted")
		}
		if _, err := os.Stat(out); err == nil {
			t.Error("a failed conversion left a file")
		}
	}
}

func TestCSVDialects(t *testing.T) {
	s := newTestSession(t, 1)
	const fields = "root r\nrecord r none\nfield id integer\nfield t varchar\nmeta field m varchar"
	for _, c := range []struct {
		name, content string
		csv           CSVOptions
		want, rejects []string
	}{
		{name: "semicolons", content: "id;t;m\n1;a,b;\n2;\"x;y\";z\n", csv: CSVOptions{Delimiter: Text{Value: ";"}},
			want: []string{"1|1|a,b|∅|true|1|a.csv|2", "2|2|x;y|z|true|1|a.csv|3"}},
		{name: "tabs, a quote of its own and a word for NULL", content: "id\tt\tm\n1\t'a\t''b'''\tNA\n2\t\"q\"\t\nNA\tNA\t'NA'\n",
			csv:  CSVOptions{Delimiter: Text{Value: "\t"}, Quote: &Text{Value: "'"}, Null: &Text{Value: "NA"}},
			want: []string{"1|1|a\t'b'|∅|true|1|a.csv|2", "2|2|\"q\"||true|1|a.csv|3", "3|∅|∅|∅|true|1|a.csv|4"}},
		{name: "no quotes", content: "id|t|m\n1|5\" disk|\"a\n2|\xff|b\n", csv: CSVOptions{Delimiter: Text{Value: "|"}, Quote: &Text{}},
			want: []string{"1|1|5\" disk|\"a|true|1|a.csv|2"}, rejects: []string{"a.csv|3|20|6|∅|t|invalid_utf8"}},
		{name: "no header", content: "1,a,b\n2,c\n3,d,e\n", csv: CSVOptions{NoHeader: Flag{Set: true}},
			want: []string{"1|1|a|b|true|1|a.csv|1", "2|3|d|e|true|1|a.csv|3"}, rejects: []string{"a.csv|2|6|4|∅|∅|syntax"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := parseSpec(fields)
			spec.Input.CSV = c.csv
			p, list := Compile(spec)
			if p == nil {
				t.Fatal(list)
			}
			got, err := runJob(t, s, &Job{Program: p, Files: writeInput(t, map[string]string{"a.csv": c.content})})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got.tables["r"]); d != "" {
				t.Errorf("rows (-want +got):\n%s", d)
			}
			var rejects []string
			for _, r := range got.tables["_rejects"] {
				rejects = append(rejects, strings.Join(strings.Split(r, "|")[:7], "|"))
			}
			if d := cmp.Diff(c.rejects, rejects); d != "" {
				t.Errorf("rejects (-want +got):\n%s", d)
			}
		})
	}
	for _, bad := range []CSVOptions{
		{Delimiter: Text{Value: ";;"}}, {Delimiter: Text{Value: `"`}}, {Delimiter: Text{Value: "\n"}},
		{Quote: &Text{Value: "''"}}, {Quote: &Text{Value: ","}}, {Quote: &Text{Value: "é"}}, {Delimiter: Text{Value: "'"}, Quote: &Text{Value: "'"}},
	} {
		spec := parseSpec(fields)
		spec.Input.CSV = bad
		if p, list := Compile(spec); p != nil || len(list) != 1 || list[0].Code != diag.IngestBadWord {
			t.Errorf("%+v: %v", bad, list)
		}
	}
}

// One reader reads files of every compression one after the other, whole and
// damaged ones.
func TestCompressionsInTurn(t *testing.T) {
	var gz, zst bytes.Buffer
	w := gzip.NewWriter(&gz)
	if _, err := w.Write([]byte("{\"a\":1}\n{\"a\":2}\n")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(&zst)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write([]byte("{\"a\":3}\n")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	two := gz.String() + gz.String() // gzip of two members
	p := mustCompile(t, "root r\nrecord r none\nfield a integer")
	files := writeInput(t, map[string]string{"1.ndjson.gz": gz.String(), "2.ndjson.zst": zst.String(), "3.ndjson": `{"a":4}`,
		"4.ndjson.gz": two, "5.ndjson.zst": zst.String(), "6.ndjson.gz": gz.String()})
	got, err := runJob(t, newTestSession(t, 1), &Job{Program: p, Files: files, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, r := range got.tables["r"] {
		values = append(values, strings.Split(r, "|")[1])
	}
	if d := cmp.Diff("1 2 3 4 1 2 1 2 3 1 2", strings.Join(values, " ")); d != "" {
		t.Error(d)
	}
	bufs := newReadBuffers()
	defer bufs.close()
	for _, c := range []struct{ name, content, want string }{
		{"1.gz", gz.String()[:12], ""}, {"2.gz", gz.String(), "{\"a\":1}\n{\"a\":2}\n"}, {"3.zst", zst.String()[:8], ""}, {"4.zst", zst.String(), "{\"a\":3}\n"},
	} {
		in, err := openInput(writeInput(t, map[string]string{c.name: c.content})[0], "auto", false, bufs)
		if err != nil {
			if c.want != "" {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		text, err := io.ReadAll(in.r)
		in.close()
		if (err == nil) != (c.want != "") || c.want != "" && string(text) != c.want {
			t.Errorf("%s: %q %v", c.name, text, err)
		}
	}
}
