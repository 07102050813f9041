package engine

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	duckdb "github.com/duckdb/duckdb-go/v2"
	"github.com/duckdb/duckdb-go/v2/mapping"

	"rbt/internal/diag"
	"rbt/internal/lake"
	"rbt/internal/project"
	"rbt/materialize"
)

// ownSettings are the engine settings that rbt sets itself, because a project
// that changed them would break what rbt promises; each with where to say it
// instead, "" for nowhere.
var ownSettings = map[string]string{
	"threads": "engine.duckdb_threads", "worker_threads": "engine.duckdb_threads",
	"memory_limit": "engine.memory_limit", "max_memory": "engine.memory_limit",
	"temp_directory": "", "errors_as_json": "", "lock_configuration": "", "access_mode": "",
	"allow_parser_override_extension": "", "preserve_insertion_order": "", "schema": "", "search_path": "",
	"enable_external_access": "", "disabled_filesystems": "", "preserve_identifier_case": "",
	"enable_progress_bar": "", "enable_progress_bar_print": "", "progress_bar_time": "", // it would print between rbt's lines
}

// database is the one in-memory DuckDB instance of a process, with as many
// connections as sessions are asked for. Everything that it owns on disk lies
// in tempDir.
type database struct {
	db       *sql.DB
	tempDir  string
	tracer   *Engine // hears of every statement; nil where nobody does
	sessions atomic.Int64
	breadth  breadth
}

// openDatabase starts the instance with rbt's settings and the project's.
func openDatabase(ctx context.Context, cfg project.Engine, tempDir string) (*database, error) {
	// DuckDB makes the folder when it first spills, but not those above it.
	if err := os.MkdirAll(tempDir, 0o777); err != nil {
		return nil, fmt.Errorf("make a folder for temporary files: %w", err)
	}
	connector, err := duckdb.NewConnector("", nil)
	if err != nil {
		return nil, fmt.Errorf("open the SQL engine: %w", err)
	}
	d := &database{db: sql.OpenDB(connector), tempDir: tempDir}
	if err := d.configure(ctx, cfg); err != nil {
		_ = d.Close()
		return nil, err
	}
	return d, nil
}

func (d *database) configure(ctx context.Context, cfg project.Engine) error {
	// What COPY writes need not keep the order of what it read: a sixth less
	// CPU, a third less memory; ORDER BY is kept all the same. All extensions
	// that rbt needs are linked in, and none may come from a network. Keeping what
	// was read of files costs memory with every file and saves nothing, since the
	// system keeps it as well.
	own := []string{
		"SET GLOBAL preserve_insertion_order = false",
		"SET GLOBAL parquet_metadata_cache = true",
		"SET GLOBAL enable_external_file_cache = false",
		"SET GLOBAL TimeZone = 'UTC'",
		"SET GLOBAL temp_directory = " + quoteText(d.tempDir),
		"SET GLOBAL autoinstall_known_extensions = false",
		"SET GLOBAL autoload_known_extensions = false",
		"SET GLOBAL errors_as_json = true",
	}
	if d.breadth.all = cfg.DuckDBThreads; d.breadth.all > 0 {
		own = append(own, fmt.Sprintf("SET GLOBAL threads = %d", cfg.DuckDBThreads))
	}
	for _, q := range own {
		if _, err := d.db.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("set up the SQL engine: %w", plainError(err))
		}
	}
	if err := d.limitMemory(ctx, cfg.MemoryLimit); err != nil {
		return err
	}
	return d.applySettings(ctx, cfg)
}

