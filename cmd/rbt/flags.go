package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"rbt/engine"
)

const commonCategory = "common"

// commonFlags are the flags of every command that reads a project.
func commonFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "project-dir", Category: commonCategory, Usage: "the project is in `DIR` (default: the nearest folder upwards with a project.yml)"},
		&cli.StringFlag{Name: "target", Aliases: []string{"t"}, Category: commonCategory, Usage: "use target `NAME` of project.yml"},
		&cli.StringFlag{Name: "target-path", Category: commonCategory, Usage: "write artifacts to `DIR` (default: target)"},
		&cli.StringFlag{Name: "vars", Category: commonCategory, Usage: "variables as YAML: `'{day: 2024-01-31}'`"},
		&cli.StringSliceFlag{Name: "var", Category: commonCategory, Usage: "one variable: `NAME=VALUE`; repeatable"},
		&cli.StringFlag{Name: "log-format", Category: commonCategory, Usage: "`text` or json (one object a line)"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Category: commonCategory, Usage: "print problems and results only"},
		&cli.BoolFlag{Name: "debug", Aliases: []string{"d"}, Category: commonCategory, Usage: "print SQL and timings"},
		&cli.BoolFlag{Name: "no-color", Category: commonCategory, Usage: "print without colours"},
	}
}

// selectFlags choose nodes, with dbt's names.
func selectFlags() []cli.Flag {
	return []cli.Flag{
		wordsFlag{&cli.StringSliceFlag{Name: "select", Aliases: []string{"s"}, Usage: "only these: `NAME...` (all words up to the next flag; m, +m, m+, 2+m+1, @m, tag:x, path:x, a,b; see docs/selecting.md)"}},
		wordsFlag{&cli.StringSliceFlag{Name: "exclude", Usage: "all but these: `NAME...`"}},
		wordsFlag{&cli.StringSliceFlag{Name: "resource-type", Usage: "only nodes of `TYPE...`: model, seed, source, test, unit_test"}},
		&cli.StringFlag{Name: "selector", Usage: "what the selector `NAME` of selectors.yml picks"},
		&cli.StringFlag{Name: "state", Usage: "compare with `STATE` (state:modified, …): a folder with a manifest.json, or git:REF"},
	}
}

func flags(groups ...[]cli.Flag) []cli.Flag {
	var all []cli.Flag
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
}

// commonOptions are what commonFlags say.
type commonOptions struct {
	projectDir string
	target     string
	targetPath string
	vars       string
	varList    []string
	json       bool
	quiet      bool
	debug      bool
	noColor    bool
}

// readCommon reads commonFlags. A flag that is not given falls back to the
// environment variable RBT_<FLAG>; package project looks up those that project.yml
// can set as well.
func readCommon(c *cli.Context, sys *system) (commonOptions, error) {
	o := commonOptions{
		projectDir: flagOrEnv(c, sys, "project-dir"),
		target:     c.String("target"),
		targetPath: c.String("target-path"),
		vars:       c.String("vars"),
		varList:    c.StringSlice("var"),
	}
	for name, to := range map[string]*bool{"quiet": &o.quiet, "debug": &o.debug, "no-color": &o.noColor} {
		on, err := boolOrEnv(c, sys, name)
		if err != nil {
			return o, err
		}
		*to = on
	}
	switch format := flagOrEnv(c, sys, "log-format"); format {
	case "", "text", "default":
	case "json":
		o.json = true
	default:
		return o, badFlag(c, "--log-format is text or json, not %q", format)
	}
	return o, nil
}

// selectOptions are what selectFlags say.
type selectOptions struct {
	selected, excluded, resourceTypes []string
	selector                          string // --selector
	past                              pastOptions
	// results stands for the results of the last run where it is not nil.
	results map[string]string
}

// readSelect reads selectFlags, and deferFlags where the command has them.
func readSelect(c *cli.Context, sys *system) (selectOptions, error) {
	sel := selectOptions{
		selected: c.StringSlice("select"), excluded: c.StringSlice("exclude"), resourceTypes: c.StringSlice("resource-type"),
		selector: c.String("selector"),
	}
	if sel.selector != "" && len(sel.selected)+len(sel.excluded) > 0 {
		return sel, badFlag(c, "--selector goes without --select and --exclude; write selector:%s among their words instead", sel.selector)
	}
	past, err := readPast(c, sys)
	sel.past = past
	return sel, err
}

// positive reads a flag that is a whole number of at least 1; 0 where it is not
// given.
func positive(c *cli.Context, name string) (int, error) {
	if !c.IsSet(name) {
		return 0, nil
	}
	text := c.String(name)
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, badFlag(c, "--%s is a whole number of at least 1, not %q", name, text)
	}
	return n, nil
}

// readThreads reads --threads, in which 0 means the same as in engine.threads.
func readThreads(c *cli.Context) (int, error) {
	if !c.IsSet("threads") {
		return 0, nil
	}
	n, err := strconv.Atoi(c.String("threads"))
	switch {
	case err != nil || n < 0:
		return 0, badFlag(c, "--threads is a whole number of at least 0, not %q", c.String("threads"))
	case n == 0:
		return engine.EveryCore, nil
	default:
		return n, nil
	}
}

func flagOrEnv(c *cli.Context, sys *system, name string) string {
	if c.IsSet(name) {
		return c.String(name)
	}
	v, _ := sys.env(envName(name))
	return v
}

func boolOrEnv(c *cli.Context, sys *system, name string) (bool, error) {
	if c.IsSet(name) {
		return c.Bool(name), nil
	}
	v, _ := sys.env(envName(name))
	if v == "" {
		return false, nil
	}
	on, err := strconv.ParseBool(v)
	if err != nil {
		return false, badFlag(c, "the environment variable %s is true or false, not %q", envName(name), v)
	}
	return on, nil
}

// envName is the environment variable that stands for a flag: RBT_TARGET_PATH.
func envName(flag string) string {
	b := []byte("RBT_" + flag)
	for i, ch := range b {
		switch {
		case ch == '-':
			b[i] = '_'
		case ch >= 'a' && ch <= 'z':
			b[i] = ch - 'a' + 'A'
		}
	}
	return string(b)
}

func badFlag(c *cli.Context, format string, args ...any) error {
	return usageErrorf("rbt "+c.Command.Name, format, args...)
}

// oneOf reads a flag that takes one of some words.
func oneOf(c *cli.Context, name, absent string, words []string) (string, error) {
	text := c.String(name)
	if text == "" {
		return absent, nil
	}
	if !slices.Contains(words, text) {
		return "", badFlag(c, "--%s is one of %s; not %q", name, strings.Join(words, ", "), text)
	}
	return text, nil
}
