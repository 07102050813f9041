package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"rbt/engine"
	"rbt/internal/diag"
	"rbt/internal/plan"
)

func newSourceCommand(sys *system) commandSpec {
	return commandSpec{
		Command:  &cli.Command{Name: "source", Usage: "look at sources: freshness"},
		subs:     []commandSpec{newFreshnessCommand(sys)},
		examples: []string{"rbt source freshness"},
		exits:    freshnessExits,
	}
}

const freshnessExits = `0    every source is as fresh as it must be (warnings included)
1    a source is older than error_after, or its age cannot be found
2    rbt could not start or finish: usage, project, input or output
130  interrupted`

func newFreshnessCommand(sys *system) commandSpec {
	return commandSpec{
		Command: &cli.Command{
			Name: "freshness", Usage: "say how old the data of sources is",
			Description: `Compares the age of every source that has "freshness:" with warn_after and error_after. The age is
that of the newest file, or that of the largest value of the loaded_at column. The result is in
target/sources.json, with which source_status:fresher compares later.`,
			Flags: flags(selectFlags(), commonFlags()),
			Action: func(c *cli.Context) error {
				common, err := readCommon(c, sys)
				if err != nil {
					return err
				}
				o := freshnessOptions{commonOptions: common}
				if o.selectOptions, err = readSelect(c, sys); err != nil {
					return err
				}
				return runFreshness(c.Context, sys, o)
			},
		},
		examples: []string{
			"rbt source freshness",
			"rbt source freshness -s source:raw.orders",
			"rbt source freshness && rbt run",
		},
		exits: freshnessExits,
	}
}

type freshnessOptions struct {
	commonOptions
	selectOptions
}

func runFreshness(ctx context.Context, sys *system, o freshnessOptions) error {
	s, err := openProject(ctx, sys, o.commonOptions, false)
	if err != nil {
		return err
	}
	defer s.close()
	g, selection, err := s.selectNodes(ctx, o.selectOptions)
	if err != nil {
		return err
	}
	sources := limitedSources(selection.Nodes)
	if len(sources) == 0 {
		s.say("info", "Nothing to do: no selected source has freshness:")
		return nil
	}
	var results []engine.FreshnessResult
	var worst error
	err = s.engine.Freshness(ctx, g, sources, func(r engine.FreshnessResult) {
		results = append(results, r)
		if r.Status == engine.FreshnessError || r.Status == engine.FreshnessUnknown {
			worst = errFailed
		}
		s.tellFreshness(r, len(results), len(sources))
	})
	if err != nil {
		return err
	}
	if err := s.engine.WriteSources(ctx, results, s.sys.now().Sub(s.started), s.invocation("source freshness", nil)); err != nil {
		return s.fail(err)
	}
	return worst
}

// limitedSources gives the sources among nodes that say how old they may be.
func limitedSources(nodes []*plan.Node) []*plan.Node {
	var out []*plan.Node
	for _, n := range nodes {
		if n.Source != nil && n.Source.Freshness != nil {
			out = append(out, n)
		}
	}
	return out
}

