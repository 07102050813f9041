package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"rbt/internal/diag"
)

// usageError is a command line that cannot be understood. It goes to stderr and
// ends in exit code 2.
type usageError struct {
	msg     string
	command string // whose help to point to; "" is rbt itself
}

func (e usageError) Error() string { return e.msg }

// wordsFlag is a flag that takes every word up to the next flag, as dbt's
// --select does: `-s a b --threads 2`.
type wordsFlag struct{ *cli.StringSliceFlag }

// argParser brings a command line into the one order that the flag library
// reads: command, flags as --name=value, then positionals. It is what makes
// flags work before the command and behind positionals, gives word lists to
// wordsFlags, and refuses what nobody expects instead of passing over it.
type argParser struct {
	commands []*cli.Command
	path     []*cli.Command
	flags    map[string]cli.Flag // by every name, of the command
	seen     map[string]string   // scalar flags met, with their values
	out      []string
	args     []string // positionals
	help     bool
}

// normalise returns the arguments (without the program's name) in order, or a
// usageError. maxArgs says how many positionals a command takes.
func normalise(argv []string, commands []*cli.Command, maxArgs func(*cli.Command) int) ([]string, error) {
	p := &argParser{commands: commands, seen: map[string]string{}}
	before, after, err := p.findCommand(argv)
	if err != nil {
		return nil, err
	}
	if len(p.path) == 0 {
		return []string{"--help"}, nil
	}
	cmd := p.path[len(p.path)-1]
	p.flags = flagsByName(cmd.Flags)
	for _, tokens := range [][]string{before, after} {
		if err := p.parse(tokens); err != nil {
			return nil, err
		}
	}
	var out []string
	for _, c := range p.path {
		out = append(out, c.Name)
	}
	if p.help {
		return append(out, "--help"), nil
	}
	if len(cmd.Subcommands) > 0 {
		return nil, p.usage("%q needs one of: %s", p.command(), strings.Join(commandNames(cmd.Subcommands), ", "))
	}
	if limit := maxArgs(cmd); len(p.args) > limit {
		return nil, p.tooMany(p.args[limit], limit)
	}
	out = append(out, p.out...)
	if len(p.args) > 0 {
		out = append(append(out, "--"), p.args...)
	}
	return out, nil
}

// findCommand takes the command words out of argv. Flags may stand before and
// between them; which of those take a value is looked up among all commands.
// It returns the flags before the last command word and what follows it.
func (p *argParser) findCommand(argv []string) (before, after []string, err error) {
	all := map[string]cli.Flag{}
	for _, c := range p.commands {
		for _, c := range append([]*cli.Command{c}, c.Subcommands...) {
			for name, f := range flagsByName(c.Flags) {
				all[name] = f
			}
		}
	}
	level := p.commands
	for i := 0; i < len(argv); i++ {
		token := argv[i]
		if token == "--" || len(level) == 0 {
			after = argv[i:]
			break
		}
		if len(token) > 1 && token[0] == '-' {
			name, _, hasValue := splitFlag(token)
			f, known := all[name]
			if !known && !isHelp(name) && len(p.path) == 0 && !isShortBundle(token) {
				return nil, nil, unknownFlag(name, "", all)
			}
			before = append(before, token)
			// A flag of words before the command takes one word: the next may be
			// the command.
			if known && !hasValue && !isBool(f) && i+1 < len(argv) {
				i++
				before = append(before, argv[i])
			}
			continue
		}
		next := findByName(level, token)
		if next == nil {
			return nil, nil, p.unknownCommand(token, level)
		}
		p.path = append(p.path, next)
		level = next.Subcommands
	}
	if len(p.path) == 0 && len(argv) > 0 && !slices.ContainsFunc(before, func(s string) bool { return isHelp(strings.TrimLeft(s, "-")) }) {
		return nil, nil, usageError{msg: "no command is given"}
	}
	return before, after, nil
}

func (p *argParser) parse(tokens []string) error {
	for i := 0; i < len(tokens); i++ {
		token := tokens[i]
		if token == "--" {
			p.args = append(p.args, tokens[i+1:]...)
			return nil
		}
		if len(token) < 2 || token[0] != '-' {
			p.args = append(p.args, token)
			continue
		}
		name, value, hasValue := splitFlag(token)
		if isHelp(name) {
			p.help = true
			continue
		}
		f, known := p.flags[name]
		if !known {
			expanded, ok := p.unbundle(token)
			if !ok {
				return unknownFlag(name, p.command(), p.flags)
			}
			tokens = slices.Replace(tokens, i, i+1, expanded...)
			i--
			continue
		}
		used, err := p.flag(f, name, value, hasValue, tokens[i+1:])
		if err != nil {
			return err
		}
		i += used
	}
	return nil
}

// flag adds one flag to the output and returns how many of the following tokens
// were its values.
func (p *argParser) flag(f cli.Flag, name, value string, hasValue bool, following []string) (int, error) {
	canonical := f.Names()[0]
	if isBool(f) {
		if !hasValue {
			value = "true"
		}
		if value != "true" && value != "false" {
			return 0, p.usage("flag %s takes no value, but got %q", dashed(name), value)
		}
		return 0, p.once(canonical, name, value)
	}
	if _, words := f.(wordsFlag); words {
		var values []string
		if hasValue {
			values = append(values, value)
		}
		used := 0
		for used < len(following) && !isFlag(following[used]) {
			values = append(values, following[used])
			used++
		}
		if len(values) == 0 {
			return 0, p.usage("flag %s needs at least one word", dashed(name))
		}
		for _, v := range values {
			p.out = append(p.out, "--"+canonical+"="+v)
		}
		return used, nil
	}
	used := 0
	if !hasValue {
		if len(following) == 0 || isFlag(following[0]) {
			return 0, p.usage("flag %s needs a value", dashed(name))
		}
		value, used = following[0], 1
	}
	if _, many := f.(*cli.StringSliceFlag); many {
		p.out = append(p.out, "--"+canonical+"="+value)
		return used, nil
	}
	if value == "" {
		return 0, p.usage("flag %s needs a value, but got an empty one", dashed(name))
	}
	return used, p.once(canonical, name, value)
}

