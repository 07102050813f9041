package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"rbt/internal/plan"
)

var lsFormats = []string{"json", "name", "path"}

func newLsCommand(sys *system) commandSpec {
	return commandSpec{
		Command: &cli.Command{
			Name: "ls", Aliases: []string{"list"}, Usage: "list what the project holds, or what a selection means",
			Description: `Prints names, one a line, in alphabetical order: models and seeds, and what else
--resource-type names. A selection that holds neither lists its tests and sources. It writes
nothing but target/cache.`,
			Flags: flags(selectFlags(), []cli.Flag{
				&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FORM`: name, path or json (one object a line)"},
			}, commonFlags()),
			Action: func(c *cli.Context) error {
				common, err := readCommon(c, sys)
				if err != nil {
					return err
				}
				o := lsOptions{commonOptions: common}
				if o.selectOptions, err = readSelect(c, sys); err != nil {
					return err
				}
				if o.output, err = oneOf(c, "output", "name", lsFormats); err != nil {
					return err
				}
				return runLs(c.Context, sys, o)
			},
		},
		examples: []string{
			"rbt ls",
			"rbt ls -s +fct_orders --output path",
			"rbt ls --resource-type test -s fct_orders",
			"rbt ls --output json | jq -r .name",
		},
		exits: unableExits,
	}
}

type lsOptions struct {
	commonOptions
	selectOptions
	output string
}

func runLs(ctx context.Context, sys *system, o lsOptions) error {
	s, err := openProject(ctx, sys, o.commonOptions, false)
	if err != nil {
		return err
	}
	defer s.close()
	s.noTexts = true
	_, selection, err := s.selectNodes(ctx, o.selectOptions)
	if err != nil {
		return err
	}
	entries := lsEntries(selection, len(o.resourceTypes) > 0)
	if asked := len(o.selected) > 0 || o.selector != ""; asked && len(entries) == 0 {
		entries = lsEntries(selection, true)
	}
	var out strings.Builder
	for _, e := range entries {
		line := e.Name
		switch o.output {
		case "path":
			line = e.File
		case "json":
			text, err := json.Marshal(e)
			if err != nil {
				return fmt.Errorf("encode %s: %w", e.ID, err)
			}
			line = string(text)
		}
		out.WriteString(line + "\n")
	}
	_, err = io.WriteString(s.out, out.String())
	return err
}

// lsEntry is one line of `rbt ls`; as JSON its keys are dbt's.
type lsEntry struct {
	ID              string   `json:"unique_id"`
	Name            string   `json:"name"`
	ResourceType    string   `json:"resource_type"`
	File            string   `json:"original_file_path"`
	Materialization string   `json:"materialized,omitempty"`
	Tags            []string `json:"tags"`
	DependsOn       []string `json:"depends_on"`
}

// lsEntries are what a selection lists: what can be built, and everything where
// kinds were asked for by name.
func lsEntries(s plan.Selection, everything bool) []lsEntry {
	entries := make([]lsEntry, 0, len(s.Nodes))
	for _, n := range s.Nodes {
		if n.Kind == plan.KindSource && !everything {
			continue
		}
		e := lsEntry{ID: n.ID, Name: n.Name, ResourceType: string(n.Kind), File: n.File, Tags: orEmpty(n.Tags()), DependsOn: []string{}}
		if n.Model != nil {
			e.Materialization = string(n.Model.Materialization)
		}
		for _, p := range n.Parents {
			e.DependsOn = append(e.DependsOn, p.ID)
		}
		entries = append(entries, e)
	}
	for _, t := range s.Tests {
		if !everything {
			break
		}
		e := lsEntry{ID: t.ID, Name: t.Name, ResourceType: string(t.Kind), File: t.File, Tags: []string{}, DependsOn: []string{}}
		for _, n := range t.Reads {
			e.DependsOn = append(e.DependsOn, n.ID)
		}
		entries = append(entries, e)
	}
	slices.SortStableFunc(entries, func(a, b lsEntry) int { return strings.Compare(a.Name, b.Name) })
	return entries
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
