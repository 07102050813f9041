package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"rbt/internal/diag"
	"rbt/internal/plan"
)

// parser implements plan.Parser. Scan needs no engine; Tables asks DuckDB's
// serialiser, which executes nothing, and remembers the answer by the content
// of the text.
type parser struct {
	open func(ctx context.Context) (*database, error)

	mu    sync.Mutex
	cache *parseCache
}

var _ plan.Parser = (*parser)(nil)

// Scan reads the text with the token scanner alone.
func (p *parser) Scan(sql string) (plan.Scan, error) {
	st, err := oneQuery(sql)
	if err != nil {
		return plan.Scan{}, err
	}
	scan := plan.Scan{Identifiers: map[string]int{}, Normalized: st.normalised(), Volatile: st.lexicalVolatility(), NoModel: st.noModel()}
	for _, t := range st.tokens {
		if name, ok := identifier(st.text, t); ok {
			name = strings.ToLower(name)
			if _, seen := scan.Identifiers[name]; !seen {
				scan.Identifiers[name] = t.start
			}
		}
	}
	return scan, nil
}

// Condition reads the text with the token scanner alone.
func (p *parser) Condition(sql string) error { return checkCondition(sql) }

// close keeps the answers for the next command. A cache that cannot be written
// costs that command time, and nothing else.
func (p *parser) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.cache.save()
}

// Tables gives the table references of a query outside the scope of its CTEs,
// from DuckDB's own parse tree.
func (p *parser) Tables(sql string) (plan.Tables, error) {
	st, err := oneQuery(sql)
	if err != nil {
		return plan.Tables{}, err
	}
	key := parseKey(st.text)
	p.mu.Lock()
	tables, ok := p.cache.get(key)
	p.mu.Unlock()
	if ok {
		return tables, nil
	}
	ctx := context.Background()
	d, err := p.open(ctx)
	if err != nil {
		return plan.Tables{}, err
	}
	if tables, err = parseTables(ctx, d, st); err != nil {
		return plan.Tables{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cache.put(key, tables)
	return tables, nil
}

// parseTables serialises a statement and walks its tree.
func parseTables(ctx context.Context, d *database, st statement) (plan.Tables, error) {
	var text string
	query := "SELECT CAST(json_serialize_sql(" + quoteText(st.text) + ") AS VARCHAR)"
	if err := d.db.QueryRowContext(ctx, query).Scan(&text); err != nil {
		return plan.Tables{}, parseProblem(parseEngineError(err))
	}
	var tree struct {
		Error      bool
		Type       string `json:"error_type"`
		Message    string `json:"error_message"`
		Position   string
		Statements []map[string]any
	}
	if err := json.Unmarshal(treeJSON(text), &tree); err != nil {
		return plan.Tables{}, fmt.Errorf("read the parse tree of a query: %w", err)
	}
	if tree.Error && tree.Type == "parser" {
		p := &sqlProblem{code: diag.SQLSyntax, offset: -1, msg: tree.Message}
		if _, err := fmt.Sscan(tree.Position, &p.offset); err != nil {
			p.offset = -1
		}
		if _, near, ok := strings.Cut(tree.Message, `at or near "`); ok {
			p.width = utf8.RuneCountInString(strings.TrimSuffix(near, `"`))
		}
		return plan.Tables{}, p
	}
	if tree.Error {
		return plan.Tables{Refused: true, Volatile: "the engine cannot show its parse tree"}, nil
	}
	if len(tree.Statements) != 1 {
		return plan.Tables{}, &sqlProblem{code: diag.SQLTwoStatements, msg: fmt.Sprintf("a model is one SELECT; the engine sees %d statements", len(tree.Statements))}
	}
	w := treeWalk{seen: map[plan.TableName]bool{}}
	w.walk(tree.Statements[0], nil)
	return w.result(), nil
}

// parseProblem is what the engine says where it cannot even look at a text, which
// is no fault of the text.
func parseProblem(e *EngineError) error {
	if code := codeOf(e); code == diag.EngineResource {
		return &sqlProblem{code: code, msg: "the SQL engine cannot read this query: " + messageOf(e), hint: hintOf(e)}
	}
	return fmt.Errorf("parse a query: %w", e)
}

// treeJSON makes JSON of a tree as the engine writes it: it writes a constant that
// is no finite number (1e400, or 'nan' in a plan) as a bare Infinity or NaN.
func treeJSON(text string) []byte {
	if !strings.Contains(text, "Infinity") && !strings.Contains(text, "NaN") {
		return []byte(text)
	}
	out := make([]byte, 0, len(text))
	quoted := false
	for i := 0; i < len(text); {
		n := 1
		switch word := notFinite(text[i:]); {
		case !quoted && word != "":
			out = append(out, "null"...)
			i += len(word)
			continue
		case quoted && text[i] == '\\':
			n = 2
		case text[i] == '"':
			quoted = !quoted
		}
		out = append(out, text[i:i+n]...)
		i += n
	}
	return out
}

// notFinite gives the number that a text begins with, "" where that is finite or
// no number.
func notFinite(text string) string {
	for _, word := range []string{"Infinity", "-Infinity", "NaN"} {
		if strings.HasPrefix(text, word) {
			return word
		}
	}
	return ""
}

// treeWalk collects what a serialised parse tree reads.
type treeWalk struct {
	names  []plan.TableName
	seen   map[plan.TableName]bool
	why    string // first reason, by offset, why the text is volatile
	whyPos int
}

// scope is a list of CTE names that are visible, innermost first.
type scope struct {
	name  string
	outer *scope
}

func (s *scope) has(name string) bool {
	for ; s != nil; s = s.outer {
		if strings.EqualFold(s.name, name) {
			return true
		}
	}
	return false
}

func (w *treeWalk) result() plan.Tables {
	slices.SortFunc(w.names, func(a, b plan.TableName) int {
		return cmp.Or(cmp.Compare(uint(a.Offset), uint(b.Offset)), cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Name, b.Name))
	})
	return plan.Tables{Names: w.names, Volatile: w.why}
}

func (w *treeWalk) volatile(why string, offset int) {
	if why != "" && (w.why == "" || offset < w.whyPos) {
		w.why, w.whyPos = why, offset
	}
}

// walk visits a value of the tree. A query's CTEs are visible in the query and
// in the CTEs after them; a recursive one in its recursive part too.
func (w *treeWalk) walk(value any, in *scope) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			w.walk(item, in)
		}
	case map[string]any:
		w.object(v, in)
	}
}

