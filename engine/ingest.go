package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/internal/memory"
	"rbt/internal/project"
	"rbt/materialize"
	"rbt/materialize/ingest"
)

// Problems reports what is wrong with the declarations of ingests, before a byte
// of their input is read.
func (e *Engine) Problems() diag.List {
	var problems diag.List
	for _, m := range e.o.Project.Models {
		if m.Records != nil && !e.o.Project.Vague(m) {
			_, list := ingest.Compile(ingestSpec(m))
			problems = append(problems, list...)
		}
	}
	return problems.Sort()
}

// IngestFiles gives the identity of every input file of an ingest as it is now.
func (e *Engine) IngestFiles(m *project.Model) (map[string]lake.FileStamp, error) {
	files, err := ingestInput(m)
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.Path
	}
	if len(paths) < manyFiles {
		return fileStamps(e.o.Project, paths)
	}
	return folderStamps(e.o.Project, paths)
}

// manyFiles is from how many files on an ingest is known by its folders: file by
// file, its receipt and the comparison would cost more than to look at the files.
const manyFiles = 10_000

// folderStamps gives the identity of files folder by folder, under the name
// folder/*: the number of its files, and a hash of 128 bits over their names
// and identities in the place of the times.
func folderStamps(p *project.Project, files []string) (map[string]lake.FileStamp, error) {
	found, err := stampFiles(files)
	if err != nil {
		return nil, err
	}
	type folder struct {
		files int64
		text  []byte
	}
	folders := map[string]*folder{}
	for i, file := range files { // those of one folder are sorted
		dir, name := filepath.Split(file)
		f := folders[dir]
		if f == nil {
			f = &folder{}
			folders[dir] = f
		}
		f.files++
		f.text = binary.BigEndian.AppendUint32(f.text, uint32(len(name)))
		f.text = append(f.text, name...)
		for _, v := range []int64{found[i].Size, found[i].Mtime, found[i].Ctime} {
			f.text = binary.BigEndian.AppendUint64(f.text, uint64(v))
		}
	}
	stamps := make(map[string]lake.FileStamp, len(folders))
	for dir, f := range folders {
		sum := sha256.Sum256(f.text)
		stamps[shownPath(p, filepath.Join(dir, "*"))] = lake.FileStamp{
			Size: f.files, Mtime: int64(binary.BigEndian.Uint64(sum[:8])), Ctime: int64(binary.BigEndian.Uint64(sum[8:16])),
		}
	}
	return stamps, nil
}

// ingestInput lists the input of an ingest in the order in which it is read.
func ingestInput(m *project.Model) ([]ingest.File, error) {
	in := m.Records.Input
	files, err := ingest.Discover(in.Patterns, in.Globs)
	if errors.Is(err, ingest.ErrNoInput) {
		if in.OnMissing == "empty" {
			return nil, nil
		}
		return nil, diag.Errorf(diag.SourceMissing, in.Pos, "%s has no input: %v", m.Name, err).
			WithHint("mend the path, or write `on_missing: empty` where no file means no records")
	}
	var told diag.Diagnostic
	if errors.As(err, &told) && told.Pos.File == "" {
		told.Pos = in.Pos
		err = told
	}
	return files, err
}

// ingest makes a Source of the records that a model declares.
func (b *builder) ingest(ctx context.Context) (materialize.Source, error) {
	m := b.step.Node.Model
	program, problems := ingest.Compile(ingestSpec(m))
	if err := problems.Err(); err != nil {
		return nil, err
	}
	files, err := ingestInput(m)
	if err != nil {
		return nil, err
	}
	if err := b.giveBack(ctx); err != nil {
		return nil, err
	}
	for i := range files {
		files[i].Shown = shownPath(b.run.e.o.Project, files[i].Path)
	}
	limit, err := b.ingestMemory(ctx, m.Records)
	if err != nil {
		return nil, err
	}
	job := &ingest.Job{
		Program: program, Files: files, Version: b.run.e.o.Version, Workers: m.Records.Workers, MemoryLimit: limit,
		FullRefresh: b.run.o.FullRefresh, Progress: b.ingestProgress, ChangeTime: memory.ChangeTime,
	}
	if m.Records.Mode.Value == "append" {
		if job.Previous, err = b.previousLoad(); err != nil {
			return nil, err
		}
		b.appending = job.Previous != nil && !b.run.o.FullRefresh
	}
	b.result.Incremental = b.appending
	b.loaded = job.Stats
	return loading{job, b.session}, nil
}

// loadedDictionary is how many values a dictionary has at most in a row group of
// what an ingest writes. Its tables are of records that are all different, so that
// most columns have either few values or no two alike; a row group of those fills
// a dictionary in vain, which with the engine's own bound of a fifth of its rows
// takes a sixth of the time of writing. This one stays in the caches, and the files
// become no larger.
const loadedDictionary = 8192

