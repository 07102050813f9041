package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

var (
	customerHeader = []string{"customer_id", "full_name", "email", "country", "signed_up_on", "exported_at"}
	productHeader  = []string{"sku", "title", "category", "price", "weight_g"}
	lineHeader     = []string{"order_id", "line_no", "sku", "quantity", "unit_price"}

	firstNames = []string{"Zoë", "José", "Łukasz", "Anna", "Mei", "Olu", "Søren", "Chloé", "Dmitri", "Işıl", "Aoife", "Jürgen", "Priya", "Noah", "Þóra", "Kenji", "Sofía", "Björn"}
	lastNames  = []string{"Müller", "O'Brien", "García", "Nowak", "Çelik", "de la Cruz", "Åberg", "Smith", "Nguyễn", "Dvořák", "Rossi", "Østergaard", "Kowalska", "Petrov"}
	// NO is Norway: a code that careless tools read as false.
	countries  = []string{"DE", "DE", "DE", "FR", "ES", "PL", "NO", "SE", "IE", "IT", "DK"}
	categories = []string{"tea", "coffee", "cups", "books", "sweets"}
	adjectives = []string{"Green", "Smoky", "Wild", "Crème", "Old", "Jasmine", "Dark", "Honey"}
	things     = []string{"Oolong", "Roast", "Mug", "Almanac", "Nougat", "Blend", "Café", "Truffle"}
	methods    = []string{"card", "card", "card", "paypal", "invoice", "voucher"}
	channels   = []string{"web", "web", "app", "phone"}
	devices    = []string{"ios", "android", "windows", "linux"}
)

type product struct {
	sku, title, category string
	cents                int
}

type order struct {
	id, customer int
	at           time.Time
	status       string
	updated      time.Time
}

// payment is a line of the payment provider's export; amounts are cents.
type payment struct {
	PaymentID string  `json:"payment_id"`
	OrderID   int     `json:"order_id"`
	Method    string  `json:"method"`
	Cents     int     `json:"amount_cents"`
	PaidAt    *string `json:"paid_at"`
}

// shop is the state of the generator: what exists so far and what the current
// day added.
type shop struct {
	rnd      *rand.Rand
	start    time.Time
	products []product
	open     []order // not yet delivered or cancelled
	nextID   int
	today    []order // as exported today: new ones, late ones and changed ones
	lines    [][]string
	payments []payment
	delayed  []order // ordered today, exported tomorrow
	lastSent []event
}

func newShop(rnd *rand.Rand) *shop {
	s := &shop{rnd: rnd, start: time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC), nextID: 10001}
	for i := range 64 {
		s.products = append(s.products, product{
			// leading zeros: the number of an article is text
			sku:      fmt.Sprintf("%06d", 700+i*37),
			title:    adjectives[i%len(adjectives)] + " " + things[(i/len(adjectives)+i)%len(things)],
			category: categories[i%len(categories)],
			cents:    250 + 10*rnd.IntN(480),
		})
	}
	return s
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func money(cents int) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

// customerRows holds every customer once and some of them twice: the export
// writes a customer again when the address book entry changed.
func (s *shop) customerRows() [][]string {
	var rows [][]string
	for id := 1; id <= customers; id++ {
		name := pick(s.rnd, firstNames) + " " + pick(s.rnd, lastNames)
		email := fmt.Sprintf("customer%d@example.com", id)
		if s.rnd.IntN(25) == 0 {
			email = ""
		}
		signed := s.start.AddDate(0, 0, -s.rnd.IntN(700))
		exported := s.start.Add(-time.Duration(24+s.rnd.IntN(48)) * time.Hour)
		row := []string{strconv.Itoa(id), name, email, pick(s.rnd, countries), signed.Format(time.DateOnly), exported.Format(timestampText)}
		rows = append(rows, row)
		if s.rnd.IntN(20) == 0 {
			again := append([]string(nil), row...)
			again[2] = fmt.Sprintf("New.Address%d@Example.com ", id)
			again[5] = exported.Add(90 * time.Minute).Format(timestampText)
			rows = append(rows, again)
		}
	}
	return rows
}

