package main

import (
	"strings"

	"github.com/urfave/cli/v2"
)

const appHelp = `rbt - {{.Usage}}

USAGE:
   {{.UsageText}}

COMMANDS:{{range .VisibleCommands}}
   {{join .Names ", "}}{{"\t"}}{{.Usage}}{{end}}

"rbt <command> --help" explains a command, with examples.

EXIT STATUS:
   0    everything is good (warnings included)
   1    a model or test failed, or a test could not be evaluated
   2    rbt could not start or finish: usage, project, lock, input or output
   130  interrupted
`

const usualExits = `0    everything is good (warnings included)
1    a model or test failed, or a test could not be evaluated
2    rbt could not start or finish: usage, project, lock, input or output
130  interrupted`

// unableExits is for commands that build and test nothing.
const unableExits = `0    done
2    rbt could not start or finish: usage, project, input or output
130  interrupted`

// help is the text of `rbt command --help`.
func (s commandSpec) help() string {
	var b strings.Builder
	c := s.Command
	b.WriteString("{{.HelpName}} - " + c.Usage + "\n\nUSAGE:\n   {{.HelpName}}")
	if len(s.subs) > 0 {
		b.WriteString(" command")
	}
	b.WriteString(" [flags]")
	if c.ArgsUsage != "" {
		b.WriteString(" " + c.ArgsUsage)
	}
	b.WriteByte('\n')
	if len(c.Aliases) > 0 {
		b.WriteString("   (also: rbt " + strings.Join(c.Aliases, ", rbt ") + ")\n")
	}
	if c.Description != "" {
		b.WriteString("\n" + strings.TrimSpace(c.Description) + "\n")
	}
	if len(s.subs) > 0 {
		b.WriteString("\nCOMMANDS:\n")
		var rows [][2]string
		for _, sub := range s.subs {
			rows = append(rows, [2]string{sub.Name, sub.Usage})
		}
		writeColumns(&b, rows)
	}
	for _, g := range []struct{ title, category string }{{"FLAGS", ""}, {"FLAGS OF EVERY COMMAND", commonCategory}} {
		var rows [][2]string
		for _, f := range c.Flags {
			if cf, ok := f.(cli.CategorizableFlag); ok && cf.GetCategory() == g.category {
				rows = append(rows, flagHelp(f))
			}
		}
		if len(rows) > 0 {
			b.WriteString("\n" + g.title + ":\n")
			writeColumns(&b, rows)
		}
	}
	if len(s.examples) > 0 {
		b.WriteString("\nEXAMPLES:\n   " + strings.Join(s.examples, "\n   ") + "\n")
	}
	exits := s.exits
	if exits == "" {
		exits = usualExits
	}
	b.WriteString("\nEXIT STATUS:\n   " + strings.ReplaceAll(exits, "\n", "\n   ") + "\n")
	return b.String()
}

// flagHelp gives "-s, --select NAME" and the explanation. The name of the value
// is what stands between backquotes in the flag's usage.
func flagHelp(f cli.Flag) [2]string {
	names := f.Names()
	left := "    "
	if len(names) > 1 {
		left = "-" + names[1] + ", "
	}
	left += "--" + names[0]
	usage := ""
	if d, ok := f.(cli.DocGenerationFlag); ok {
		usage = d.GetUsage()
	}
	if before, rest, ok := strings.Cut(usage, "`"); ok {
		if value, after, ok := strings.Cut(rest, "`"); ok {
			left += " " + value
			usage = before + value + after
		}
	}
	return [2]string{left, usage}
}

func writeColumns(b *strings.Builder, rows [][2]string) {
	width := 0
	for _, r := range rows {
		width = max(width, runeLen(r[0]))
	}
	for _, r := range rows {
		b.WriteString("   " + r[0] + strings.Repeat(" ", width-runeLen(r[0])+2) + r[1] + "\n")
	}
}

// literal protects a text from the template engine of the library, but for the
// name of the command.
func literal(text string) string {
	const name = "{{.HelpName}}"
	parts := strings.Split(text, name)
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(p, "{{", "{{`{{`}}")
	}
	return strings.Join(parts, name)
}
