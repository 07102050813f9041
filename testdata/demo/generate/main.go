// Command generate writes the raw files of the demo shop: what a small web shop
// would find in its landing folder after two weeks, dirt included. The same
// seed gives the same bytes, so the files stand in git and can be made again:
//
//	go run ./testdata/demo/generate -out testdata/demo
//
// It writes landing/ (two weeks of daily files) and late/ (the files of one more
// day, to be copied to inbox/ when one wants to see an increment).
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

const (
	days          = 14
	customers     = 600
	ordersPerDay  = 110
	eventsPerDay  = 190
	seedA, seedB  = 20240301, 7
	timestampText = "2006-01-02 15:04:05"
)

func main() {
	out := flag.String("out", "testdata/demo", "folder in which landing/ and late/ are written")
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// run makes the whole shop in memory, then writes it: the order in which random
// numbers are drawn is the order of this function.
func run(out string) error {
	s := newShop(rand.New(rand.NewPCG(seedA, seedB)))
	landing, late := filepath.Join(out, "landing"), filepath.Join(out, "late")
	if err := writeCSV(filepath.Join(landing, "customers.csv"), customerHeader, s.customerRows()); err != nil {
		return err
	}
	if err := writeCSV(filepath.Join(landing, "products.csv"), productHeader, s.productRows()); err != nil {
		return err
	}
	m := newMarket(s)
	for d := range days + 1 {
		dir := landing
		if d == days {
			dir = late
		}
		if err := s.writeDay(dir, d); err != nil {
			return err
		}
		if err := m.writeDay(dir, s.start.AddDate(0, 0, d)); err != nil {
			return err
		}
	}
	return nil
}

// writeDay writes what arrived on one day.
func (s *shop) writeDay(dir string, day int) error {
	date := s.start.AddDate(0, 0, day)
	name := date.Format(time.DateOnly)
	s.trade(date)
	header, rows := s.orderRows(day)
	if err := writeCSV(filepath.Join(dir, "orders", name+".csv"), header, rows); err != nil {
		return err
	}
	if err := writeCSV(filepath.Join(dir, "order_lines", name+".csv"), lineHeader, s.lines); err != nil {
		return err
	}
	if err := writeNDJSON(filepath.Join(dir, "payments", name+".ndjson"), s.payments); err != nil {
		return err
	}
	return writeNDJSON(filepath.Join(dir, "events", name+".ndjson"), s.eventRecords(date))
}
