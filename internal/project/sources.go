package project

import (
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"rbt/internal/diag"
)

// relationSpec is a source or seed with what is only needed while loading.
type sourceSpec struct {
	Source
	columns []columnSpec
	tests   *yaml.Node
	d       *decoder // of the file that declares it
}

// sourceReader reads `sources:` blocks of project.yml and of .yml files.
type sourceReader struct {
	p   *Project
	out []*sourceSpec
}

// read takes one `sources:` block.
func (r *sourceReader) read(f fields) {
	for _, item := range f.items("sources") {
		s, ok := f.d.fields(item, sourceTable)
		if ok {
			r.group(s)
		}
	}
}

// shared is what the tables of a source inherit.
type shared struct {
	tags      []string
	meta      map[string]any
	freshness *Freshness
	loadedAt  string
}

func (r *sourceReader) group(f fields) {
	name := f.text("name")
	if n := f.node("name"); n != nil && n.Kind == yaml.ScalarNode {
		problem := nameProblem(name)
		if slices.Contains(reservedSchemas, folded(name)) {
			problem = "it is reserved for the engine"
		}
		if problem != "" {
			f.d.add(badName(f.d.pos(n), "a source", name, problem))
			name = ""
		}
	}
	cfg := f.table("config")
	base := shared{
		tags: append(f.texts("tags"), cfg.texts("tags")...),
		meta: overlay(f.values("meta"), cfg.values("meta")),
	}
	base.loadedAt = firstText(f.text("loaded_at_field"), cfg.text("loaded_at_field"))
	base.freshness = firstFreshness(f.freshness(base.loadedAt), cfg.freshness(base.loadedAt))
	enabled := cfg.boolean("enabled", true)
	for _, item := range f.items("tables") {
		t, ok := f.d.fields(item, sourceTableTable)
		if ok && name != "" && enabled {
			r.table(t, name, base)
		}
	}
}

