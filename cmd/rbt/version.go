package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"rbt/engine"
)

func newVersionCommand(sys *system) commandSpec {
	return commandSpec{
		Command: &cli.Command{
			Name: "version", Usage: "print the versions of rbt and of the engine inside it",
			Action: func(*cli.Context) error { return runVersion(sys) },
		},
		examples: []string{"rbt version"},
		exits:    "0    done",
	}
}

func runVersion(sys *system) error {
	_, err := fmt.Fprintf(sys.stdout, "rbt %s\nDuckDB %s\n%s %s/%s\n", rbtVersion(), engine.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// rbtVersion is what Go knows of the build: the tag or the commit that it was
// built from.
func rbtVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "of unknown version"
	}
	v, commit, dirty := info.Main.Version, "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			commit = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = ", modified"
		}
	}
	if v == "" || v == "(devel)" {
		v = "development build"
	}
	if commit != "" {
		v += " (commit " + commit + dirty + ")"
	}
	return v
}
