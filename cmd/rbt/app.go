package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"rbt/internal/project"
)

// The exit codes, in every command's help.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUnable      = 2
	exitInterrupted = 130
)

var (
	// errFailed says that a model or test failed; what and why is printed
	// already. Commands return it.
	errFailed = errors.New("a model or test failed")
	// errReported says that rbt could not start or finish and that the reason is
	// printed already. Commands return it.
	errReported = errors.New("rbt could not finish")
	// errInterrupted says that the user ended the command. Commands return it.
	errInterrupted = errors.New("interrupted")
)

// exitCode is the one place in which exit codes are decided.
func exitCode(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, errFailed):
		return exitFailed
	default:
		return exitUnable
	}
}

// realMain runs one command line and returns the exit code.
func realMain(argv []string, sys *system) int {
	ctx, stop := interruptible(sys)
	defer stop()
	if len(sys.secrets) > 0 {
		// From the first word on, which may be about the command line.
		quiet, mask := *sys, project.Masker(sys.secrets)
		quiet.stdout, quiet.stderr = maskedWriter{sys.stdout, mask}, maskedWriter{sys.stderr, mask}
		sys = &quiet
	}
	err := execute(ctx, argv, sys)
	report := !errors.Is(err, errFailed) && !errors.Is(err, errReported) && !errors.Is(err, errInterrupted)
	if err != nil && report {
		printError(sys, err, wantsJSON(argv, sys))
	}
	return exitCode(err)
}

func execute(ctx context.Context, argv []string, sys *system) error {
	if len(argv) == 1 && (argv[0] == "--version" || argv[0] == "-v" || argv[0] == "-V") {
		argv = []string{"version"}
	}
	if len(argv) > 0 && argv[0] == "help" {
		argv = append(slices.Clone(argv[1:]), "--help")
	}
	specs := commands(sys)
	list := make([]*cli.Command, len(specs))
	positionals := map[*cli.Command]int{}
	for i, s := range specs {
		list[i] = s.finish(positionals)
	}
	args, err := normalise(argv, list, func(c *cli.Command) int { return positionals[c] })
	if err != nil {
		return err
	}
	app := &cli.App{
		Name: "rbt", HelpName: "rbt",
		Usage:                     "build an audited lake of Parquet files from SQL models",
		UsageText:                 "rbt command [flags]",
		Commands:                  list,
		Writer:                    sys.stdout,
		ErrWriter:                 sys.stderr,
		HideHelpCommand:           true,
		HideVersion:               true,
		DisableSliceFlagSeparator: true,
		CustomAppHelpTemplate:     appHelp,
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              func(_ *cli.Context, err error, _ bool) error { return usageError{msg: err.Error()} },
	}
	return app.RunContext(ctx, append([]string{"rbt"}, args...))
}

// interruptible gives a context that the first interrupt ends; a second one
// ends the process at once.
func interruptible(sys *system) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		select {
		case <-signals:
		case <-done:
			return
		}
		cancel()
		select {
		case <-signals:
			_, _ = fmt.Fprintln(sys.stderr, "rbt: ended at once")
			os.Exit(exitInterrupted)
		case <-done:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}

// outliveReader lets a write to a closed pipe fail instead of ending the
// process: `| head` must not end a run in the middle.
func outliveReader() { signal.Ignore(syscall.SIGPIPE) }

// commandSpec is a command with what its help adds to the library's.
type commandSpec struct {
	*cli.Command
	// args is the largest number of positionals.
	args     int
	examples []string
	// exits explains the exit codes in this command's words; "" for the usual.
	exits string
	subs  []commandSpec
}

// finish turns a spec into a command of the library and notes how many
// positionals it takes.
func (s commandSpec) finish(positionals map[*cli.Command]int) *cli.Command {
	c := s.Command
	c.HideHelpCommand = true
	positionals[c] = s.args
	for _, sub := range s.subs {
		c.Subcommands = append(c.Subcommands, sub.finish(positionals))
	}
	c.CustomHelpTemplate = literal(s.help())
	c.OnUsageError = func(_ *cli.Context, err error, _ bool) error {
		return usageError{msg: err.Error(), command: "rbt " + c.Name}
	}
	return c
}

// wantsJSON reports whether a command line that cannot be read asks for the JSON
// log.
func wantsJSON(argv []string, sys *system) bool {
	format, _ := sys.env(envName("log-format"))
	for i, arg := range argv {
		name, value, given := strings.Cut(arg, "=")
		if name != "--log-format" {
			continue
		}
		if !given && i+1 < len(argv) {
			value = argv[i+1]
		}
		format = value
	}
	return format == "json"
}

// printError writes what kept a command from finishing to stderr.
func printError(sys *system, err error, asJSON bool) {
	var u usageError
	isUsage := errors.As(err, &u)
	help := fmt.Sprintf("See '%s --help'.", cmp.Or(u.command, "rbt"))
	switch {
	case asJSON:
		problems := problemsOf(err)
		if isUsage {
			problems[0].Hint = help
		}
		writeJSONLine(sys.stderr, jsonEvent{Event: "error", Time: sys.now().UTC().Format(time.RFC3339Nano), Level: "error", Message: hideCredentials(err.Error()), Problems: problems})
	case isUsage:
		_, _ = fmt.Fprintf(sys.stderr, "error: %s\n%s\n", u.msg, help)
	default:
		_, _ = io.WriteString(sys.stderr, renderError(err, nil))
	}
}
