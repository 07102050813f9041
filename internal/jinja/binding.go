package jinja

import "strings"

// params names the parameters of a filter, test or method. One that ends in ?
// can be left out.
type params []string

// bind puts arguments in the order of the parameters; what is left out is
// missing{}.
func (ps params) bind(what string, a *argList) ([]any, error) {
	if len(a.pos) > len(ps) {
		return nil, typeError("%s takes at most %d arguments, %d are given", what, len(ps), len(a.pos))
	}
	out := make([]any, len(ps))
	for i, prm := range ps {
		name, optional := strings.CutSuffix(prm, "?")
		out[i] = missing{}
		at := a.named(name)
		switch {
		case i < len(a.pos):
			if at >= 0 {
				return nil, argError(name, "", "%s gets its argument '%s' twice", what, name)
			}
			out[i] = plain(a.pos[i])
		case at >= 0:
			out[i] = plain(a.values[at])
		case !optional:
			return nil, typeError("%s needs the argument '%s'", what, name)
		}
	}
	for _, name := range a.names {
		if !ps.has(name) {
			names := make([]string, len(ps))
			for i, prm := range ps {
				names[i] = strings.TrimSuffix(prm, "?")
			}
			return nil, argError(name, nearest(name, names), "%s has no argument '%s'", what, name)
		}
	}
	return out, nil
}

func (ps params) has(name string) bool {
	for _, prm := range ps {
		if strings.TrimSuffix(prm, "?") == name {
			return true
		}
	}
	return false
}

// given gives an argument, or otherwise where it was left out.
func given(v, otherwise any) any {
	if _, ok := v.(missing); ok {
		return otherwise
	}
	return v
}

// wantInt gives an argument that must be a whole number.
func wantInt(v any, what string) (int64, error) {
	if n, ok := small(v); ok {
		return n, nil
	}
	if u, ok := v.(*Undefined); ok {
		return 0, u.fault()
	}
	if isWhole(v) {
		return bound(v), nil
	}
	return 0, typeError("%s must be a whole number, not %s", what, typeName(v))
}

// wantText gives an argument that must be text.
func wantText(v any, what string) (string, error) {
	if s, ok := text(v); ok {
		return s, nil
	}
	if u, ok := v.(*Undefined); ok {
		return "", u.fault()
	}
	return "", typeError("%s must be text, not %s", what, typeName(v))
}
