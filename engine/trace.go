package engine

import "fmt"

// traced tells of a statement before it is run, and how it ended and after what
// time when the function that it gives is called.
func (s *session) traced(query string) (ended func(err error)) {
	e := s.db.tracer
	if e == nil {
		return func(error) {}
	}
	s.statements++
	began := e.o.Now()
	statement := Statement{Node: s.about, Number: s.statements, Connection: s.number, SQL: query}
	e.emit(Event{Kind: EventStatement, Level: "debug", Message: statement.String(), Statement: &statement})
	return func(err error) {
		done := statement
		done.Done, done.Err, done.Elapsed = true, err, e.o.Now().Sub(began)
		e.emit(Event{Kind: EventStatement, Level: "debug", Message: done.String(), Statement: &done})
	}
}

// String is one line about the statement, without its text.
func (s Statement) String() string {
	name := fmt.Sprintf("statement %d of connection %d", s.Number, s.Connection)
	if s.Node != "" {
		name = s.Node + ": " + name
	}
	switch {
	case !s.Done:
		return name
	case s.Err != nil:
		return fmt.Sprintf("%s failed after %.3fs", name, s.Elapsed.Seconds())
	default:
		return fmt.Sprintf("%s took %.3fs", name, s.Elapsed.Seconds())
	}
}
