package main

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// dbtExternal builds Parquet files with dbt-duckdb's external models in an
// in-memory database.
func dbtExternal(b *bench, tool peerState, dir string, p neutral) (side, error) {
	out := filepath.Join(dir, "out")
	s, err := b.dbtSide(tool, dir, p, ":memory:", "    +materialized: external\n    +options: {compression: zstd}\n", out)
	s.reset = func() error {
		if err := b.cleared(out)(); err != nil {
			return err
		}
		return writeText(filepath.Join(out, ".keep"), "")
	}
	s.outputs = parquetOf(out, p.names())
	return s, err
}

// dbtTable builds tables in a DuckDB file.
func dbtTable(b *bench, tool peerState, dir string, p neutral) (side, error) {
	file := filepath.Join(dir, "built.duckdb")
	s, err := b.dbtSide(tool, dir, p, file, "    +materialized: table\n", "")
	s.reset = b.cleared(file, file+".wal")
	s.outputs = inDatabase(file, "main", p.names())
	return s, err
}

// dbtSide writes a dbt project. Parsing is warm: the project is parsed once
// before, and its partial-parse file is kept. Threads are the cores, as
// dbt-duckdb's settings for one machine go; usage statistics are off.
func (b *bench) dbtSide(tool peerState, dir string, p neutral, database, config, root string) (side, error) {
	if err := b.cleared(dir)(); err != nil {
		return side{}, err
	}
	project := fmt.Sprintf("name: %s\nversion: '1.0'\nprofile: bench\nmodel-paths: [models]\nflags: {send_anonymous_usage_stats: false, partial_parse: true}\nmodels:\n  %s:\n%s", p.name, p.name, config)
	profile := fmt.Sprintf("bench:\n  target: dev\n  outputs:\n    dev:\n      type: duckdb\n      path: '%s'\n      threads: %d\n      settings: {preserve_insertion_order: false}\n", database, runtime.NumCPU())
	if root != "" {
		profile += fmt.Sprintf("      external_root: '%s'\n", root)
	}
	sources := "sources:\n  - name: raw\n    tables:\n"
	for _, s := range p.sources {
		sources += fmt.Sprintf("      - name: %s\n        config: {meta: {external_location: %q}}\n", s.name, "read_parquet("+quote(s.path)+")")
	}
	files := map[string]string{"dbt_project.yml": project, "profiles.yml": profile, "models/sources.yml": sources}
	for _, m := range p.models {
		files[filepath.Join("models", m.folder, m.name+".sql")] = m.sql + "\n"
	}
	for name, text := range files {
		if err := writeText(filepath.Join(dir, name), text); err != nil {
			return side{}, err
		}
	}
	call := func(args ...string) (usage, error) {
		return b.child(b.tool(tool, dir, "dbt", nil, append(args, "--project-dir", dir, "--profiles-dir", dir, "--quiet")...))
	}
	if _, err := call("parse"); err != nil {
		return side{}, err
	}
	return side{run: func() (usage, error) { return call("run") }}, nil
}

// sqlmeshSide builds tables with a SQLMesh plan; the cache of parsed models is
// kept warm, analytics are off.
func sqlmeshSide(b *bench, tool peerState, dir string, p neutral) (side, error) {
	if err := b.cleared(dir)(); err != nil {
		return side{}, err
	}
	file := filepath.Join(dir, "built.duckdb")
	files := map[string]string{"config.yaml": fmt.Sprintf(`gateways:
  local:
    connection:
      type: duckdb
      database: '%s'
      concurrent_tasks: %d
default_gateway: local
model_defaults:
  dialect: duckdb
  start: '2024-01-01'
disable_anonymized_analytics: true
`, file, runtime.NumCPU())}
	for _, m := range p.models {
		sql := m.render(func(name string) string { return "bench." + name }, p.readSource)
		files[filepath.Join("models", m.folder, m.name+".sql")] = "MODEL (name bench." + m.name + ", kind FULL);\n" + sql + "\n"
	}
	for name, text := range files {
		if err := writeText(filepath.Join(dir, name), text); err != nil {
			return side{}, err
		}
	}
	env := []string{"SQLMESH__DISABLE_ANONYMIZED_ANALYTICS=true"}
	s := side{
		reset: b.cleared(file, file+".wal"),
		run: func() (usage, error) {
			return b.child(b.tool(tool, dir, "sqlmesh", env, "plan", "--auto-apply", "--no-prompts", "--skip-tests"))
		},
		outputs: inDatabase(file, "bench", p.names()),
	}
	_, err := b.child(b.tool(tool, dir, "sqlmesh", env, "info", "--skip-connection"))
	return s, err
}

// yatoSide builds tables with yato.
func yatoSide(b *bench, tool peerState, dir string, p neutral) (side, error) {
	if err := b.cleared(dir)(); err != nil {
		return side{}, err
	}
	for _, m := range p.models {
		sql := m.render(func(name string) string { return name }, p.readSource)
		if err := writeText(filepath.Join(dir, "sql", m.name+".sql"), sql+"\n"); err != nil {
			return side{}, err
		}
	}
	file := filepath.Join(dir, "built.duckdb")
	return side{
		reset: b.cleared(file, file+".wal"),
		run: func() (usage, error) {
			return b.child(b.tool(tool, dir, "yato", nil, "run", "--db", file, filepath.Join(dir, "sql")))
		},
		outputs: inDatabase(file, "transform", p.names()),
	}, nil
}

// datalakeSide builds Parquet files with the Rust tool of a like name, on
// DataFusion.
func datalakeSide(b *bench, tool peerState, dir string, p neutral) (side, error) {
	if err := b.cleared(dir)(); err != nil {
		return side{}, err
	}
	project := fmt.Sprintf("name: %s\nversion: \"1.0\"\nmodels_dir: models\ntarget_path: out\nlayers:\n", p.name)
	for _, layer := range []string{"staging", "transforms", "marts"} {
		project += fmt.Sprintf("  %s: {path: models/%s, target_path: out, default_format: parquet}\n", layer, layer)
	}
	if err := writeText(filepath.Join(dir, "rbt_project.yml"), project); err != nil {
		return side{}, err
	}
	for _, m := range p.models {
		text := "---\nmaterialization: table\n"
		if raw := m.sourceOf(); raw != "" {
			text += fmt.Sprintf("source_format: parquet\nscan_path: %s\nsource_name: raw\nsource_table: %s\n", p.sourcePath(raw), raw)
		}
		if err := writeText(filepath.Join(dir, "models", datalakeLayer(m.name), m.name+".sql"), text+"---\n"+m.sql+"\n"); err != nil {
			return side{}, err
		}
	}
	jobs := fmt.Sprint(runtime.NumCPU())
	return side{
		reset: b.cleared(filepath.Join(dir, "out"), filepath.Join(dir, ".rbt"), filepath.Join(dir, "target")),
		run: func() (usage, error) {
			return b.child(b.tool(tool, dir, "rbt", nil, "run", "-p", dir, "--jobs", jobs, "--execution-strategy", "model_tier"))
		},
		outputs: parquetOf(filepath.Join(dir, "out"), p.names()),
	}, nil
}

// datalakeLayer is the layer that the tool gives to a name.
func datalakeLayer(name string) string {
	switch prefix, _, _ := strings.Cut(name, "_"); prefix {
	case "stg":
		return "staging"
	case "dim", "fct", "obt":
		return "marts"
	default:
		return "transforms"
	}
}