// limitMemory sets the memory limit. DuckDB takes sizes only; a percentage is
// of the memory of the machine, of which DuckDB's own default is 80 %.
func (d *database) limitMemory(ctx context.Context, limit string) error {
	limit = strings.TrimSpace(limit)
	if percent, ok := strings.CutSuffix(limit, "%"); ok {
		p, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
		if err != nil || !(p > 0 && p <= 100) {
			return settingProblem("engine.memory_limit", fmt.Sprintf("%q is not a percentage between 0 and 100", limit), "")
		}
		var base string
		if err := d.db.QueryRowContext(ctx, "SELECT current_setting('memory_limit')").Scan(&base); err != nil {
			return fmt.Errorf("read the memory limit: %w", plainError(err))
		}
		bytes, ok := parseBytes(base)
		if !ok || p == 80 {
			return nil
		}
		limit = fmt.Sprintf("%dMiB", max(1, int64(bytes/80*p)>>20))
	}
	if limit == "" {
		return nil
	}
	if _, err := d.db.ExecContext(ctx, "SET GLOBAL memory_limit = "+quoteText(limit)); err != nil {
		return settingProblem("engine.memory_limit", fmt.Sprintf("%q is not a size", limit), "write a size such as 4GB or a percentage such as 80%")
	}
	return nil
}

// parseBytes reads a size as DuckDB prints it ("18.8 GiB").
func parseBytes(s string) (float64, bool) {
	number, unit, _ := strings.Cut(s, " ")
	v, err := strconv.ParseFloat(number, 64)
	power := slices.Index([]string{"bytes", "KiB", "MiB", "GiB", "TiB"}, unit)
	return v * math.Pow(1024, float64(power)), err == nil && power >= 0
}

func settingProblem(key, msg, hint string) error {
	return diag.Diagnostic{Code: diag.EngineSetting, Pos: diag.Pos{File: "project.yml"}, Msg: key + ": " + msg, Hint: hint}
}

// applySettings sets what the project says under engine.settings, in the order
// of names.
func (d *database) applySettings(ctx context.Context, cfg project.Engine) error {
	if len(cfg.Settings) == 0 {
		return nil
	}
	known := map[string]bool{}
	rows, err := d.db.QueryContext(ctx, "SELECT name FROM duckdb_settings()")
	if err != nil {
		return fmt.Errorf("list the engine's settings: %w", plainError(err))
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return fmt.Errorf("list the engine's settings: %w", err)
		}
		known[strings.ToLower(name)] = true
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("list the engine's settings: %w", plainError(err))
	}
	var problems diag.List
	for _, name := range sortedKeys(cfg.Settings) {
		if p := d.applySetting(ctx, name, cfg.Settings[name], known); p != nil {
			if at, ok := cfg.SettingPlaces[name]; ok {
				p.Pos = at
			}
			problems = append(problems, *p)
		}
	}
	if len(problems) == 1 {
		return problems[0]
	}
	return problems.Err()
}

func (d *database) applySetting(ctx context.Context, name, value string, known map[string]bool) *diag.Diagnostic {
	p := diag.Diagnostic{Code: diag.EngineSetting, Pos: diag.Pos{File: "project.yml"}}
	lower := strings.ToLower(name)
	if instead, own := ownSettings[lower]; own {
		p.Msg = fmt.Sprintf("engine.settings: %s is set by rbt itself", name)
		if instead != "" {
			p.Hint = "use " + instead
		}
		return &p
	}
	if !known[lower] {
		p.Msg = fmt.Sprintf("engine.settings: DuckDB has no setting %q", name)
		if near := diag.Nearest(lower, sortedKeys(known)); near != "" {
			p.Hint = fmt.Sprintf("did you mean %q?", near)
		}
		return &p
	}
	if _, err := d.db.ExecContext(ctx, "SET GLOBAL "+quoteIdent(lower)+" = "+quoteText(value)); err != nil {
		p.Msg = fmt.Sprintf("engine.settings: %s: %s", name, plainError(err))
		return &p
	}
	return nil
}

// Close ends the instance and removes its folder of temporary files.
func (d *database) Close() error {
	err := errors.Join(d.db.Close(), os.RemoveAll(d.tempDir))
	_ = os.Remove(filepath.Dir(d.tempDir)) // where no other process has its own beside it
	return err
}

// session opens a connection of its own.
func (d *database) session(ctx context.Context) (*session, error) {
	conn, err := d.db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("open a connection of the SQL engine: %w", err)
	}
	return &session{db: d, conn: conn, number: int(d.sessions.Add(1))}, nil
}

