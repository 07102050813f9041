package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/urfave/cli/v2"
)

// newProject is the project that `rbt init` writes. The file gitignore becomes
// .gitignore.
//
//go:embed newproject
var newProject embed.FS

func newInitCommand(sys *system) commandSpec {
	return commandSpec{
		Command: &cli.Command{
			Name: "init", Usage: "make a small project that runs at once", ArgsUsage: "[dir]",
			Description: `Writes a project with a source, a seed, three models and tests into dir (default:
here). Nothing that exists is overwritten; a .gitignore that is there stays as it is.`,
			Flags: []cli.Flag{&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print nothing"}},
			Action: func(c *cli.Context) error {
				if c.Args().Present() && c.Args().First() == "" {
					return usageErrorf("rbt init", "the folder's name is empty; for the folder you are in: rbt init .")
				}
				return runInit(sys, initOptions{dir: c.Args().First(), quiet: c.Bool("quiet")})
			},
		},
		args:     1,
		examples: []string{"rbt init shop && cd shop && rbt run", "rbt init"},
		exits:    unableExits,
	}
}

type initOptions struct {
	dir   string // "" is the working directory
	quiet bool
}

func runInit(sys *system, o initOptions) error {
	dir, err := sys.abs(o.dir)
	if err != nil {
		return err
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is a file; a project is a folder", dir)
	}
	files, err := initFiles(projectName(filepath.Base(dir)))
	if err != nil {
		return err
	}
	files, ignored, err := withoutIgnored(dir, files)
	if err != nil {
		return err
	}
	for _, f := range files {
		to := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return fmt.Errorf("make folder %s: %w", filepath.Dir(to), err)
		}
		if err := os.WriteFile(to, []byte(f.text), 0o666); err != nil {
			return fmt.Errorf("write %s: %w", to, err)
		}
	}
	if o.quiet {
		return nil
	}
	_, err = fmt.Fprintf(sys.stdout, "Made a project in %s:\n", dir)
	for _, f := range files {
		if err == nil {
			_, err = fmt.Fprintf(sys.stdout, "  %s\n", f.name)
		}
	}
	if err != nil {
		return err
	}
	if ignored != "" {
		if _, err := fmt.Fprintf(sys.stdout, "Left %s as it is; these lines belong into it: %s\n", ignoreFile, ignored); err != nil {
			return err
		}
	}
	next := "rbt run"
	if o.dir != "" && o.dir != "." {
		next = "cd " + quoteArg(o.dir) + " && rbt run"
	}
	_, err = fmt.Fprintf(sys.stdout, "Next: %s\n", next)
	return err
}

type newFile struct{ name, text string }

const ignoreFile = ".gitignore"

// withoutIgnored refuses files that are there already. A .gitignore, which most
// repositories have from their first commit, is taken out instead; ignored are its
// lines.
func withoutIgnored(dir string, files []newFile) (left []newFile, ignored string, err error) {
	for _, f := range files {
		to := filepath.Join(dir, filepath.FromSlash(f.name))
		_, err := os.Lstat(to)
		switch {
		case err == nil && f.name == ignoreFile:
			ignored = strings.Join(strings.Fields(f.text), " ")
			continue
		case err == nil:
			return nil, "", fmt.Errorf("%s exists already; rbt init overwrites nothing", to)
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission):
			return nil, "", err
		}
		left = append(left, f)
	}
	return left, ignored, nil
}

func initFiles(project string) ([]newFile, error) {
	var files []newFile
	err := fs.WalkDir(newProject, "newproject", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := newProject.ReadFile(p)
		name := strings.TrimPrefix(p, "newproject/")
		if path.Base(name) == "gitignore" {
			name = ignoreFile
		}
		files = append(files, newFile{name, strings.Replace(string(text), "name: my_project", "name: "+project, 1)})
		return err
	})
	return files, err
}

// projectName makes a name that project.yml takes out of a folder's name.
func projectName(folder string) string {
	name := strings.Trim(strings.Map(func(r rune) rune {
		if r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return '_'
	}, folder), "_")
	if name == "" || unicode.IsDigit([]rune(name)[0]) {
		return "my_project"
	}
	return name
}
