package main

// commands are all commands, in the order of the help.
func commands(sys *system) []commandSpec {
	return []commandSpec{
		newInitCommand(sys),
		newCompletionCommand(sys),
		newVersionCommand(sys),
	}
}