// session is one connection: materialize.Session and a little more.
type session struct {
	db   *database
	conn *sql.Conn
	// binder is where queries are bound that are not run here; nil: in the session
	// itself.
	binder *session
	// What a trace says of a statement: on which connection, its place there, and
	// for which node.
	number, statements int
	about              string
	// dictionary is how many values a dictionary has at most in what is written; 0
	// leaves it to the engine.
	dictionary int
	// gauge is nil where nobody wants to know how far a query is.
	gauge   *gauge
	copying atomic.Pointer[copying]
}

var _ materialize.Session = (*session)(nil)

// Exec runs one statement of rbt's own making.
func (s *session) Exec(ctx context.Context, sql string) error {
	if _, done, err := s.direct(ctx, sql); done || err != nil {
		return err
	}
	return s.Query(ctx, sql, func([]any) error { return nil })
}

// Query runs one query of rbt's own making and calls row for every row.
func (s *session) Query(ctx context.Context, query string, row func(values []any) error) error {
	_, err := s.query(ctx, query, row)
	return err
}

// query is Query that also returns the names of the columns.
func (s *session) query(ctx context.Context, query string, row func(values []any) error) (columns []string, err error) {
	ended := s.traced(query)
	defer func() { ended(err) }()
	rows, err := s.conn.QueryContext(ctx, query)
	if err != nil {
		return nil, engineError(ctx, query, err)
	}
	defer func() {
		if closeErr := rows.Close(); err == nil && closeErr != nil {
			err = engineError(ctx, query, closeErr)
		}
	}()
	if columns, err = rows.Columns(); err != nil {
		return nil, engineError(ctx, query, err)
	}
	values, targets := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return nil, engineError(ctx, query, err)
		}
		if err := row(values); err != nil {
			return nil, err
		}
	}
	if err := rows.Err(); err != nil {
		return nil, engineError(ctx, query, err)
	}
	return columns, nil
}

// checkQuery lets the engine parse and bind a query without running it, and
// requires that it is one statement of type SELECT. It is the second guard
// behind the token scanner: the driver's Prepare without a context refuses more
// than one statement before any is executed. Only PIVOT without IN, which the
// engine itself turns into several, must be prepared the other way.
func (s *session) checkQuery(ctx context.Context, st statement) error {
	return s.prepare(ctx, st, mustBeSelect)
}

// prepare is checkQuery that hands the prepared statement to use, which judges it.
func (s *session) prepare(ctx context.Context, st statement, use func(driver.Stmt) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	on := s
	if s.binder != nil {
		on = s.binder
	}
	err := on.conn.Raw(func(driverConn any) error {
		conn := driverConn.(*duckdb.Conn)
		prepared, err := conn.Prepare(st.text)
		if bare, ok := st.withoutQualifier(err); ok {
			return withCandidates(ctx, st.text, err, prepareError(conn, bare))
		}
		if err != nil && st.mentions("pivot", "pivot_wider") && !isEngineError(err) {
			prepared, err = conn.PrepareContext(ctx, st.text)
		}
		if err != nil {
			return engineError(ctx, st.text, err)
		}
		defer prepared.Close()
		return use(prepared)
	})
	if errors.Is(err, driver.ErrBadConn) {
		return fmt.Errorf("use a connection of the SQL engine: %w", err)
	}
	return err
}

func mustBeSelect(prepared driver.Stmt) error {
	stmt, ok := prepared.(*duckdb.Stmt)
	if !ok {
		return errors.New("prepare the query: the driver gave no statement of its own")
	}
	kind, err := stmt.StatementType()
	if err != nil {
		return fmt.Errorf("read the statement's type: %w", err)
	}
	if kind != duckdb.STATEMENT_TYPE_SELECT {
		return &sqlProblem{code: diag.SQLNotAQuery, msg: "a model is one query; the engine takes this for another kind of statement",
			hint: "a model begins with SELECT, FROM, WITH, VALUES, PIVOT or UNPIVOT"}
	}
	return nil
}

