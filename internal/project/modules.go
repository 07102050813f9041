package project

// modulesObject gives what templates may use of Python's modules.
func modulesObject() *object {
	return &object{name: "modules", attrs: map[string]any{}}
}

// Attr gives parts and methods of a datetime.
func (m moment) Attr(name string) (any, bool) { return nil, false }