// once refuses a flag that is given twice with different values: which one
// counts should not depend on who reads the line.
func (p *argParser) once(canonical, name, value string) error {
	before, twice := p.seen[canonical]
	if twice && before != value {
		return p.usage("flag %s is given twice: %q and %q", dashed(name), before, value)
	}
	if !twice {
		p.seen[canonical] = value
		p.out = append(p.out, "--"+canonical+"="+value)
	}
	return nil
}

// unbundle splits -fx into -f -x, and -sname or -xs name likewise, where every
// letter is a flag and only the last takes a value.
func (p *argParser) unbundle(token string) ([]string, bool) {
	if !isShortBundle(token) {
		return nil, false
	}
	var out []string
	letters := token[1:]
	for i, r := range letters {
		f, ok := p.flags[string(r)]
		if !ok {
			return nil, false
		}
		if isBool(f) {
			out = append(out, "-"+string(r))
			continue
		}
		if rest := letters[i+1:]; rest != "" {
			return append(out, "-"+string(r)+"="+rest), i == 0
		}
		return append(out, "-"+string(r)), true
	}
	return out, true
}

func (p *argParser) command() string {
	words := []string{"rbt"}
	for _, c := range p.path {
		words = append(words, c.Name)
	}
	return strings.Join(words, " ")
}

func (p *argParser) usage(format string, args ...any) error {
	return usageErrorf(p.command(), format, args...)
}

func (p *argParser) tooMany(arg string, limit int) error {
	takes := "no arguments"
	if limit > 0 {
		takes = fmt.Sprintf("at most %d argument", limit)
	}
	if strings.HasPrefix(arg, "-") && len(arg) > 1 {
		return p.usage("%s takes %s, but %q stands behind \"--\"; flags stand before it", p.command(), takes, arg)
	}
	if _, ok := p.flags["select"]; ok {
		return p.usage("%s takes %s, but got %q; to select nodes write: %s -s %s", p.command(), takes, arg, p.command(), quoteArg(arg))
	}
	return p.usage("%s takes %s, but got %q", p.command(), takes, arg)
}

func (p *argParser) unknownCommand(word string, level []*cli.Command) error {
	names := commandNames(level)
	if near := diag.Nearest(word, names); near != "" {
		return p.usage("%s has no command %q; did you mean %q?", p.command(), word, near)
	}
	return p.usage("%s has no command %q; it has: %s", p.command(), word, strings.Join(names, ", "))
}

// insteadOf says what stands for a flag that dbt has, or had; "" for all else.
func insteadOf(name string) string {
	switch name {
	case "m", "model", "models":
		return "nodes are selected with -s NAME (--select)"
	case "profile", "profiles-dir":
		return "rbt has no profiles: targets: in project.yml says where to publish, --target which"
	case "defer-state":
		return "--state says what is compared and deferred to"
	case "indirect-selection":
		return "a test runs with the models that it looks at; --exclude takes it out"
	}
	return ""
}

func unknownFlag(name, command string, flags map[string]cli.Flag) error {
	msg := fmt.Sprintf("unknown flag %s", dashed(name))
	if instead := insteadOf(name); instead != "" {
		return usageError{msg: msg + "; " + instead, command: command}
	}
	names := []string{"help"}
	for n := range flags {
		if len(n) > 1 {
			names = append(names, n)
		}
	}
	if near := diag.Nearest(name, names); near != "" && len(name) > 1 {
		msg += fmt.Sprintf("; did you mean %s?", dashed(near))
	}
	return usageError{msg: msg, command: command}
}

func flagsByName(flags []cli.Flag) map[string]cli.Flag {
	m := map[string]cli.Flag{}
	for _, f := range flags {
		for _, n := range f.Names() {
			m[n] = f
		}
	}
	return m
}

func commandNames(commands []*cli.Command) []string {
	var names []string
	for _, c := range commands {
		if !c.Hidden {
			names = append(names, c.Names()...)
		}
	}
	slices.Sort(names)
	return names
}

func findByName(commands []*cli.Command, name string) *cli.Command {
	for _, c := range commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

func splitFlag(token string) (name, value string, hasValue bool) {
	name, value, hasValue = strings.Cut(strings.TrimPrefix(strings.TrimPrefix(token, "-"), "-"), "=")
	return name, value, hasValue
}

// isFlag tells a flag from a value: "-1" and "-" are values.
func isFlag(token string) bool {
	return len(token) > 1 && token[0] == '-' && (token[1] < '0' || token[1] > '9')
}

func isHelp(name string) bool { return name == "help" || name == "h" }

func isBool(f cli.Flag) bool {
	_, ok := f.(*cli.BoolFlag)
	return ok
}

func isShortBundle(token string) bool {
	return len(token) > 2 && token[0] == '-' && token[1] != '-' && !strings.Contains(token, "=")
}

func dashed(name string) string {
	if len([]rune(name)) == 1 {
		return "-" + name
	}
	return "--" + name
}

// quoteArg writes a word so that a shell reads it as one.
func quoteArg(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r == '_' || r == '-' || r == '.' || r == '/' || r == ':' || r == '+' || r == ',' || r == '@' ||
			r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 127)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func usageErrorf(command, format string, args ...any) error {
	return usageError{msg: hideCredentials(fmt.Sprintf(format, args...)), command: command}
}