// mentions reports whether one of the words stands in the statement as a bare
// word, in any case.
func (s statement) mentions(words ...string) bool {
	return slices.ContainsFunc(s.tokens, func(t token) bool {
		return t.kind == tokWord && slices.Contains(words, strings.ToLower(s.text[t.start:t.end]))
	})
}

// doubtful finds the types in which DESCRIBE of DuckDB 1.5.6 may stand INTEGER
// for NULL, at any depth.
var doubtful = regexp.MustCompile(`(^|[^U])INTEGER`)

// Describe gives names and true types of a query's columns. DESCRIBE calls a
// column of NULLs INTEGER; typeof over no rows, which runs nothing, does not.
func (s *session) Describe(ctx context.Context, query string) ([]lake.Column, error) {
	var columns []lake.Column
	var names, asked []string
	var doubts []int
	text := query
	if first, ok := firstWord(query); ok && (first == "describe" || first == "summarize") {
		text = "FROM (\n" + query + "\n)"
	}
	err := s.Query(ctx, "DESCRIBE\n"+text, func(v []any) error {
		name, _ := v[0].(string)
		typ, ok := v[1].(string)
		if !ok {
			return fmt.Errorf("describe a query: the type of %s came as %T", name, v[1])
		}
		alias := fmt.Sprintf("c%d", len(columns))
		if doubtful.MatchString(typ) {
			asked = append(asked, "typeof(t."+alias+")")
			doubts = append(doubts, len(columns))
		}
		names = append(names, alias)
		columns = append(columns, lake.Column{Name: name, Type: typ})
		return nil
	})
	if err != nil || len(doubts) == 0 {
		return columns, err
	}
	err = s.Query(ctx, fmt.Sprintf("SELECT %s FROM (SELECT 1) LEFT JOIN (SELECT * FROM (\n%s\n) AS q(%s) LIMIT 0) AS t ON true",
		strings.Join(asked, ", "), query, strings.Join(names, ", ")), func(v []any) error {
		for i, at := range doubts {
			columns[at].Type, _ = v[i].(string)
		}
		return nil
	})
	return columns, err
}

// firstWord is the first word of a text, in lower case.
func firstWord(sql string) (string, bool) {
	s := scanner{sql: sql}
	if s.skipBlank() != nil || s.pos >= len(sql) || !isWordStart(sql[s.pos]) {
		return "", false
	}
	start := s.pos
	s.word()
	return strings.ToLower(sql[start:s.pos]), true
}

// CopyTo writes the query's result to path as one zstd Parquet file. Nothing
// that was there before is kept, and a failed or cancelled copy leaves no file.
func (s *session) CopyTo(ctx context.Context, query, path string, metadata map[string]string) ([]materialize.StagedFile, error) {
	var b strings.Builder
	// What is quoted is a value, and no expression that is bound first.
	b.WriteString("COPY (\n" + query + "\n) TO " + quoteText(path) + " (FORMAT parquet, COMPRESSION 'zstd', USE_TMP_FILE 'false'")
	if s.dictionary > 0 {
		fmt.Fprintf(&b, ", DICTIONARY_SIZE_LIMIT %d", s.dictionary)
	}
	for i, k := range sortedKeys(metadata) {
		b.WriteString([]string{", KV_METADATA {", ", "}[min(i, 1)])
		b.WriteString(quoteIdent(k) + ": " + quoteText(metadata[k]))
	}
	if len(metadata) > 0 {
		b.WriteString("}")
	}
	b.WriteString(")")
	file := materialize.StagedFile{Path: path, Rows: -1}
	s.copying.Store(&copying{path: path, rows: -1})
	count := func(v []any) error {
		n, ok := v[0].(int64)
		if !ok {
			return fmt.Errorf("copy to %s: the engine gave no row count", path)
		}
		file.Rows = n
		return nil
	}
	rows, done, err := s.direct(ctx, b.String())
	if done {
		file.Rows = rows
	} else if err == nil {
		err = s.Query(ctx, b.String(), count)
	}
	if err == nil && file.Rows < 0 { // PIVOT without IN is several statements, of which the last says nothing
		err = s.Query(ctx, "SELECT num_rows FROM parquet_file_metadata("+quoteText(literalPath(path))+")", count)
	}
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(path); err == nil {
			file.Bytes = info.Size()
			s.copying.Store(&copying{path: path, rows: file.Rows, bytes: file.Bytes})
			return []materialize.StagedFile{file}, nil
		}
		err = fmt.Errorf("copy to %s: %w", path, err)
	}
	s.copying.Store(nil)
	if rmErr := os.Remove(path); rmErr != nil && !errors.Is(rmErr, os.ErrNotExist) {
		return nil, errors.Join(err, fmt.Errorf("remove the unfinished %s: %w", path, rmErr))
	}
	return nil, err
}