// tellFreshness prints the line of a source.
func (s *session) tellFreshness(r engine.FreshnessResult, number, total int) {
	if s.o.json {
		e := jsonFreshness{
			Event: "source_freshness", Time: r.Checked.UTC().Format(time.RFC3339Nano), ID: r.Node.ID, Name: r.Node.Name, Status: string(r.Status),
		}
		if r.Err == nil {
			at, age := r.LoadedAt.Format(time.RFC3339Nano), r.Age.Seconds()
			e.LoadedAt, e.Age = &at, &age
		} else {
			e.Error = message(r.Err)
		}
		text, _ := json.Marshal(e) // texts and numbers only
		_, _ = io.WriteString(s.out, string(text)+"\n")
		return
	}
	if s.o.quiet && r.Status == engine.FreshnessPass {
		return
	}
	verdict := map[engine.FreshnessStatus]string{
		engine.FreshnessPass: "PASS", engine.FreshnessWarn: "WARN", engine.FreshnessError: "ERROR STALE", engine.FreshnessUnknown: "ERROR",
	}[r.Status]
	paint := map[engine.FreshnessStatus]func(string) string{
		engine.FreshnessPass: s.colour.green, engine.FreshnessWarn: s.colour.yellow, engine.FreshnessError: s.colour.red, engine.FreshnessUnknown: s.colour.red,
	}[r.Status]
	note := "[" + verdict + " in " + seconds(r.Elapsed) + "]"
	if r.Err == nil {
		note = "[" + verdict + " " + age(r.Age) + " old in " + seconds(r.Elapsed) + "]"
	}
	what := fmt.Sprintf("%d of %d %s freshness of %s ", number, total, verdict, r.Node.Name)
	_, _ = fmt.Fprintf(s.out, "%s%s %s\n", what, strings.Repeat(".", max(3, lineWidth-runeLen(what))), paint(note))
	if r.Err != nil {
		_, _ = io.WriteString(s.errOut, renderError(placed(r), s.p.SourceText))
	}
}

// placed gives an error of a source the place of its declaration.
func placed(r engine.FreshnessResult) error {
	var d diag.Diagnostic
	var list diag.List
	if errors.As(r.Err, &d) || errors.As(r.Err, &list) {
		return r.Err
	}
	return diag.Errorf(diag.SourceMissing, r.Node.Source.Freshness.Pos, "the age of source %s cannot be found: %v", r.Node.Name, r.Err)
}

type jsonFreshness struct {
	Event    string   `json:"event"`
	Time     string   `json:"time"`
	ID       string   `json:"unique_id"`
	Name     string   `json:"name"`
	Status   string   `json:"status"`
	LoadedAt *string  `json:"max_loaded_at"`
	Age      *float64 `json:"age_s"`
	Error    string   `json:"error,omitempty"`
}

// age is a duration in the two largest units that a person would name.
func age(d time.Duration) string {
	days, hours, minutes := int(d/(24*time.Hour)), int(d/time.Hour)%24, int(d/time.Minute)%60
	switch {
	case days > 0:
		return fmt.Sprintf("%dd %dh", days, hours)
	case hours > 0:
		return fmt.Sprintf("%dh %dm", hours, minutes)
	case minutes > 0:
		return fmt.Sprintf("%dm", minutes)
	}
	return fmt.Sprintf("%ds", int(d/time.Second))
}

// fresherSources gives "fresher" for sources with newer data. With a folder for
// --state its sources.json is compared with that of the target folder, as in
// dbt; else the last check with what is there now.
func (s *session) fresherSources(ctx context.Context, o pastOptions) (map[string]string, error) {
	now := map[string]time.Time{}
	dir := s.p.TargetDir
	var err error
	if _, git := gitRef(o.state); o.state != "" && !git {
		if now, err = engine.ReadSources(dir); err != nil {
			return nil, err
		}
		if dir, err = s.sys.abs(o.state); err != nil {
			return nil, err
		}
	}
	before, err := engine.ReadSources(dir)
	if err != nil {
		return nil, err
	}
	if dir == s.p.TargetDir {
		g, err := s.graph(ctx)
		if err != nil {
			return nil, err
		}
		err = s.engine.Freshness(ctx, g, limitedSources(g.Nodes()), func(r engine.FreshnessResult) {
			if r.Err == nil {
				now[r.Node.ID] = r.LoadedAt
			}
		})
		if err != nil {
			return nil, err
		}
	}
	status := map[string]string{}
	for id, at := range now {
		// Between two checks a source that only the later one knows is news;
		// against now one that was never checked says nothing.
		old, known := before[id]
		if at.After(old) && (known || dir != s.p.TargetDir) {
			status[id] = "fresher"
		}
	}
	return status, nil
}