func firstText(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func firstFreshness(a, b *Freshness) *Freshness {
	if a != nil {
		return a
	}
	return b
}

func (r *sourceReader) table(f fields, group string, base shared) {
	s := &sourceSpec{d: f.d, columns: f.columns("columns"), tests: f.node("tests")}
	cfg := f.table("config")
	s.Group, s.Name, s.Description = group, f.text("name"), f.text("description")
	s.Tags = slices.Concat(base.tags, f.texts("tags"), cfg.texts("tags"))
	s.Meta = overlay(overlay(base.meta, f.values("meta")), cfg.values("meta"))
	s.Pos, s.PathPos = f.pos("name"), f.pos("path")
	s.Columns = plainColumns(s.columns)
	s.ExtraColumns, s.OnMissing = "keep", "error"
	if v := f.text("extra_columns"); v != "" {
		s.ExtraColumns = v
	}
	if v := f.text("on_missing"); v != "" {
		s.OnMissing = v
	}
	loadedAt := firstText(firstText(f.text("loaded_at_field"), cfg.text("loaded_at_field")), base.loadedAt)
	s.Freshness = firstFreshness(f.freshness(loadedAt), cfg.freshness(loadedAt))
	if s.Freshness == nil && base.freshness != nil && !f.has("freshness") {
		inherited := *base.freshness
		inherited.LoadedAt = firstText(loadedAt, inherited.LoadedAt)
		s.Freshness = &inherited
	}
	if n := f.node("name"); n != nil && n.Kind == yaml.ScalarNode {
		if problem := nameProblem(s.Name); problem != "" {
			f.d.add(badName(f.d.pos(n), "a source table", s.Name, problem))
			return
		}
	}
	r.files(f, s)
	s.Options = f.options(s.Format)
	f.checkSource(s)
	if cfg.boolean("enabled", true) && s.Name != "" {
		r.out = append(r.out, s)
	}
}

// files reads path and format.
func (r *sourceReader) files(f fields, s *sourceSpec) {
	s.Format = f.text("format")
	guess := s.Format == ""
	n := f.node("path")
	if n == nil {
		return
	}
	paths := f.d.scalars(n, "`path`")
	if len(paths) == 0 && n.Kind == yaml.SequenceNode {
		f.d.bad(n, "`path` is an empty list")
	}
	for _, path := range paths {
		pattern, ok := r.p.inputPath(f.d, path)
		if !ok {
			continue
		}
		s.Patterns = append(s.Patterns, pattern)
		if !guess {
			continue
		}
		format := formatOf(path.Value)
		switch {
		case format == "":
			f.d.add(diag.Errorf(diag.MissingKey, f.d.pos(path), "the extension of %q tells no format", path.Value).
				WithHint("write `format:` with csv, json, ndjson, parquet or arrow_ipc"))
			guess = false
		case s.Format == "":
			s.Format = format
		case s.Format != format:
			f.d.badHint(path, "write `format:`, or declare two tables", "the files of one table have one format, here are %s and %s",
				s.Format, format)
		}
	}
}

// extensions give the format of a file.
var extensions = map[string]string{
	".csv": "csv", ".tsv": "csv", ".json": "json", ".ndjson": "ndjson", ".jsonl": "ndjson", ".parquet": "parquet",
	".pq": "parquet", ".arrow": "arrow_ipc", ".arrows": "arrow_ipc", ".ipc": "arrow_ipc", ".feather": "arrow_ipc",
}

// formatOf gives the format that an extension tells, "" for none.
func formatOf(path string) string {
	path = strings.ToLower(slashed(path))
	switch ext := filepath.Ext(path); ext {
	case ".gz", ".zst", ".zstd", ".gzip":
		path = strings.TrimSuffix(path, ext)
	}
	return extensions[filepath.Ext(path)]
}

// options reads `options:` against the table of the format.
func (f fields) options(format string) map[string]string {
	n := f.node("options")
	if n == nil || format == "" {
		return nil
	}
	table := noOptions
	switch format {
	case "csv":
		table = csvOptions
	case "json", "ndjson":
		table = jsonOptions
	}
	o, ok := f.d.fields(n, table)
	if !ok {
		return nil
	}
	return o.optionTexts()
}

func (f fields) optionTexts() map[string]string {
	out := map[string]string{}
	for i, k := range f.t.keys {
		p := f.get(i)
		if p.key == nil {
			continue
		}
		switch {
		case k.kind == kindBool:
			if v, ok := f.d.boolean(p.value, "`"+p.name+"`"); ok && v {
				out[k.name] = "true"
			} else if ok {
				out[k.name] = "false"
			}
		case k.kind == kindInt:
			if v := f.integer(k.name, -1); v >= 0 {
				out[k.name] = p.value.Value
			}
		case k.enum != nil:
			if v := f.text(k.name); v != "" {
				out[k.name] = v
			}
		case p.value.Kind == yaml.ScalarNode:
			out[k.name] = p.value.Value
		default:
			f.d.expected(p.value, "`"+p.name+"`", "text")
		}
	}
	f.checkCharacters(out)
	return out
}

// checkCharacters reports csv options that must be a single character.
func (f fields) checkCharacters(options map[string]string) {
	for _, name := range []string{"quote", "escape", "comment"} {
		if v, ok := options[name]; ok && len(v) > 1 {
			f.d.add(diag.Errorf(diag.BadValue, f.pos(name), "%s must be one character, not %q", f.label(name), v))
			delete(options, name)
		}
	}
	if v, ok := options["delimiter"]; ok {
		if v == `\t` {
			v = "\t"
			options["delimiter"] = v
		}
		if v == "" || len(v) > 4 || strings.ContainsAny(v, "\r\n") {
			f.d.add(diag.Errorf(diag.BadValue, f.pos("delimiter"), "%s must be one to four characters, not %q", f.label("delimiter"), v))
			delete(options, "delimiter")
		}
	}
}

// checkSource reports what cannot be true of a source table as a whole.
func (f fields) checkSource(s *sourceSpec) {
	for _, c := range s.columns {
		if c.Type == "" && c.TypePos.IsZero() && s.Options["header"] == "false" && s.Format == "csv" {
			f.d.add(diag.Errorf(diag.MissingKey, c.Pos, "`header: false` needs the type of the column %q", c.Name))
		}
	}
	if s.Format == "csv" && s.Options["header"] == "false" && len(s.columns) == 0 {
		f.d.add(diag.Errorf(diag.MissingKey, f.pos("options"), "`header: false` needs `columns`, in the order of the file"))
	}
	if s.OnMissing == "empty" && len(s.columns) == 0 {
		f.d.add(diag.Errorf(diag.MissingKey, f.pos("on_missing"), "`on_missing: empty` needs `columns` with their types"))
	}
	for _, c := range s.columns {
		if s.OnMissing == "empty" && c.Type == "" && c.TypePos.IsZero() {
			f.d.add(diag.Errorf(diag.MissingKey, c.Pos, "`on_missing: empty` needs the type of the column %q", c.Name))
		}
	}
	for _, pattern := range s.Patterns {
		if ext := strings.ToLower(filepath.Ext(pattern)); ext == ".tsv" && s.Format == "csv" {
			if s.Options == nil {
				s.Options = map[string]string{}
			}
			if _, ok := s.Options["delimiter"]; !ok {
				s.Options["delimiter"] = "\t"
			}
		}
	}
}

// freshness reads how old a source may be, nil where nothing is said.
func (f fields) freshness(loadedAt string) *Freshness {
	if f.node("freshness") == nil {
		return nil
	}
	t := f.table("freshness")
	out := &Freshness{
		LoadedAt:   firstText(t.text("loaded_at_field"), loadedAt),
		WarnAfter:  t.duration("warn_after"),
		ErrorAfter: t.duration("error_after"),
		Pos:        f.pos("freshness"),
	}
	if out.WarnAfter == 0 && out.ErrorAfter == 0 {
		f.d.add(diag.Errorf(diag.MissingKey, out.Pos, "`freshness` needs `warn_after` or `error_after`"))
		return nil
	}
	if out.WarnAfter > 0 && out.ErrorAfter > 0 && out.WarnAfter > out.ErrorAfter {
		f.d.add(diag.Errorf(diag.BadValue, t.pos("warn_after"), "`warn_after` is longer than `error_after`"))
	}
	return out
}

// settle checks that no table is declared twice and puts the sources in order.
func (r *sourceReader) settle() []*sourceSpec {
	seen := make(map[string]*sourceSpec, len(r.out))
	groups := map[string]*sourceSpec{}
	kept := r.out[:0]
	for _, s := range r.out {
		if g, ok := groups[folded(s.Group)]; ok && g.Group != s.Group {
			s.d.add(diag.Errorf(diag.NameClash, s.Pos, "the sources %q and %q are one source: case does not count", g.Group, s.Group).
				WithNote(g.Pos, "the first one"))
			continue
		} else if !ok {
			groups[folded(s.Group)] = s
		}
		key := folded(s.Group) + "." + folded(s.Name)
		if first, ok := seen[key]; ok {
			s.d.add(diag.Errorf(diag.NameClash, s.Pos, "the source table %s.%s is declared twice", s.Group, s.Name).
				WithNote(first.Pos, "the first one"))
			continue
		}
		seen[key] = s
		kept = append(kept, s)
	}
	slices.SortFunc(kept, func(a, b *sourceSpec) int {
		return strings.Compare(a.Group+"."+a.Name, b.Group+"."+b.Name)
	})
	return kept
}