// Relation makes "schema"."name" read exactly these Parquet files.
func (s *session) Relation(ctx context.Context, schema, name string, files []string, columns []lake.Column) error {
	if err := s.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+quoteIdent(schema)); err != nil {
		return err
	}
	return s.Exec(ctx, "CREATE OR REPLACE VIEW "+relationName(schema, name)+" AS\n"+scanFiles(files, columns))
}

// Fork returns a session on a connection of its own, which writes as this one
// does.
func (s *session) Fork(ctx context.Context) (materialize.Session, error) {
	fork, err := s.db.session(ctx)
	if err != nil {
		return nil, err
	}
	fork.dictionary = s.dictionary
	return fork, nil
}

// Close gives the connection back.
func (s *session) Close() error { return s.conn.Close() }

// scanFiles is a query over exactly these Parquet files, or a typed empty one
// where there are none. Columns are read by name, so that parts whose columns
// stand in different order agree.
func scanFiles(files []string, columns []lake.Column) string {
	if len(files) == 0 {
		return emptyRelation(columns)
	}
	from := fileList(files)
	if len(files) == 1 {
		from = quoteText(literalPath(files[0])) // which is bound in less time than a list of one
	}
	list := "*"
	if len(columns) > 0 {
		names := make([]string, len(columns))
		for i, c := range columns {
			names[i] = quoteIdent(c.Name)
		}
		list = strings.Join(names, ", ")
	}
	// No hive partitioning: a folder called x=1 above the lake is no column.
	return "SELECT " + list + " FROM read_parquet(" + from + ", hive_partitioning = false)"
}

// emptyRelation is a query of no rows with these columns.
func emptyRelation(columns []lake.Column) string {
	list := make([]string, len(columns))
	for i, c := range columns {
		list[i] = materialize.NullOf(c.Type) + " AS " + quoteIdent(c.Name)
	}
	return "SELECT " + strings.Join(list, ", ") + " WHERE false"
}

// literalPath escapes the characters that DuckDB takes for a glob.
func literalPath(path string) string {
	if !strings.ContainsAny(path, "[*?") {
		return path // to make a replacer for each of thousands of files costs more than to open them
	}
	return strings.NewReplacer("[", "[[]", "*", "[*]", "?", "[?]").Replace(path)
}

func relationName(schema, name string) string { return quoteIdent(schema) + "." + quoteIdent(name) }

func quoteIdent(name string) string { return materialize.QuoteIdent(name) }

func quoteText(text string) string { return materialize.QuoteText(text) }

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// engineIdentity names what of the engine shapes data: its version, the time
// zone and the project's settings. It opens no database.
func engineIdentity(cfg project.Engine) string {
	zone := "UTC"
	var b strings.Builder
	for _, name := range sortedKeys(cfg.Settings) {
		if strings.EqualFold(name, "TimeZone") {
			zone = cfg.Settings[name]
			continue
		}
		fmt.Fprintf(&b, ";%s=%s", strings.ToLower(name), cfg.Settings[name])
	}
	return "duckdb " + mapping.LibraryVersion() + ";TimeZone=" + zone + b.String()
}

// tempDirFor is the folder of temporary files of one process under target/.
func tempDirFor(targetDir string, pid int) string {
	return filepath.Join(targetDir, "tmp", strconv.Itoa(pid))
}