func (s *shop) productRows() [][]string {
	var rows [][]string
	for i, p := range s.products {
		weight := strconv.Itoa(40 + s.rnd.IntN(900))
		if i%17 == 5 {
			weight = ""
		}
		rows = append(rows, []string{p.sku, p.title, p.category, money(p.cents), weight})
	}
	return rows
}

// trade lets one day pass: open orders move on, new ones come in, a few of
// which are exported only on the next day.
func (s *shop) trade(date time.Time) {
	s.today, s.lines, s.payments = s.delayed, nil, nil
	s.delayed = nil
	for _, o := range s.today {
		s.sell(o)
	}
	var open []order
	for _, o := range s.open {
		if s.rnd.IntN(3) == 0 {
			o.updated = date.Add(time.Duration(s.rnd.IntN(86000)) * time.Second)
			switch {
			case o.status == "placed" && s.rnd.IntN(12) == 0:
				o.status = "cancelled"
			case o.status == "placed":
				o.status = "shipped"
			case s.rnd.IntN(15) == 0:
				o.status = "returned"
			default:
				o.status = "delivered"
			}
			s.today = append(s.today, o)
		}
		if o.status == "placed" || o.status == "shipped" {
			open = append(open, o)
		}
	}
	s.open = open
	for range ordersPerDay + s.rnd.IntN(21) - 10 {
		o := order{id: s.nextID, customer: 1 + s.rnd.IntN(customers), status: "placed"}
		o.at = date.Add(time.Duration(s.rnd.IntN(86400)) * time.Second)
		o.updated = o.at
		s.nextID++
		if s.rnd.IntN(30) == 0 {
			s.delayed = append(s.delayed, o)
		} else {
			s.today = append(s.today, o)
			s.sell(o)
		}
		s.open = append(s.open, o)
	}
}

// sell writes lines and payments of an order. Payments add up to the lines.
func (s *shop) sell(o order) {
	total := 0
	for n := 1; n <= 1+s.rnd.IntN(4); n++ {
		p := pick(s.rnd, s.products)
		quantity := 1 + s.rnd.IntN(3)
		total += quantity * p.cents
		s.lines = append(s.lines, []string{strconv.Itoa(o.id), strconv.Itoa(n), p.sku, strconv.Itoa(quantity), money(p.cents)})
	}
	first := total
	if s.rnd.IntN(8) == 0 {
		first = total / 2
	}
	for i, cents := range []int{first, total - first} {
		if cents == 0 {
			continue
		}
		p := payment{PaymentID: fmt.Sprintf("p%d-%d", o.id, i+1), OrderID: o.id, Method: pick(s.rnd, methods), Cents: cents}
		if p.Method != "invoice" || s.rnd.IntN(2) == 0 {
			at := o.at.Add(time.Duration(s.rnd.IntN(3600)) * time.Second).Format(time.RFC3339)
			p.PaidAt = &at
		}
		s.payments = append(s.payments, p)
		if s.rnd.IntN(40) == 0 { // the provider's export repeats itself
			s.payments = append(s.payments, p)
		}
	}
}

// orderRows is the day's export. The order of the columns changes on the fifth
// day, and from the ninth day on there is one column more.
func (s *shop) orderRows(day int) ([]string, [][]string) {
	header := []string{"order_id", "customer_id", "ordered_at", "status", "updated_at"}
	var rows [][]string
	for _, o := range s.today {
		rows = append(rows, []string{strconv.Itoa(o.id), strconv.Itoa(o.customer), o.at.Format(timestampText), o.status, o.updated.Format(timestampText)})
	}
	if day >= 4 {
		header[3], header[4] = header[4], header[3]
		for _, r := range rows {
			r[3], r[4] = r[4], r[3]
		}
	}
	if day >= 8 {
		header = append(header, "channel")
		for i := range rows {
			rows[i] = append(rows[i], channels[s.today[i].id%len(channels)])
		}
	}
	return header, rows
}