// loading is an ingest's job, which writes by its own rules.
type loading struct {
	*ingest.Job
	session *session
}

// Stage implements materialize.Source.
func (l loading) Stage(ctx context.Context, s materialize.Session, dir string) (materialize.Staged, error) {
	before := l.session.dictionary
	l.session.dictionary = loadedDictionary
	defer func() { l.session.dictionary = before }()
	return l.Job.Stage(ctx, s, dir)
}

// giveBack lets the engine return what it frees sooner than it does by itself:
// a merge makes and drops large tables one after the other, of which up to half
// a gigabyte more would stay with the process.
func (b *builder) giveBack(ctx context.Context) error {
	for _, setting := range [][2]string{{"allocator_flush_threshold", "16MB"}, {"allocator_bulk_deallocation_flush_threshold", "64MB"}} {
		if slices.ContainsFunc(sortedKeys(b.run.e.o.Project.Engine.Settings), func(own string) bool { return strings.EqualFold(own, setting[0]) }) {
			continue
		}
		if err := b.session.Exec(ctx, "SET GLOBAL "+setting[0]+" = "+quoteText(setting[1])); err != nil {
			return fmt.Errorf("set up the SQL engine for an ingest: %w", err)
		}
	}
	return nil
}

func (b *builder) ingestProgress(p ingest.Progress) {
	share := -1.0
	if p.TotalBytes > 0 && p.Phase == "encode" {
		share = float64(p.Bytes) / float64(p.TotalBytes)
	}
	n := *b.result
	b.run.e.emit(Event{Kind: EventNodeProgress, Number: b.step.Number, Total: b.run.total(), Node: &n, Message: p.Phase, Progress: &Progress{
		Share: share, Files: p.Files, FilesTotal: p.TotalFiles, Bytes: p.Bytes, BytesTotal: p.TotalBytes, Records: p.Records, Rejects: p.Rejects, Rows: p.Records,
	}})
}

// previousLoad is what an append adds to; nil where nothing is published.
func (b *builder) previousLoad() (*ingest.Previous, error) {
	node, ok, err := b.run.e.o.Lake.ReadNode(b.step.Node.Name, b.step.Node.Model.Path)
	if err != nil || !ok || node.Manifest == nil || node.Receipt.Form != lake.FormIngest {
		return nil, err
	}
	state, ok := ingest.StateOf(node.Manifest)
	if !ok {
		return nil, nil
	}
	out := &ingest.Previous{State: state, Files: filesByFolder(b.run.e.o.Lake.Root(), node.Receipt), Rows: map[string]int64{}}
	for folder, t := range node.Manifest.Tables {
		out.Rows[folder] = t.Rows
	}
	return out, nil
}

// filesByFolder gives the published files of an ingest by the folder of their
// relation.
func filesByFolder(root string, r lake.Receipt) map[string][]string {
	out := map[string][]string{}
	for _, o := range r.Outputs {
		for _, f := range o.Files {
			folder := path.Base(path.Dir(f.Path))
			out[folder] = append(out[folder], filepath.Join(root, filepath.FromSlash(f.Path)))
		}
	}
	return out
}

// ingestRelation is the query over one relation of an ingest. files gives the
// parts of a folder; own are those of the relation itself.
func ingestRelation(m *project.Model, relation string, columns []lake.Column, own []string, files func(folder string) []string) (string, error) {
	program, problems := ingest.Compile(ingestSpec(m))
	if err := problems.Err(); err != nil {
		return "", err
	}
	for _, o := range program.Outputs() {
		if !strings.EqualFold(o.Relation, relation) {
			continue
		}
		if sql := program.RelationSQL(o, files); sql != "" {
			return sql, nil
		}
	}
	return scanGrown(own, columns), nil
}

// scanGrown is scanFiles over parts of which older ones may lack columns that
// came later; those are NULL there.
func scanGrown(files []string, columns []lake.Column) string {
	if len(files) < 2 {
		return scanFiles(files, columns)
	}
	// The typed empty relation brings every column, and casts nothing: a column
	// has one type in all parts.
	return emptyRelation(columns) + "\nUNION ALL BY NAME\nSELECT * FROM read_parquet(" + fileList(files) + ", hive_partitioning = false, union_by_name = true)"
}

// ingestMemory is what the load may hold in memory, in bytes: what the model
// says, else a quarter of the engine's limit.
func (b *builder) ingestMemory(ctx context.Context, r *project.Records) (int64, error) {
	if r.MemoryLimit != "" {
		size, ok := parseSize(r.MemoryLimit)
		if !ok {
			return 0, diag.Errorf(diag.BadValue, r.Pos, "`memory_limit` cannot be %q: write a size such as 2GB", r.MemoryLimit)
		}
		return size, nil
	}
	limit := ""
	err := b.session.Query(ctx, "SELECT current_setting('memory_limit')", func(v []any) error {
		limit, _ = v[0].(string)
		return nil
	})
	bytes, ok := parseBytes(limit)
	if err != nil || !ok {
		return 0, err
	}
	return int64(bytes / 4), nil
}

