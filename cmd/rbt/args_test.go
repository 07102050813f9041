package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"
	"pgregory.net/rapid"
)

// testCommands is a command line with every kind of flag and argument.
func testCommands() ([]*cli.Command, func(*cli.Command) int) {
	run := &cli.Command{Name: "run", Aliases: []string{"build"}, Flags: flags(selectFlags(), []cli.Flag{
		&cli.BoolFlag{Name: "full-refresh", Aliases: []string{"f"}},
		&cli.BoolFlag{Name: "fail-fast", Aliases: []string{"x"}},
		&cli.StringFlag{Name: "threads"},
	}, commonFlags())}
	initCmd := &cli.Command{Name: "init", Flags: []cli.Flag{&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}}}}
	source := &cli.Command{Name: "source", Subcommands: []*cli.Command{{Name: "freshness", Flags: flags(selectFlags(), commonFlags())}}}
	return []*cli.Command{run, initCmd, source}, func(c *cli.Command) int {
		if c == initCmd {
			return 1
		}
		return 0
	}
}

func TestNormalise(t *testing.T) {
	for _, tc := range []struct {
		name, in, want, err string
	}{
		{name: "nothing is help", in: "", want: "--help"},
		{name: "help", in: "--help", want: "--help"},
		{name: "help of a command", in: "run -s a -h", want: "run|--help"},
		{name: "alias", in: "build", want: "run"},
		{name: "words", in: "run -s a b --exclude c d -f", want: "run|--select=a|--select=b|--exclude=c|--exclude=d|--full-refresh=true"},
		{name: "repeated words", in: "run -s a -s b", want: "run|--select=a|--select=b"},
		{name: "words after =", in: "run --select=a b", want: "run|--select=a|--select=b"},
		{name: "flags before the command", in: "--target prod -q run -f", want: "run|--target=prod|--quiet=true|--full-refresh=true"},
		{name: "words before the command take one", in: "-s a run", want: "run|--select=a"},
		{name: "words before the command leave positionals alone", in: "-s a run b", err: `rbt run takes no arguments, but got "b"; to select nodes write: rbt run -s b`},
		{name: "bundle", in: "run -fx", want: "run|--full-refresh=true|--fail-fast=true"},
		{name: "bundle that ends in a value", in: "run -fs a", want: "run|--full-refresh=true|--select=a"},
		{name: "value glued to a letter", in: "run -sa", want: "run|--select=a"},
		{name: "graph operators are words", in: "run -s +a+ @b 2+c", want: "run|--select=+a+|--select=@b|--select=2+c"},
		{name: "empty word reaches the selector", in: "run -s ''", want: "run|--select="},
		{name: "positional before and after flags", in: "init dir -q", want: "init|--quiet=true|--|dir"},
		{name: "after --", in: "init -- -odd", want: "init|--|-odd"},
		{name: "subcommand", in: "source freshness -s a", want: "source|freshness|--select=a"},
		{name: "subcommand is missing", in: "source", err: `"rbt source" needs one of: freshness`},
		{name: "subcommand is unknown", in: "source freshnes", err: `rbt source has no command "freshnes"; did you mean "freshness"?`},
		{name: "vars keep their text", in: "run --vars {a:-1} --var a=b=c --var d=", want: "run|--vars={a:-1}|--var=a=b=c|--var=d="},
		{name: "same twice", in: "run -f -f --threads 2 --threads=2", want: "run|--full-refresh=true|--threads=2"},
		{name: "two values", in: "run --threads 2 --threads 3", err: `flag --threads is given twice: "2" and "3"`},
		{name: "bool twice", in: "run -f --full-refresh=false", err: `flag --full-refresh is given twice: "true" and "false"`},
		{name: "negative number is a value", in: "run --threads -1", want: "run|--threads=-1"},
		{name: "value is missing", in: "run --threads -f", err: "flag --threads needs a value"},
		{name: "value at the end", in: "run --threads", err: "flag --threads needs a value"},
		{name: "empty value", in: "run --threads=", err: "flag --threads needs a value, but got an empty one"},
		{name: "no words", in: "run -s", err: "flag -s needs at least one word"},
		{name: "unknown flag", in: "run --full-refesh", err: "unknown flag --full-refesh; did you mean --full-refresh?"},
		{name: "unknown letter", in: "run -z", err: "unknown flag -z"},
		{name: "unknown bundle", in: "run -fz", err: "unknown flag --fz"},
		{name: "unknown flag before the command", in: "--tarket prod run", err: "unknown flag --tarket; did you mean --target?"},
		{name: "flag of another command", in: "init --full-refresh", err: "unknown flag --full-refresh"},
		{name: "value for a switch", in: "run -f=yes", err: `flag -f takes no value, but got "yes"`},
		{name: "positional", in: "run a", err: `rbt run takes no arguments, but got "a"; to select nodes write: rbt run -s a`},
		{name: "positional with flags behind", in: "run a -f", err: `rbt run takes no arguments, but got "a"; to select nodes write: rbt run -s a`},
		{name: "flag behind --", in: "run -- -f", err: `rbt run takes no arguments, but "-f" stands behind "--"; flags stand before it`},
		{name: "too many", in: "init a b", err: `rbt init takes at most 1 argument, but got "b"`},
		{name: "unknown command", in: "rnu", err: `rbt has no command "rnu"; did you mean "run"?`},
		{name: "far command", in: "frobnicate", err: `rbt has no command "frobnicate"; it has: build, init, run, source`},
		{name: "no command", in: "-q", err: "no command is given"},
		{name: "lone dash", in: "run -", err: `rbt run takes no arguments, but got "-"; to select nodes write: rbt run -s -`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			commands, maxArgs := testCommands()
			argv := strings.Fields(tc.in)
			for i := range argv {
				if argv[i] == "''" {
					argv[i] = ""
				}
			}
			got, err := normalise(argv, commands, maxArgs)
			var u usageError
			if tc.err != "" {
				if !errors.As(err, &u) || u.msg != tc.err {
					t.Fatalf("error %v\nwant  %s", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, "|")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// Whatever the order of flags, the command sees the same: where a flag stands
// is never part of its meaning.
func TestNormaliseIgnoresOrder(t *testing.T) {
	groups := [][]string{{"-f"}, {"-x"}, {"--threads", "3"}, {"-s", "a", "b"}, {"--exclude", "c"}, {"-q"}, {"--var", "k=v"}}
	rapid.Check(t, func(t *rapid.T) {
		order := rapid.Permutation(groups).Draw(t, "order")
		var argv []string
		for _, g := range order {
			argv = append(argv, g...)
		}
		commands, maxArgs := testCommands()
		got, err := normalise(append([]string{"run"}, argv...), commands, maxArgs)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"--exclude=c", "--fail-fast=true", "--full-refresh=true", "--quiet=true", "--select=a", "--select=b", "--threads=3", "--var=k=v", "run"}
		sorted := append([]string(nil), got...)
		sortStrings(sorted)
		if diff := cmp.Diff(want, sorted); diff != "" {
			t.Fatalf("%v (-want +got)\n%s", argv, diff)
		}
	})
}

// No command line makes the parser panic or loop.
func FuzzNormalise(f *testing.F) {
	for _, s := range []string{"run -s a b", "init x -q", "-fs", "run -- -", "source freshness", "run --select= --var="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		commands, maxArgs := testCommands()
		_, err := normalise(strings.Split(line, " "), commands, maxArgs)
		var u usageError
		if err != nil && !errors.As(err, &u) {
			t.Errorf("%q: error of another kind: %v", line, err)
		}
	})
}