func (w *treeWalk) object(o map[string]any, in *scope) {
	skip := map[string]bool{}
	if ctes, ok := o["cte_map"].(map[string]any); ok {
		in = w.ctes(ctes, in)
		skip["cte_map"] = true
	}
	offset := offsetOf(o)
	switch o["type"] {
	case "RECURSIVE_CTE_NODE":
		w.walk(o["right"], &scope{text(o, "cte_name"), in})
		skip["right"] = true
	case "CTE_NODE":
		w.walk(o["child"], &scope{text(o, "cte_name"), in})
		skip["child"] = true
	case "BASE_TABLE":
		w.table(text(o, "catalog_name"), text(o, "schema_name"), text(o, "table_name"), offset, in)
	case "SHOW_REF":
		if name := strings.Trim(text(o, "table_name"), `"`); name != "" {
			w.volatile("shows the engine's "+name, offset)
		}
	case "TABLE_FUNCTION":
		if f, ok := o["function"].(map[string]any); ok {
			w.volatile(volatileTableFunction(text(f, "function_name")), offset)
		}
	case "FUNCTION":
		children, _ := o["children"].([]any)
		w.volatile(volatileCall(text(o, "function_name"), len(children)), offset)
	case "COLUMN_REF":
		if names, ok := o["column_names"].([]any); ok && len(names) == 1 {
			if name, _ := names[0].(string); volatileNames[strings.ToLower(name)] {
				w.volatile("reads "+strings.ToLower(name), offset)
			}
		}
	}
	if sample, ok := o["sample"].(map[string]any); ok && sample != nil {
		w.volatile("takes a sample", offset)
	}
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if !skip[key] {
			w.walk(o[key], in)
		}
	}
}

func (w *treeWalk) ctes(ctes map[string]any, in *scope) *scope {
	list, _ := ctes["map"].([]any)
	for _, item := range list {
		entry, _ := item.(map[string]any)
		w.walk(entry["value"], in)
		in = &scope{text(entry, "key"), in}
	}
	return in
}

func (w *treeWalk) table(catalog, schema, name string, offset int, in *scope) {
	if catalog == "" && (schema == "" || strings.EqualFold(schema, "recurring")) && in.has(name) {
		return
	}
	w.volatile(volatileTable(catalog, schema, name), offset)
	key := plan.TableName{Catalog: strings.ToLower(catalog), Schema: strings.ToLower(schema), Name: strings.ToLower(name)}
	if w.seen[key] {
		return
	}
	w.seen[key] = true
	w.names = append(w.names, plan.TableName{Catalog: catalog, Schema: schema, Name: name, Offset: offset})
}

func text(o map[string]any, key string) string {
	s, _ := o[key].(string)
	return s
}

// offsetOf is the byte offset of a piece of the tree, -1 where the engine gives
// the largest number there is for "not known".
func offsetOf(o map[string]any) int {
	f, ok := o["query_location"].(float64)
	if !ok || f > 1<<40 {
		return -1
	}
	return int(f)
}
