package project

import "rbt/internal/jinja"

// dataFunctions are the functions that only turn values into values.
func dataFunctions() map[string]any {
	return map[string]any{
		"zip": jinja.Func(callZip),
	}
}

func callZip(c *jinja.Call) (any, error) { return jinja.NewList(), nil }
