package project

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"

	"rbt/internal/jinja"
)

// HasSecrets reports whether Mask changes any text.
func (p *Project) HasSecrets() bool { return p.mask != nil && p.mask.any() }

// masked stands where a secret was.
const masked = "*****"

// mask knows the secrets of the environment and those that project.yml used. It is
// filled while the project is loaded and only read after.
type mask struct {
	mu       sync.Mutex
	secrets  []string
	replacer *strings.Replacer
}

// Masker gives a function that replaces these values by *****, for what is said
// before a project is loaded. See Options.Secrets.
func Masker(secrets []string) func(string) string {
	p := &Project{mask: &mask{}}
	for _, secret := range secrets {
		if len(secret) >= leastUnasked {
			p.mask.add(secret)
		}
	}
	return p.Mask
}

// add takes a secret in all spellings in which it may come back: as it is, in
// SQL literals and quoted names, in JSON, and in URLs.
func (m *mask) add(secret string) {
	if strings.TrimSpace(secret) == "" {
		return
	}
	spellings := []string{
		secret, strings.ReplaceAll(secret, "'", "''"), strings.ReplaceAll(secret, `"`, `""`), url.QueryEscape(secret), url.PathEscape(secret),
		strings.TrimSpace(secret), slashed(secret),
	}
	for _, html := range []bool{true, false} {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(html)
		if err := enc.Encode(secret); err == nil {
			quoted := strings.TrimSuffix(b.String(), "\n")
			spellings = append(spellings, quoted[1:len(quoted)-1])
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range spellings {
		if !slices.Contains(m.secrets, s) {
			m.secrets = append(m.secrets, s)
		}
	}
	// The longest first, so that a secret within another leaves no rest.
	slices.SortFunc(m.secrets, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	pairs := make([]string, 0, 2*len(m.secrets))
	for _, s := range m.secrets {
		pairs = append(pairs, s, masked)
	}
	m.replacer = strings.NewReplacer(pairs...)
}

// Mask replaces every secret value in a text that leaves the process, or that is
// hashed, by *****.
func (p *Project) Mask(text string) string {
	if p.mask == nil { // a project that was not loaded has no secrets
		return text
	}
	p.mask.mu.Lock()
	r := p.mask.replacer
	p.mask.mu.Unlock()
	if r == nil {
		return text
	}
	return r.Replace(text)
}

// holdsSecret reports whether a value has a secret anywhere in it.
func (p *Project) holdsSecret(v any) bool {
	p.mask.mu.Lock()
	r := p.mask.replacer
	p.mask.mu.Unlock()
	if r == nil {
		return false
	}
	switch v := v.(type) {
	case string:
		return r.Replace(v) != v
	case *jinja.List:
		return slices.ContainsFunc(v.Items(), p.holdsSecret)
	case *jinja.Dict:
		for k, item := range v.All() {
			if p.holdsSecret(k) || p.holdsSecret(item) {
				return true
			}
		}
	}
	return false
}

// any reports whether there is a secret.
func (m *mask) any() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.secrets) > 0
}

// maskList masks the texts of diagnostics.
func (p *Project) maskList() {
	for i := range p.problems {
		d := &p.problems[i]
		d.Msg, d.Hint = p.Mask(d.Msg), p.Mask(d.Hint)
		for j := range d.Notes {
			d.Notes[j].Msg = p.Mask(d.Notes[j].Msg)
		}
	}
}
