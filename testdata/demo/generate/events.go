package main

import (
	"fmt"
	"time"
)

// event is what the web shop's tracker sends: nested, sometimes late, sometimes
// twice.
type event struct {
	EventID    string  `json:"event_id"`
	Type       string  `json:"type"`
	OccurredAt string  `json:"occurred_at"`
	ReceivedAt string  `json:"received_at"`
	Visitor    visitor `json:"visitor"`
	Items      []item  `json:"items"`
	Search     *string `json:"search_term"`
}

type visitor struct {
	CustomerID *int   `json:"customer_id"`
	Device     device `json:"device"`
}

type device struct {
	OS  string `json:"os"`
	App bool   `json:"app"`
}

type item struct {
	SKU string `json:"sku"`
	Qty int    `json:"qty"`
}

var (
	eventTypes  = []string{"page_view", "page_view", "page_view", "search", "add_to_cart", "add_to_cart", "checkout"}
	searchTerms = []string{"oolong", "café crème", "tasse", "ほうじ茶", "Łódź", "50% off", `12" plate`}
)

// eventRecords is the file of one day: the day's events, a few of the day
// before that were sent late, and retries of events sent already.
func (s *shop) eventRecords(date time.Time) []event {
	var out, again []event
	midnight := date.AddDate(0, 0, 1)
	for i := range eventsPerDay {
		at := date.Add(time.Duration(s.rnd.IntN(86400-600)) * time.Second)
		received := at.Add(time.Duration(s.rnd.IntN(500)) * time.Second)
		if s.rnd.IntN(50) == 0 { // a telephone that was off the net
			at = at.Add(-time.Duration(12+s.rnd.IntN(30)) * time.Hour)
		}
		e := s.newEvent(fmt.Sprintf("e%s-%04d", date.Format("0102"), i), at)
		e.ReceivedAt = received.UTC().Format(time.RFC3339)
		out = append(out, e)
		if s.rnd.IntN(60) == 0 {
			again = append(again, e)
		}
	}
	for _, e := range s.lastSent { // retried on the day after, with a new time of arrival
		e.ReceivedAt = date.Add(time.Duration(s.rnd.IntN(3600)) * time.Second).Format(time.RFC3339)
		out = append(out, e)
	}
	for _, e := range again[:len(again)/2] { // retried at once
		e.ReceivedAt = midnight.Add(-time.Second).Format(time.RFC3339)
		out = append(out, e)
	}
	s.lastSent = again[len(again)/2:]
	return out
}

func (s *shop) newEvent(id string, at time.Time) event {
	e := event{EventID: id, Type: pick(s.rnd, eventTypes), OccurredAt: at.Format(time.RFC3339), Items: []item{}}
	e.Visitor.Device = device{OS: pick(s.rnd, devices), App: s.rnd.IntN(3) == 0}
	if s.rnd.IntN(10) < 6 {
		id := 1 + s.rnd.IntN(customers)
		e.Visitor.CustomerID = &id
	}
	switch e.Type {
	case "search":
		term := pick(s.rnd, searchTerms)
		e.Search = &term
	case "add_to_cart", "checkout":
		for range 1 + s.rnd.IntN(3) {
			e.Items = append(e.Items, item{SKU: pick(s.rnd, s.products).sku, Qty: 1 + s.rnd.IntN(3)})
		}
	}
	return e
}
