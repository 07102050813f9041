package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// neutral is a project before it is written in some tool's own format.
type neutral struct {
	name    string
	data    string   // the folder that sources lie in
	sources []source // of the one source group "raw"
	models  []model  // parents before children
	// engine settings of rbt, as lines under `engine:`
	engine []string
	extra  string // more of rbt's project.yml
}

// source is one raw table: a Parquet file unless format says otherwise.
type source struct {
	name, path, format string
}

// model is a SELECT that names its parents as {{ ref('x') }} and raw data as
// {{ source('raw', 'x') }}.
type model struct {
	name, folder string
	sql          string
	front        string // more of rbt's frontmatter
	level        int    // longest path from a source
}

var (
	refCall    = regexp.MustCompile(`\{\{ ref\('([^']*)'\) \}\}`)
	sourceCall = regexp.MustCompile(`\{\{ source\('raw', '([^']*)'\) \}\}`)
)

// render writes a model's SQL with another spelling of its parents and of raw
// data.
func (m model) render(ref, raw func(name string) string) string {
	sql := refCall.ReplaceAllStringFunc(m.sql, func(s string) string { return ref(refCall.FindStringSubmatch(s)[1]) })
	return sourceCall.ReplaceAllStringFunc(sql, func(s string) string { return raw(sourceCall.FindStringSubmatch(s)[1]) })
}

// sourceOf is the name of the raw table that a model reads; "" for none.
func (m model) sourceOf() string {
	if found := sourceCall.FindStringSubmatch(m.sql); found != nil {
		return found[1]
	}
	return ""
}

func (p neutral) names() []string {
	names := make([]string, len(p.models))
	for i, m := range p.models {
		names[i] = m.name
	}
	return names
}

func (p neutral) sourcePath(name string) string {
	for _, s := range p.sources {
		if s.name == name {
			return s.path
		}
	}
	return ""
}

// readSource is raw data in plain DuckDB.
func (p neutral) readSource(name string) string {
	return "read_parquet(" + quote(p.sourcePath(name)) + ")"
}

func writeText(path, text string) error {
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// writeRbt writes the project as rbt reads it.
func (p neutral) writeRbt(dir string) error {
	var yml strings.Builder
	fmt.Fprintf(&yml, "name: %s\n", p.name)
	if p.data != "" {
		fmt.Fprintf(&yml, "roots: {data: %s}\n", p.data)
	}
	if len(p.sources) > 0 {
		yml.WriteString("sources:\n  - name: raw\n    tables:\n")
	}
	for _, s := range p.sources {
		below, err := filepath.Rel(p.data, s.path)
		if err != nil {
			return fmt.Errorf("place the source %s: %w", s.name, err)
		}
		fmt.Fprintf(&yml, "      - name: %s\n        path: $data/%s\n", s.name, filepath.ToSlash(below))
		if s.format != "" {
			fmt.Fprintf(&yml, "        format: %s\n", s.format)
		}
	}
	if len(p.engine) > 0 {
		yml.WriteString("engine:\n")
		for _, line := range p.engine {
			fmt.Fprintf(&yml, "  %s\n", line)
		}
	}
	yml.WriteString(p.extra)
	if err := writeText(filepath.Join(dir, "project.yml"), yml.String()); err != nil {
		return err
	}
	for _, m := range p.models {
		text := m.sql + "\n"
		if m.front != "" {
			text = "---\n" + m.front + "---\n" + text
		}
		if err := writeText(filepath.Join(dir, "models", m.folder, m.name+".sql"), text); err != nil {
			return err
		}
	}
	return nil
}

// bareJob is the loop of COPYs that makes the same files without rbt, under
// out, as durably where durable is set.
func (p neutral) bareJob(work, out string, durable bool, settings ...string) job {
	j := job{Settings: plainSettings(work, settings...)}
	ref := func(name string) string { return "read_parquet(" + quote(filepath.Join(out, name+".parquet")) + ")" }
	for _, m := range p.models {
		s := step{Query: m.render(ref, p.readSource), To: filepath.Join(out, m.name+".parquet"), Level: m.level}
		if durable {
			s.Receipt = filepath.Join(out, ".receipts", m.name+".json")
		}
		j.Steps = append(j.Steps, s)
	}
	return j
}

// rbtSide builds a project from nothing with `rbt run`.
func (b *bench) rbtSide(name, project string, p neutral) side {
	return side{
		name:    name,
		reset:   b.cleared(filepath.Join(project, "lake"), filepath.Join(project, "target")),
		run:     func() (usage, error) { return b.runRbt(project, "run") },
		outputs: parquetOf(filepath.Join(project, "lake"), p.names()),
	}
}

// bareSide runs the project's COPYs in the bare program.
func (b *bench) bareSide(name, dir string, p neutral, connections int, settings ...string) side {
	out := filepath.Join(dir, "out-"+strings.ReplaceAll(name, " ", "-"))
	j := p.bareJob(dir, out, true, settings...)
	j.Connections = connections
	return side{
		name:    name,
		reset:   b.cleared(out),
		run:     func() (usage, error) { return b.runJob(dir, strings.ReplaceAll(name, " ", "-"), j) },
		outputs: parquetOf(out, p.names()),
	}
}
