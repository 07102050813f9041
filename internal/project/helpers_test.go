package project

import (
	"rbt/internal/diag"
	"rbt/internal/jinja"
)

func parseTemplate(file, text string) (*jinja.Template, diag.List) { return jinja.Parse(file, text, 1) }
