package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"rbt/engine"
	"rbt/internal/diag"
	"rbt/internal/plan"
	"rbt/internal/project"
)

// defaultLimit is how many rows show prints, as in dbt.
const defaultLimit = 5

func newShowCommand(sys *system) commandSpec {
	return commandSpec{
		Command: &cli.Command{
			Name: "show", Usage: "print rows of a model or of a query, without publishing",
			Description: `Runs the SQL of one model, or of --inline, over what is published, and prints its rows exactly:
decimals, large integers, times and nested values as the engine writes them. In JSON the second of
two columns called a is a_1. A run beside it does not disturb it: it reads one version of
everything.`,
			Flags: flags([]cli.Flag{
				wordsFlag{&cli.StringSliceFlag{Name: "select", Aliases: []string{"s"}, Usage: "the model, seed, source, or output of an ingest: `NAME`"}},
				&cli.StringFlag{Name: "inline", Usage: "the query: `SQL`"},
				&cli.StringFlag{Name: "limit", Usage: fmt.Sprintf("print at most `N` rows; -1 for all (default: %d)", defaultLimit)},
				&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FORM`: " + strings.Join(rowFormats, ", ")},
				&cli.StringFlag{Name: "state", Usage: "with --defer, `STATE` says where to read: a folder with a manifest.json, or git:REF"},
			}, deferFlags(), commonFlags()),
			Action: func(c *cli.Context) error {
				o, err := readShowOptions(c, sys)
				if err != nil {
					return err
				}
				return runShow(c.Context, sys, o)
			},
		},
		examples: []string{
			"rbt show -s fct_orders",
			"rbt show -s orders_raw._rejects",
			"rbt show -s fct_orders --limit 100 --output csv > orders.csv",
			`rbt show --inline "select status, count(*) from {{ ref('fct_orders') }} group by 1"`,
		},
		exits: `0    done
1    the query failed
2    rbt could not start or finish: usage, project, input or output
130  interrupted`,
	}
}

type showOptions struct {
	commonOptions
	selected []string
	inline   string
	limit    int // -1 is all
	output   string
	past     pastOptions
}

func readShowOptions(c *cli.Context, sys *system) (showOptions, error) {
	common, err := readCommon(c, sys)
	o := showOptions{commonOptions: common, selected: c.StringSlice("select"), inline: c.String("inline"), limit: defaultLimit}
	if err != nil {
		return o, err
	}
	if o.output, err = oneOf(c, "output", "table", rowFormats); err != nil {
		return o, err
	}
	if o.past, err = readPast(c, sys); err != nil {
		return o, err
	}
	switch {
	case c.String("limit") == "-1":
		o.limit = -1
	case c.IsSet("limit"):
		if o.limit, err = positive(c, "limit"); err != nil {
			return o, err
		}
	}
	if (o.inline == "") == (len(o.selected) == 0) {
		return o, badFlag(c, "rbt show needs one of -s NAME and --inline SQL")
	}
	return o, nil
}

func runShow(ctx context.Context, sys *system, o showOptions) error {
	s, err := openProject(ctx, sys, o.commonOptions, true)
	if err != nil {
		return err
	}
	defer s.close()
	other, err := s.deferTo(ctx, o.past)
	if err != nil {
		return s.fail(err)
	}
	show := engine.ShowOptions{Limit: max(0, o.limit), DeferLake: other.lake}
	if ref, ok := outputOf(s.p, o.selected); ok {
		o.inline = "select * from {{ ref('" + ref + "') }}"
	}
	if o.inline != "" {
		if show.Graph, err = s.graph(ctx); err != nil {
			return err
		}
		if show.Compiled, err = s.inline(ctx, o.inline); err != nil {
			return err
		}
		show.Recompile = func(query project.QueryFunc) (*project.Compiled, diag.List) {
			return s.p.CompileText(ctx, inlineFile, o.inline, 1, project.CompileOptions{RunStartedAt: s.started, InvocationID: s.invocationID, Query: query})
		}
	} else if show.Graph, show.Node, err = s.oneNode(ctx, o.selected); err != nil {
		return err
	}
	rows, err := s.engine.Show(ctx, show)
	if err != nil {
		if ctx.Err() != nil {
			return errInterrupted
		}
		_ = s.fail(lakeError(err))
		return errFailed
	}
	return writeRows(s.out, rowsToPrint(rows), o.output)
}

// outputOf finds the output of an ingest that a selection names with a dot, as
// ref() does: a selection of nodes would mean all of them.
func outputOf(p *project.Project, selected []string) (ref string, ok bool) {
	if len(selected) != 1 {
		return "", false
	}
	name, output, dotted := strings.Cut(selected[0], ".")
	if !dotted {
		return "", false
	}
	for _, m := range p.Models {
		if strings.EqualFold(m.Name, name) && m.HasOutput(output) {
			return m.Name + "." + output, true
		}
	}
	return "", false
}

// oneNode is the one node that a selection picks.
func (s *session) oneNode(ctx context.Context, words []string) (*plan.Graph, *plan.Node, error) {
	g, selection, err := s.selectNodes(ctx, selectOptions{selected: words})
	if err != nil {
		return nil, nil, err
	}
	if len(selection.Nodes) != 1 {
		names := make([]string, 0, len(selection.Nodes))
		for _, n := range selection.Nodes {
			names = append(names, n.Name)
		}
		return nil, nil, usageErrorf("rbt show", "rbt show prints one node, and %q selects %d: %s", strings.Join(words, " "), len(names), shorten(names, 8))
	}
	return g, selection.Nodes[0], nil
}

// shorten joins names and leaves out those beyond the n-th.
func shorten(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}

func rowsToPrint(rows *engine.Rows) rowSet {
	set := rowSet{more: rows.More}
	for _, c := range rows.Columns {
		set.columns = append(set.columns, c.Name)
	}
	for _, row := range rows.Values {
		cells := make([]cell, len(row))
		for i, v := range row {
			cells[i] = cell{text: v.Text, json: validJSON(v.JSON), null: v.Null}
		}
		set.rows = append(set.rows, cells)
	}
	return set
}

// validJSON makes JSON of the engine's, which writes infinities inside nested
// values bare; they become texts.
func validJSON(text string) string {
	if json.Valid([]byte(text)) {
		return text
	}
	var b strings.Builder
	inText := false
	for i := 0; i < len(text); i++ {
		if inText && text[i] == '\\' && i+1 < len(text) {
			b.WriteString(text[i : i+2])
			i++
			continue
		}
		if text[i] == '"' {
			inText = !inText
		}
		word := ""
		for _, w := range []string{"-Infinity", "Infinity", "NaN"} {
			if !inText && strings.HasPrefix(text[i:], w) {
				word = w
				break
			}
		}
		if word != "" {
			b.WriteString(`"` + word + `"`)
			i += len(word) - 1
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
