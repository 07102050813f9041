package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/term"

	"rbt/internal/project"
)

// system is everything that the process has from its surroundings, so that
// nothing else reads the environment, the clock or the terminal.
type system struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(string) (string, bool)
	// secrets are the values of secret variables, see project.Options.
	secrets []string
	workDir func() (string, error)
	// program is the identity of this program, see project.Options.
	program func() string
	now     func() time.Time
	// planned is called where a command has its plan and goes on to run it: what it
	// takes from then on is for the SQL engine. See startHeap.
	planned func()
	// terminal gives the size of the terminal behind stdout; ok is false where
	// it is none.
	terminal func() (columns, rows int, ok bool)
}

func newSystem() *system {
	return &system{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		env: os.LookupEnv, secrets: project.SecretValues(os.Environ()), workDir: os.Getwd, program: programIdentity, now: time.Now, planned: func() {},
		terminal: func() (int, int, bool) {
			fd := int(os.Stdout.Fd())
			if !term.IsTerminal(fd) {
				return 0, 0, false
			}
			columns, rows, err := term.GetSize(fd)
			if err != nil || columns <= 0 || rows <= 0 {
				return 80, 24, true
			}
			return columns, rows, true
		},
	}
}

// programIdentity tells builds apart: the version does not where a changed
// working tree was built. It is "" where the program's file is not known.
func programIdentity() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(rbtVersion(), " ", path, " ", info.Size(), " ", info.ModTime().UnixNano())
}

// abs makes a path absolute against the working directory.
func (s *system) abs(path string) (string, error) {
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	wd, err := s.workDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(wd, path), nil
}

// shown gives a path as a person reads it: relative where it lies below the
// working directory.
func (s *system) shown(path string) string {
	wd, err := s.workDir()
	if err != nil {
		return path
	}
	rel, err := filepath.Rel(wd, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return rel
}

func (s *system) envSet(name string) bool {
	v, ok := s.env(name)
	return ok && v != ""
}

// colours says whether text may be painted: on a terminal that understands it,
// unless the user said no.
func (s *system) colours(noColor bool) bool {
	_, _, ok := s.terminal()
	t, _ := s.env("TERM")
	return ok && !noColor && !s.envSet("NO_COLOR") && t != "dumb"
}

// liveView says whether a live view can be drawn.
func (s *system) liveView() bool {
	_, _, ok := s.terminal()
	t, _ := s.env("TERM")
	return ok && t != "dumb" && t != "" && !s.envSet("CI")
}
