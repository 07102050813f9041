package main

// commands are all commands, in the order of the help.
func commands(sys *system) []commandSpec {
	return []commandSpec{
		newInitCommand(sys),
		newRunCommand(sys),
		newCompileCommand(sys),
		newPlanCommand(sys),
		newLsCommand(sys),
		newCleanCommand(sys),
		newCompletionCommand(sys),
		newVersionCommand(sys),
	}
}
