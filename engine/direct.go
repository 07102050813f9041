package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	duckdb "github.com/duckdb/duckdb-go/v2"
	"github.com/duckdb/duckdb-go/v2/mapping"
)

// interruptEvery is how often a statement that runs directly is told that it shall
// end: what is told before it has begun is lost.
const interruptEvery = 10 * time.Millisecond

// direct runs one statement of which only the number of rows is wanted, and gives
// that. The driver prepares all that it runs, and what reads files by name is bound
// again, optimised again and planned again between that and its execution, since
// the files may have changed: a third of what a small COPY costs. done is false
// where the statement was not run, since it has to be prepared or the connection
// cannot be reached.
func (s *session) direct(ctx context.Context, query string) (rows int64, done bool, err error) {
	if !oneStatement(query) || ctx.Err() != nil {
		return 0, false, nil
	}
	return s.unprepared(ctx, query)
}

// script runs statements of rbt's own making that give no rows, as direct runs one,
// up to the first that cannot be run.
func (s *session) script(ctx context.Context, statements string) error {
	if _, done, err := s.unprepared(ctx, statements); done || err != nil {
		return err
	}
	return s.Query(ctx, statements, func([]any) error { return nil })
}

// unprepared is direct for whatever text. Of several statements it counts the rows
// of one.
func (s *session) unprepared(ctx context.Context, query string) (rows int64, done bool, err error) {
	if err := ctx.Err(); err != nil {
		return 0, false, err
	}
	ended := func(error) {}
	err = s.conn.Raw(func(driverConn any) error {
		conn, ok := connectionOf(driverConn)
		if !ok {
			return nil
		}
		done, ended = true, s.traced(query)
		defer interruptedBy(ctx, conn)()
		var result mapping.Result
		defer mapping.DestroyResult(&result)
		if mapping.Query(conn, query, &result) == mapping.StateError {
			return &duckdb.Error{Type: duckdb.ErrorType(mapping.ResultErrorType(&result)), Msg: mapping.ResultError(&result)}
		}
		rows = int64(mapping.RowsChanged(&result))
		return nil
	})
	switch {
	case errors.Is(err, driver.ErrBadConn):
		err = fmt.Errorf("use a connection of the SQL engine: %w", err)
	case err != nil:
		err = engineError(ctx, query, err)
	}
	ended(err)
	return rows, done, err
}

// oneStatement reports whether a text is certainly one statement, for the engine
// too, which makes several of a PIVOT whose columns are its data: of several, only
// the first would be heard of.
func oneStatement(query string) bool {
	if strings.IndexByte(query, ';') >= 0 {
		return false
	}
	for at := 0; at < len(query); at++ {
		i := strings.IndexAny(query[at:], "pP")
		if i < 0 {
			return true
		}
		at += i
		if len(query) >= at+len("pivot") && strings.EqualFold(query[at:at+len("pivot")], "pivot") {
			return false
		}
	}
	return true
}

// interruptedBy lets the end of ctx interrupt what the connection runs until stop is
// called.
func interruptedBy(ctx context.Context, conn mapping.Connection) (stop func()) {
	done, over := make(chan struct{}), make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		defer close(over)
		tick := time.NewTicker(interruptEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			default:
				mapping.Interrupt(conn)
			}
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	})
	return func() {
		if forget() {
			return
		}
		close(done)
		<-over // what it says too late would be heard by the next statement
	}
}

// connectionOf takes the handle of the engine's connection out of the driver's,
// which keeps it to itself: duckdb-go v2.10506.0 binds the calls that run a
// statement at once and that ask for the progress, and gives no way to make them.
// No longer needed once Conn has methods for both.
func connectionOf(driverConn any) (mapping.Connection, bool) {
	conn, ok := driverConn.(*duckdb.Conn)
	if !ok {
		return mapping.Connection{}, false
	}
	field := reflect.ValueOf(conn).Elem().FieldByName("conn")
	if !field.IsValid() || field.Type() != reflect.TypeFor[mapping.Connection]() {
		return mapping.Connection{}, false
	}
	return mapping.Connection{Ptr: field.FieldByName("Ptr").UnsafePointer()}, true
}
