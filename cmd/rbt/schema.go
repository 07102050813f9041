package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"rbt/internal/project"
)

func newSchemaCommand(sys *system) commandSpec {
	return commandSpec{
		Command: &cli.Command{
			Name: "schema", Usage: "print the JSON Schema of project files, for editors", ArgsUsage: strings.Join(project.SchemaNames(), "|"),
			Description: `An editor that knows YAML completes and checks keys with it. For project.yml write the schema
to a file and put this line at the head of project.yml:

   # yaml-language-server: $schema=./project.schema.json`,
			Action: func(c *cli.Context) error { return runSchema(sys, c.Args().First()) },
		},
		args:     1,
		examples: []string{"rbt schema project > project.schema.json", "rbt schema model > model.schema.json"},
		exits:    "0    done\n2    usage",
	}
}

func runSchema(sys *system, name string) error {
	names := project.SchemaNames()
	switch {
	case name == "":
		return usageErrorf("rbt schema", "rbt schema needs one of: %s", strings.Join(names, ", "))
	case !slices.Contains(names, name):
		return usageErrorf("rbt schema", "there is no schema %q; there are: %s", name, strings.Join(names, ", "))
	}
	text, err := project.JSONSchema(name)
	if err != nil {
		return err
	}
	_, err = sys.stdout.Write(append(text, '\n'))
	return err
}
