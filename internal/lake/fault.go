package lake

import "strings"

// FaultHint says what to do where the system refuses to write: text is what it
// said, in whatever words stand around it, also those of the SQL engine. It is ""
// where the text holds none of the known causes.
func FaultHint(text string) string {
	text = strings.ToLower(text)
	for _, f := range []struct{ cause, hint string }{
		{"no space left on device", "make room on that disk and run again; what was published before is whole"},
		{"disk quota exceeded", "the quota of this user is used up: make room and run again; what was published before is whole"},
		{"file too large", "a limit on the size of files was met (ulimit -f, or the file system's own): raise it and run again; what was published before is whole"},
		{"too many open files", "raise the limit on open files (ulimit -n), or lower engine.threads; what was published before is whole"},
		{"read-only file system", "that file system can only be read: mount it writable, or name another folder (`lake:` or a target in project.yml, --target-path)"},
		{"permission denied", "give this user the right to write there; what was published before is whole"},
		{"operation not permitted", "give this user the right to write there; what was published before is whole"},
		{"input/output error", "the disk or its connection is broken: look at the system's log; what was published before is whole as far as the disk can be read"},
	} {
		if strings.Contains(text, f.cause) {
			return f.hint
		}
	}
	return ""
}
