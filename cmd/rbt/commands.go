package main

import (
	"context"

	"rbt/internal/project"
)

// commands are all commands, in the order of the help.
func commands(sys *system) []commandSpec {
	return []commandSpec{
		newInitCommand(sys),
		newRunCommand(sys),
		newRetryCommand(sys),
		newTestCommand(sys),
		newCompileCommand(sys),
		newPlanCommand(sys),
		newShowCommand(sys),
		newLsCommand(sys),
		newSourceCommand(sys),
		newIngestCommand(sys),
		newCatalogCommand(sys),
		newCleanCommand(sys),
		newDebugCommand(sys),
		newSchemaCommand(sys),
		newCompletionCommand(sys),
		newVersionCommand(sys),
		newCompleteCommand(sys, func() []commandSpec { return commands(sys) }, func() []string { return nodeNames(sys) }),
	}
}

// nodeNames are the names that selectors know, for completion; none where there
// is no project or it cannot be loaded.
func nodeNames(sys *system) []string {
	dir, err := findProject(sys, "")
	if err != nil {
		return nil
	}
	p, _ := project.Load(context.Background(), project.Options{Dir: dir, Env: sys.env, Secrets: sys.secrets})
	var names []string
	for _, m := range p.Models {
		names = append(names, m.Name)
	}
	for _, s := range p.Seeds {
		names = append(names, s.Name)
	}
	for _, s := range p.Sources {
		names = append(names, "source:"+s.Group+"."+s.Name)
	}
	return names
}
