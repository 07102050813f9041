package main

import (
	"errors"
	"regexp"
	"strings"

	"rbt/internal/diag"
)

// credentials are the forms in which a password is commonly written into a longer
// text: within a URL, behind a question mark of one, and in a connection string.
var credentials = regexp.MustCompile(`(?i)(://[^\s/:@'"]*:)[^\s/@'"]+@|(://[^\s'"]*[?&](?:\w*token|\w*key|\w*secret|password|sig|[\w-]*signature)=)[^\s&'"]+|\b((?:password|passwd|pwd)=)[^\s;'"]+`)

// hideCredentials takes passwords out of a message, whoever wrote them there.
func hideCredentials(text string) string {
	if !strings.Contains(text, "://") && !strings.Contains(text, "=") {
		return text
	}
	return credentials.ReplaceAllStringFunc(text, func(found string) string {
		m := credentials.FindStringSubmatch(found)
		if m[1] != "" {
			return m[1] + "*****@"
		}
		return m[2] + m[3] + "*****"
	})
}

// renderError prints an error for a person: diagnostics with their place, all
// others in one line.
func renderError(err error, text diag.SourceText) string {
	list, ok := diagnosticsIn(err)
	if !ok {
		return "error: " + hideCredentials(err.Error()) + "\n"
	}
	return renderProblems(list, text)
}

// diagnosticsIn gives the diagnostics of an error; false where it holds none.
func diagnosticsIn(err error) (diag.List, bool) {
	var list diag.List
	var one diag.Diagnostic
	switch {
	case errors.As(err, &list):
	case errors.As(err, &one):
		list = diag.List{one}
	default:
		return nil, false
	}
	return list, true
}

// renderProblems renders diagnostics, an empty line between. A statement that is
// refused because it is no query is shown by its place alone: it may hold a
// password.
func renderProblems(list diag.List, text diag.SourceText) string {
	parts := make([]string, len(list))
	for i, d := range list {
		shown := text
		if d.Code == diag.SQLNotAQuery || d.Code == diag.SQLTwoStatements {
			shown = nil
		}
		parts[i] = hideCredentials(diag.Render(d, shown))
	}
	return strings.Join(parts, "\n")
}
