package project

import "sync"

// drawn holds renderings that were made while the project was loaded, since
// config() in a body is known only when the body is rendered. Each is handed out
// once, so that a command that needs no texts need not keep them.
type drawn struct {
	mu       sync.Mutex
	compiled map[*Model]*Compiled
}

// take gives the rendering of a model where one with these options would be the
// same, and forgets it; else nil.
func (d *drawn) take(m *Model, o CompileOptions) *Compiled {
	if o.Incremental || len(o.Vars) > 0 || len(o.Overrides) > 0 || o.Log != nil || o.Query != nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.compiled[m]
	delete(d.compiled, m)
	return c
}

// lasting reports whether another rendering of the same template would be the
// same: nothing in it is of the run, and nothing depends on the configuration,
// which this one may only have told.
func (r *rendering) lasting() bool {
	return !r.configured && !r.queried && r.volatile == ""
}

// keepDrawn hands the renderings to those who compile. A model that config()
// disables was there for those that were rendered before: then all are made anew.
func (l *loader) keepDrawn() {
	for _, mf := range l.models {
		if !mf.cfg.enabled && mf.parsed {
			return
		}
	}
	for _, mf := range l.models {
		if mf.drawn != nil {
			l.p.drawn.compiled[mf.m] = mf.drawn
		}
	}
}
