package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"
)

const (
	marketCustomers   = 90
	marketPerDay      = 24
	marketSeed        = 11
	brokenEvery       = 97 // orders: one line cut short
	wordsForTotal     = 61 // orders: one total in words
	marketTagsAtMost  = 3
	marketLinesAtMost = 4
)

var marketTags = []string{"gift", "express", "fragile", "first order", "b2b"}

// marketOrder is a line of the export of a market place: an order with all that
// belongs to it, the buyer in full each time.
type marketOrder struct {
	OrderID  string          `json:"order_id"`
	PlacedAt string          `json:"placed_at"`
	Total    json.RawMessage `json:"total"`
	Buyer    marketBuyer     `json:"buyer"`
	Tags     []string        `json:"tags,omitempty"`
	Lines    []marketLine    `json:"lines"`
}

type marketBuyer struct {
	Name    string        `json:"name"`
	Email   string        `json:"email"`
	Address marketAddress `json:"address"`
}

type marketAddress struct {
	City    string `json:"city"`
	Country string `json:"country"`
}

type marketLine struct {
	SKU   string          `json:"sku"`
	Qty   int             `json:"qty"`
	Price json.RawMessage `json:"price"`
}

// market draws from random numbers of its own, so that the files of the shop do
// not depend on it.
type market struct {
	rnd    *rand.Rand
	shop   *shop
	buyers []marketBuyer
	sold   int
}

func newMarket(s *shop) *market {
	m := &market{rnd: rand.New(rand.NewPCG(seedA, marketSeed)), shop: s}
	cities := []string{"Köln", "Łódź", "Oslo", "Málaga", "Århus", "Cork", "Rom"}
	for i := range marketCustomers {
		m.buyers = append(m.buyers, marketBuyer{
			Name: pick(m.rnd, firstNames) + " " + pick(m.rnd, lastNames), Email: fmt.Sprintf("buyer%d@market.example", i+1),
			Address: marketAddress{City: pick(m.rnd, cities), Country: pick(m.rnd, countries)},
		})
	}
	return m
}

// writeDay writes the orders of a day; now and then a line is cut short, or
// holds a total in words.
func (m *market) writeDay(dir string, date time.Time) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for range marketPerDay {
		m.sold++
		start := b.Len()
		if err := enc.Encode(m.order(date)); err != nil {
			return fmt.Errorf("encode an order of the market: %w", err)
		}
		if m.sold%brokenEvery == 0 {
			b.Truncate(start + (b.Len()-start)*2/3)
			b.WriteByte('\n')
		}
	}
	return write(filepath.Join(dir, "market", date.Format(time.DateOnly)+".ndjson"), b.Bytes())
}

func (m *market) order(date time.Time) marketOrder {
	o := marketOrder{
		OrderID:  fmt.Sprintf("m-%05d", m.sold),
		PlacedAt: date.Add(time.Duration(m.rnd.IntN(86400)) * time.Second).Format(time.RFC3339),
		Buyer:    pick(m.rnd, m.buyers),
	}
	for _, i := range m.rnd.Perm(len(marketTags))[:m.rnd.IntN(marketTagsAtMost)] {
		o.Tags = append(o.Tags, marketTags[i])
	}
	total := 0
	for range 1 + m.rnd.IntN(marketLinesAtMost) {
		p, qty := pick(m.rnd, m.shop.products), 1+m.rnd.IntN(3)
		total += qty * p.cents
		o.Lines = append(o.Lines, marketLine{SKU: p.sku, Qty: qty, Price: json.RawMessage(money(p.cents))})
	}
	o.Total = json.RawMessage(money(total))
	if m.sold%wordsForTotal == 0 {
		o.Total = json.RawMessage(`"on invoice"`)
	}
	return o
}
