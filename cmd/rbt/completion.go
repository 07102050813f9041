package main

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// The scripts ask `rbt __complete <words>` for what can stand at the cursor, so
// that they need no change when commands do.
//
//go:embed completion
var completionScripts embed.FS

func newCompletionCommand(sys *system) commandSpec {
	return commandSpec{
		Command: &cli.Command{
			Name: "completion", Usage: "print the completion script of a shell", ArgsUsage: "bash|zsh|fish",
			Description: `The script completes commands, flags, and the names of models after -s.`,
			Action:      func(c *cli.Context) error { return runCompletion(sys, c.Args().First()) },
		},
		args: 1,
		examples: []string{
			`source <(rbt completion bash)      # in ~/.bashrc`,
			`source <(rbt completion zsh)       # in ~/.zshrc`,
			`rbt completion fish > ~/.config/fish/completions/rbt.fish`,
		},
		exits: "0    done\n2    usage",
	}
}

func runCompletion(sys *system, shell string) error {
	script, err := completionScripts.ReadFile("completion/rbt." + shell)
	if shell == "" || strings.ContainsAny(shell, "/.") || err != nil {
		return usageErrorf("rbt completion", "rbt completion needs one of: bash, fish, zsh")
	}
	_, err = sys.stdout.Write(script)
	return err
}

// newCompleteCommand is what the scripts call; it is hidden.
func newCompleteCommand(sys *system, all func() []commandSpec, names func() []string) commandSpec {
	return commandSpec{
		Command: &cli.Command{
			Name: "__complete", Usage: "words that can stand at the cursor", Hidden: true,
			Action: func(c *cli.Context) error {
				for _, w := range complete(c.Args().Slice(), all(), names) {
					if _, err := fmt.Fprintln(sys.stdout, w); err != nil {
						return err
					}
				}
				return nil
			},
		},
		args: 1 << 20,
	}
}

// complete gives the words that can replace the last one. names gives the nodes
// of the project, or nothing where there is none.
func complete(words []string, specs []commandSpec, names func() []string) []string {
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	var spec *commandSpec
	level := specs
	for _, w := range words[:len(words)-1] {
		for i := range level {
			if level[i].HasName(w) {
				spec, level = &level[i], level[i].subs
				break
			}
		}
	}
	var out []string
	switch {
	case spec == nil || len(level) > 0 && !strings.HasPrefix(last, "-"):
		for _, s := range level {
			if !s.Hidden {
				out = append(out, s.Name)
			}
		}
	case strings.HasPrefix(last, "-"):
		for _, f := range spec.Flags {
			for _, n := range f.Names() {
				out = append(out, dashed(n))
			}
		}
	case takesNodes(words[:len(words)-1], spec.Flags):
		prefix := last[:len(last)-len(strings.TrimLeft(last, "+@"))]
		for _, n := range names() {
			out = append(out, prefix+n)
		}
	case spec.Name == "completion":
		out = []string{"bash", "fish", "zsh"}
	case spec.Name == "schema":
		out = []string{"model", "project"}
	}
	out = slices.DeleteFunc(out, func(w string) bool { return !strings.HasPrefix(w, last) })
	slices.Sort(out)
	return slices.Compact(out)
}

// takesNodes reports whether the flag in force at the cursor is one that takes
// the names of nodes.
func takesNodes(before []string, flags []cli.Flag) bool {
	byName := flagsByName(flags)
	for i := len(before) - 1; i >= 0; i-- {
		if !isFlag(before[i]) {
			continue
		}
		name, _, _ := splitFlag(before[i])
		f := byName[name]
		_, words := f.(wordsFlag)
		return words && f.Names()[0] != "resource-type"
	}
	return false
}