// parseSize reads a size as users and DuckDB write it: 2GB, 512MiB.
func parseSize(text string) (int64, bool) {
	text = strings.ToUpper(strings.ReplaceAll(text, " ", ""))
	units := []struct {
		suffix string
		bytes  float64
	}{
		{"KIB", 1 << 10}, {"MIB", 1 << 20}, {"GIB", 1 << 30}, {"TIB", 1 << 40},
		{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
	}
	for _, u := range units {
		number, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		return int64(n * u.bytes), err == nil && n > 0
	}
	return 0, false
}

// ingestSpec gives a declaration to the ingest package.
func ingestSpec(m *project.Model) ingest.Spec {
	r := m.Records
	s := ingest.Spec{
		Model: m.Name, Pos: r.Pos,
		Input: ingest.Input{Format: written(r.Input.Format), Compression: written(r.Input.Compression), RecordPath: written(r.Input.RecordPath), CSV: csvOptions(r.Input.Options)},
		Root:  written(r.Root), OnBadRecord: written(r.OnBadRecord), MaxRejects: written(r.MaxRejects), UnknownFields: written(r.UnknownFields),
		TypeMismatch: written(r.TypeMismatch), Occurrences: written(r.Occurrences), Mode: written(r.Mode), OnChangedFile: written(r.OnChangedFile),
	}
	if r.RootBy != nil {
		s.RootBy = &ingest.RootBy{Field: written(r.RootBy.Field), Pos: r.RootBy.Pos}
		for _, c := range r.RootBy.Map {
			s.RootBy.Map = append(s.RootBy.Map, ingest.RootCase{Value: written(c.Value), Record: written(c.Record)})
		}
	}
	for _, t := range r.Types {
		s.Records = append(s.Records, ingestRecord(t))
	}
	for _, f := range r.Families {
		out := ingest.Family{Name: written(f.Name)}
		for _, member := range f.Members {
			out.Members = append(out.Members, written(member))
		}
		s.Families = append(s.Families, out)
	}
	return s
}

func csvOptions(o project.InputOptions) ingest.CSVOptions {
	optional := func(t *project.Text) *ingest.Text {
		if t == nil {
			return nil
		}
		w := written(*t)
		return &w
	}
	return ingest.CSVOptions{Delimiter: written(o.Delimiter), Quote: optional(o.Quote), Null: optional(o.Null), NoHeader: ingest.Flag(o.NoHeader)}
}

func ingestRecord(t project.RecordType) ingest.Record {
	out := ingest.Record{
		Name: written(t.Name), Identity: written(t.Identity), Dedup: written(t.Dedup), Entries: ingest.Flag(t.Entries),
		Members: ingestMembers(t.Members), Metadata: ingestMembers(t.Metadata), OnMetadataConflict: written(t.OnMetadataConflict),
	}
	if t.ID != nil {
		out.ID = &ingest.ID{Pos: t.ID.Pos, Base: written(t.ID.Base), Series: written(t.ID.Series), From: written(t.ID.From), Repeats: t.ID.Repeats}
	}
	return out
}

func ingestMembers(m project.Members) ingest.Members {
	var out ingest.Members
	for _, f := range m.Fields {
		out.Fields = append(out.Fields, ingest.Field{Name: written(f.Name), Type: written(f.Type), Path: written(f.Path), Required: ingest.Flag(f.Required)})
	}
	for _, r := range m.References {
		out.References = append(out.References, ingest.Reference{Name: written(r.Name), Record: written(r.Record), Path: written(r.Path), Required: ingest.Flag(r.Required)})
	}
	for _, c := range m.Children {
		child := ingest.Child{
			Name: written(c.Name), Path: written(c.Path), Required: ingest.Flag(c.Required), Type: written(c.Type), Record: written(c.Record),
		}
		if c.Row != nil {
			row := ingestMembers(*c.Row)
			child.Row = &row
		}
		out.Children = append(out.Children, child)
	}
	return out
}

func written(t project.Text) ingest.Text { return ingest.Text(t) }

// stagedIngest is the query over one relation of a staged ingest.
func stagedIngest(m *project.Model, staged materialize.Staged, o materialize.StagedOutput) (string, error) {
	byFolder := map[string][]string{}
	for _, other := range staged.Outputs {
		byFolder[other.Folder] = append(append([]string(nil), other.Kept...), paths(other)...)
	}
	sql, err := ingestRelation(m, o.Relation, o.Columns, byFolder[o.Folder], func(folder string) []string { return byFolder[folder] })
	if err != nil {
		return "", fmt.Errorf("read staged %s: %w", o.Relation, err)
	}
	return sql, nil
}
