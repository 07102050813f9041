package jinja

// Operand is an Object that takes part in operations, as dates do.
type Operand interface {
	Object
	// Operate computes the value op other, or other op the value where swapped;
	// op is as it is written. ok is false where there is no such operation.
	Operate(op string, other any, swapped bool) (v any, ok bool, err error)
	// Order gives -1, 0 or 1 against another value; ok is false where the two
	// have no order.
	Order(other any) (c int, ok bool)
}

// Named is an Object that counts as what it prints: it is equal to text, and to
// another one, that prints alike, and stands for that text as a key and where a
// list that holds it is printed.
type Named interface {
	Object
	// Named does nothing; it tells this kind of value from others.
	Named()
}

// named gives the characters of text and of a Named value.
func named(v any) (string, bool) {
	if o, ok := v.(Named); ok {
		return o.String(), true
	}
	return text(v)
}

// Sequence is an Object that has items by their place, as rows of a query do.
type Sequence interface {
	Object
	Len() int
	At(i int) any
}

// Described is an Object that messages about it call by a name, and that knows
// its attributes.
type Described interface {
	Object
	// Described gives what messages call the value ("target"), and its attributes,
	// sorted, of which the nearest one is suggested.
	Described() (name string, attributes []string)
	// Missing says what to do where an item or attribute is asked for in vain; ""
	// where nothing is known.
	Missing() string
}

// operateHost computes l op r where one of the two is an Operand.
func operateHost(op tokenKind, l, r any) (v any, ok bool, err error) {
	if o, is := l.(Operand); is {
		v, ok, err = o.Operate(operatorText(op), r, false)
	}
	if o, is := r.(Operand); is && !ok && err == nil {
		v, ok, err = o.Operate(operatorText(op), l, true)
	}
	if err != nil {
		return nil, false, fromHost(err, "'"+operatorText(op)+"'", head{}, "")
	}
	if !ok {
		return nil, false, nil
	}
	v, err = normal(v)
	return v, true, err
}

// orderHost gives the order of a and b where one of the two is an Operand.
func orderHost(a, b any) (int, bool) {
	if o, is := a.(Operand); is {
		if c, ok := o.Order(b); ok {
			return c, true
		}
	}
	if o, is := b.(Operand); is {
		if c, ok := o.Order(a); ok {
			return -c, true
		}
	}
	return 0, false
}
